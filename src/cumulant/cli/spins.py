"""What `cumulant ising` does: fit, sample, bound and certify models of binary variables, from files to files."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from cumulant import files, graphical
from cumulant.cli.binary_tables import read_binary, read_pairs
from cumulant.errors import FileFormatError, NoEstimateError, TooWide

_MODELS = ("Ising", "BoltzmannMachine", "Potts", "PairwiseMRF", "FactorGraph")
_SMALL = 2**26  # bytes of tables for numbers that are good to have, not asked for


def fit_table(
    data: Path,
    output: Path,
    *,
    structure: str,
    method: str | None,
    l2: float,
    mixing: str,
    eps: float,
    delta: float,
    max_work: float,
    fields: bool,
    seed: int,
    time_limit: float | None,
    top: int,
    as_json: bool,
) -> None:
    """Read the data, fit, save the model, and print what was found."""
    _writable(output, (".npz", ".uai"))
    within = _mixing(mixing)
    x, names = read_binary(data)
    if structure == "chow-liu":
        if method is not None or within is not None or not fields:
            raise ValueError(
                "--structure chow-liu is a closed form, with fields: leave --method, --mixing and --no-fields away"
            )
        try:
            model: Any = graphical.chow_liu(x, smoothing=l2, spins=True)
        except NoEstimateError as problem:
            raise NoEstimateError(f"{problem} (here: --l2 1)") from None
        why = "a closed form: no tree has a larger likelihood"
        why += f", {l2:g} observations added as smoothing" if l2 else ""
        found = graphical.Fit(model, None, "chow_liu", why)
        said = f"tree: {model}\n  {why}"
    else:
        method = method or "pseudo_likelihood"
        if within is not None and method not in ("mcmc", "exact"):
            raise ValueError(f"--mixing {mixing} needs --method mcmc or exact: the other methods stay in no set")
        if within is None and method == "mcmc":
            raise ValueError(
                "--method mcmc needs --mixing, such as spectral:0.9: the set in which chains are sure to mix"
            )
        if method == "mcmc" and fields and l2 == 0:
            raise ValueError(
                "--method mcmc certifies nothing for --l2 0 and fields, which no set bounds: add --no-fields"
            )
        chosen = graphical.sparse_structure(x, spins=True, time_limit=time_limit) if structure == "sparse" else None
        edges = _edges(structure, x.shape[1]) if chosen is None else chosen.edges
        found = graphical.fit(
            x, graphical.Ising(edges, 0.0, np.zeros(x.shape[1])), mixing=within, l2=l2, fields=fields, rng=seed,
            method=graphical.MCMC(eps, delta, max_work=max_work) if method == "mcmc" else method, time_limit=time_limit,
        )  # fmt: skip
        model, said = found.model, str(found) if chosen is None else f"structure: {chosen}\n{found}"
    if output.suffix == ".uai":
        graphical.write_uai(output, model)
    else:
        output = model.save(output)
    likelihood = _likelihood(model, x)
    if as_json:
        print(json.dumps(_plain_fit(found, x, names, likelihood, output)))
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{len(x)} observations of {x.shape[1]} variables", markup=False)
    console.print(said, markup=False)
    console.print(_summary(model), markup=False)
    console.print(_said(likelihood, x.shape[1]), markup=False)
    if top and len(model.edges):
        console.print(_largest(model, names, top))
    console.print(f"The model: {output}", markup=False)


def draw(
    path: Path,
    n: int,
    method: str,
    *,
    chains: int,
    burn_in: int,
    thin: int,
    zero_one: bool,
    output: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Draw, print what the draws are worth, and write them."""
    if output is not None:
        _writable(output, (".npz", ".csv"))
    model = _load(path)
    console = Console(soft_wrap=True, highlight=False, quiet=as_json)
    plain: dict[str, Any] = {"variables": model.n_variables, "method": method, "draws": n, "seed": seed}
    console.print(str(model), markup=False)
    if method in ("exact", "perfect"):
        try:
            values = np.asarray(model.sample(n, rng=seed, method=method))[None]
        except TooWide as problem:
            raise TooWide(f"{problem}; chains need no tables: --method mcmc chooses one") from None
        console.print(f"{n} independent draws, each exactly from the model ({method})", markup=False)
    else:
        draws = model.sample(n, rng=seed, method=method, chains=chains, burn_in=burn_in, thin=thin)
        values = draws.values
        console.print(
            f"{chains} chains of {n} draws by {method}, after {burn_in} sweeps, one in {thin} kept", markup=False
        )
        plain |= {"chains": chains, "burn_in": burn_in, "thin": thin}
        worth = _worth(model, draws)
        plain |= {name: _number(value) for name, value in worth.items()}  # R-hat is infinite where chains are frozen
        console.print(_told(worth, len(draws)), markup=False)
        if method == "random":
            needed = _needed(model)
            plain |= {"updates_proved_to_be_enough": needed, "updates_of_burn_in": burn_in * model.n_variables}
            console.print(_proved(needed, burn_in * model.n_variables), markup=False)
    energies = -np.asarray(model.family.score(values.reshape(-1, model.n_variables), model.theta))
    console.print(f"energy -<theta, T(x)>: mean {energies.mean():.6g}, deviation {energies.std():.4g}", markup=False)
    if zero_one:
        values = np.where(values == -1, 0, values)
    if output is not None:
        output = _write_draws(output, values, method, seed)
        console.print(f"The draws: {output}", markup=False)
    if as_json:
        plain |= {"energy_mean": float(energies.mean()), "energy_deviation": float(energies.std())}
        print(json.dumps(plain | {"output": None if output is None else str(output)}))


def bound(
    path: Path, *, seconds: float, memory: int, sampling: bool, delta: float, work: int | None, seed: int, as_json: bool
) -> None:
    """Print the interval for ``log Z``."""
    model = _load(path)
    interval = graphical.bound_log_partition(
        model, time_limit=seconds, max_memory=memory * 2**20, max_work=work, sampling=sampling, delta=delta, rng=seed
    )
    if as_json:
        ends = {name: _number(getattr(interval, name)) for name in ("lower", "upper", "estimate")}
        print(json.dumps({"variables": model.n_variables, "log_z": ends, **_plain_certificate(interval.certificate)}))
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(str(model), markup=False)
    console.print(str(interval.certificate), markup=False)
    console.print(f"width {interval.width:.3g} nats", markup=False)


def mixing(path: Path, eps: float, norm: str | None, *, as_json: bool) -> None:
    """Print the certificate of the mixing time, by the norm that proves the shortest where none is named."""
    certificate = graphical.certify_mixing_time(_load(path), eps, norm=norm)
    print(json.dumps(_plain_certificate(certificate)) if as_json else certificate)


# Options and files ----------------------------------------------------------------------------------------------------


def _writable(output: Path, suffixes: tuple[str, ...]) -> None:
    """Refused before any work is done: hours of sampling must not end in a wrong name."""
    if output.suffix not in ("", *suffixes):
        raise ValueError(f"--output must end in {' or '.join(suffixes)}; got {output.name}")
    if not output.parent.is_dir():
        raise ValueError(f"--output: there is no folder {output.parent}")


def _mixing(text: str) -> graphical.FastMixing | None:
    if text == "none":
        return None
    norm, colon, radius = text.partition(":")
    try:
        if not colon:
            raise ValueError("a colon is missing")
        return graphical.FastMixing(float(radius), norm)
    except ValueError as problem:
        raise ValueError(
            f"--mixing must be none, or a norm (spectral, one, inf, box) and a radius such as spectral:0.9; got "
            f"{text!r} ({problem})"
        ) from None


def _edges(structure: str, n: int) -> np.ndarray:
    if structure == "complete":
        return graphical.complete(n)
    lattice = re.fullmatch(r"(grid|torus):(\d+)x(\d+)", structure)
    if lattice:
        rows, columns = int(lattice[2]), int(lattice[3])
        if rows * columns != n:
            raise ValueError(f"--structure {structure} has {rows * columns} variables and the data have {n}")
        return (graphical.grid if lattice[1] == "grid" else graphical.torus)(rows, columns)
    if Path(structure).suffix in (".csv", ".txt", ".tsv"):
        return read_pairs(Path(structure), n)
    raise ValueError(
        "--structure must be sparse, complete, chow-liu, grid:ROWSxCOLUMNS, torus:ROWSxCOLUMNS, or a .csv file of "
        f"pairs; got {structure!r}"
    )


def _load(path: Path) -> Any:
    if path.suffix.lower() == ".uai":
        return graphical.read_uai(path)
    kind = files.load(path).kind
    if kind not in _MODELS:
        raise FileFormatError(f"{path} holds a {kind}, not a discrete model ({', '.join(_MODELS)})")
    return getattr(graphical, kind).load(path)


def _write_draws(output: Path, values: np.ndarray, method: str, seed: int) -> Path:
    if output.suffix != ".csv":
        return files.save(output, "draws", {"values": values}, {"method": method, "seed": seed})
    flat = values.reshape(-1, values.shape[-1])
    header = ",".join(f"x{i}" for i in range(flat.shape[1]))
    files.write_atomically(output, lambda file: np.savetxt(file, flat, "%d", ",", header=header, comments=""))
    return output


# What is printed ------------------------------------------------------------------------------------------------------


def _summary(model: Any) -> str:
    size = np.abs(model.couplings)
    norm = graphical.dependency_norm(graphical.dependency_matrix(model, "linear"), "spectral")
    spread = (
        f"|J| median {np.median(size):.4g}, largest {size.max():.4g}, {(size == 0).sum()} zero, " if size.size else ""
    )
    return (
        f"{size.size} couplings: {spread}spectral norm of |J| {norm:.4g}; "
        f"fields from {model.fields.min():.4g} to {model.fields.max():.4g}"
    )


def _likelihood(model: Any, x: np.ndarray) -> float:
    """The mean log-likelihood, exact; NaN where the graph is too wide."""
    try:
        return float(np.mean(model.log_prob(x, max_memory=_SMALL)))
    except TooWide:
        return math.nan


def _said(likelihood: float, n: int) -> str:
    if math.isnan(likelihood):
        return (
            "log-likelihood: the graph is too wide for the exact one; cumulant ising bound gives an interval for log Z"
        )
    return (
        f"mean log-likelihood {likelihood:.6f} nats, exact ({likelihood / n:.4f} a variable; independent coins -0.6931)"
    )


def _largest(model: Any, names: list[str] | None, top: int) -> Table:
    table = Table(title="Largest couplings", title_justify="left")
    for heading in ("between", "and"):
        table.add_column(heading)
    table.add_column("J", justify="right")
    called = names or [f"x{v}" for v in range(model.n_variables)]
    for e in np.argsort(-np.abs(model.couplings), kind="stable")[:top]:
        i, j = model.edges[e]
        table.add_row(called[i], called[j], f"{model.couplings[e]:+.4f}")
    return table


def _worth(model: Any, draws: Any) -> dict[str, float]:
    """R-hat and effective sample sizes of each variable and of the energy; they are symptoms, not certificates."""
    if draws.values.shape[1] < 4:
        return {}

    def energy(x):
        return np.asarray(model.family.score(x, model.theta))

    return {
        "r_hat_variables": float(np.max(draws.r_hat())),
        "r_hat_energy": float(draws.r_hat(energy)),
        "effective_sample_size_variables": float(np.min(draws.effective_sample_size())),
        "effective_sample_size_energy": float(draws.effective_sample_size(energy)),
    }


def _told(worth: dict[str, float], total: int) -> str:
    if not worth:
        return "R-hat and effective sample size need at least 4 draws of each chain"
    return (
        f"R-hat: largest of a variable {worth['r_hat_variables']:.4f}, of the energy {worth['r_hat_energy']:.4f}\n"
        f"effective sample size: smallest of a variable {worth['effective_sample_size_variables']:.0f}, of the energy "
        f"{worth['effective_sample_size_energy']:.0f}, of {total} draws"
    )


def _needed(model: Any) -> int | None:
    """Updates that are proved to bring the chain within 0.01; None where nothing is."""
    try:
        return int(graphical.certify_mixing_time(model, 0.01).upper)
    except graphical.NotFastMixing:
        return None


def _proved(needed: int | None, done: int) -> str:
    if needed is None:
        return "nothing is proved about how fast this chain mixes (cumulant ising mixing says why)"
    state = "is enough" if done >= needed else "is too short"
    return f"proved: {needed} updates bring the chain within 0.01; the burn-in of {done} {state}"


# What JSON can hold ---------------------------------------------------------------------------------------------------


def _number(value: float | None) -> float | str | None:
    """Infinities, for which JSON has no number, as the strings "-inf" and "inf"; null where there is none."""
    if value is None or math.isnan(value):
        return None
    return value if math.isfinite(value) else str(float(value))


def _plain_certificate(certificate: Any) -> dict[str, Any]:
    return {
        "quantity": certificate.quantity,
        "bound": _number(certificate.upper),
        "kind": certificate.kind,
        "delta": certificate.delta,
        "theorem": certificate.theorem,
        "assumptions": [{"text": a.text, "status": a.status, "detail": a.detail} for a in certificate.assumptions],
        "details": {name: _number(float(value)) for name, value in certificate.details.items()},
    }


def _plain_fit(found: Any, x: np.ndarray, names: list[str] | None, likelihood: float, output: Path) -> dict[str, Any]:
    model, plan = found.model, found.plan
    sizes = ("iterations", "chains", "updates")
    return {
        "observations": len(x),
        "variables": x.shape[1],
        "names": names,
        "method": found.method,
        "edges": model.edges.tolist(),
        "couplings": model.couplings.tolist(),
        "fields": model.fields.tolist(),
        "objective": _number(found.value),
        "mean_log_likelihood": _number(likelihood),
        "certificate": None if found.certificate is None else _plain_certificate(found.certificate),
        "refusal": found.refusal,
        "status": found.status,
        "plan": None if plan is None else {name: int(getattr(plan, name)) for name in sizes},
        "seconds": found.seconds,
        "output": str(output),
    }
