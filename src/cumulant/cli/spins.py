"""What `cumulant ising` does: fit, sample, bound and certify models of binary variables, from files to files."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from cumulant import files, graphical
from cumulant.cli.binary_tables import read_binary, read_pairs
from cumulant.errors import FileFormatError, NoEstimateError, TooWide

__all__ = ["bound", "draw", "fit_table", "mixing"]

_MODELS = ("Ising", "BoltzmannMachine", "Potts", "PairwiseMRF", "FactorGraph")
_NORMS = ("spectral", "one", "inf", "degree")
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
    top: int,
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
        said = f"tree: {model}\n  a closed form: no tree has a larger likelihood"
        said += f", {l2:g} observations added as smoothing" if l2 else ""
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
        edges = _edges(structure, x.shape[1])
        found = graphical.fit(
            x, graphical.Ising(edges, 0.0, np.zeros(x.shape[1])), method=method, mixing=within, l2=l2, fields=fields,
            eps=eps, delta=delta, max_work=max_work, rng=seed,
        )  # fmt: skip
        model, said = found.model, str(found)
    if output.suffix == ".uai":
        graphical.write_uai(output, model)
    else:
        output = model.save(output)
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{len(x)} observations of {x.shape[1]} variables", markup=False)
    console.print(said, markup=False)
    console.print(_summary(model), markup=False)
    console.print(_likelihood(model, x), markup=False)
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
) -> None:
    """Draw, print what the draws are worth, and write them."""
    if output is not None:
        _writable(output, (".npz", ".csv"))
    model = _load(path)
    console = Console(soft_wrap=True, highlight=False)
    console.print(str(model), markup=False)
    if method in ("exact", "perfect"):
        try:
            values = np.asarray(model.sample(n, rng=seed, method=method))[None]
        except TooWide as problem:
            raise TooWide(f"{problem}; chains need no tables: --method chromatic, for example") from None
        console.print(f"{n} independent draws, each exactly from the model ({method})", markup=False)
    else:
        draws = model.sample(n, rng=seed, method=method, chains=chains, burn_in=burn_in, thin=thin)
        values = draws.values
        console.print(
            f"{chains} chains of {n} draws by {method}, after {burn_in} sweeps, one in {thin} kept", markup=False
        )
        console.print(_worth(model, draws), markup=False)
        if method == "random":
            console.print(_proved(model, burn_in), markup=False)
    energies = -np.asarray(model.family.score(values.reshape(-1, model.n_variables), model.theta))
    console.print(f"energy -<theta, T(x)>: mean {energies.mean():.6g}, deviation {energies.std():.4g}", markup=False)
    if zero_one:
        values = np.where(values == -1, 0, values)
    if output is not None:
        console.print(f"The draws: {_write_draws(output, values, method, seed)}", markup=False)


def bound(
    path: Path, *, seconds: float, memory: int, sampling: bool, delta: float, work: int | None, seed: int
) -> None:
    """Print the interval for ``log Z``."""
    model = _load(path)
    interval = graphical.bound_log_partition(
        model, time_limit=seconds, max_memory=memory * 2**20, max_work=work, sampling=sampling, delta=delta, rng=seed
    )
    console = Console(soft_wrap=True, highlight=False)
    console.print(str(model), markup=False)
    console.print(str(interval.certificate), markup=False)
    console.print(f"width {interval.width:.3g} nats", markup=False)


def mixing(path: Path, eps: float, norm: str | None) -> None:
    """Print the certificate of the mixing time, by the norm that proves the shortest where none is named."""
    print(_certificate(_load(path), eps, norm))


def _certificate(model: Any, eps: float, norm: str | None = None) -> Any:
    if norm is not None:
        return model.mixing_time(eps, norm=norm)
    found, kappas = [], {}
    for each in _NORMS:
        try:
            found.append(model.mixing_time(eps, norm=each))
        except graphical.NotFastMixing as refusal:
            kappas[each] = refusal.kappa
    if found:
        return min(found, key=lambda certificate: certificate.upper)
    text = ", ".join(f"{name} {kappa:.4g}" for name, kappa in kappas.items())
    raise graphical.NotFastMixing(
        f"not fast-mixing: no norm of the dependency matrix is below 1 ({text}); that the chain is slow is not "
        "proved either",
        min(kappas.values()),
    )


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
        "--structure must be complete, chow-liu, grid:ROWSxCOLUMNS, torus:ROWSxCOLUMNS, or a .csv file of pairs; got "
        f"{structure!r}"
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


def _likelihood(model: Any, x: np.ndarray) -> str:
    try:
        value = float(np.mean(model.log_prob(x, max_memory=_SMALL)))
    except TooWide:
        return (
            "log-likelihood: the graph is too wide for the exact one; cumulant ising bound gives an interval for log Z"
        )
    return (
        f"mean log-likelihood {value:.6f} nats, exact ({value / x.shape[1]:.4f} a variable; independent coins -0.6931)"
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


def _worth(model: Any, draws: Any) -> str:
    """R-hat and effective sample sizes of each variable and of the energy; they are symptoms, not certificates."""
    if draws.values.shape[1] < 4:
        return "R-hat and effective sample size need at least 4 draws of each chain"

    def energy(x):
        return np.asarray(model.family.score(x, model.theta))

    total = len(draws)
    return (
        f"R-hat: largest of a variable {np.max(draws.r_hat()):.4f}, of the energy {draws.r_hat(energy):.4f}\n"
        f"effective sample size: smallest of a variable {np.min(draws.effective_sample_size()):.0f}, of the energy "
        f"{draws.effective_sample_size(energy):.0f}, of {total} draws"
    )


def _proved(model: Any, burn_in: int) -> str:
    done = burn_in * model.n_variables
    try:
        needed = _certificate(model, 0.01).upper
    except graphical.NotFastMixing:
        return "nothing is proved about how fast this chain mixes (cumulant ising mixing says why)"
    state = "is enough" if done >= needed else "is too short"
    return f"proved: {needed:.0f} updates bring the chain within 0.01; the burn-in of {done} {state}"
