"""`cumulant infer`: an interval for ``log Z`` of a UAI model, and its marginals, on the screen and in files."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from cumulant.errors import TooWide
from cumulant.graphical import bound_log_partition, bound_marginals, read_uai, write_result

_SHOWN = 20  # variables whose marginals are printed; a file and JSON have all


def show(
    path: Path,
    *,
    evidence: Path | None,
    seconds: float,
    memory: int,
    marginals: bool,
    sampling: bool,
    delta: float,
    seed: int,
    work: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Read the model, bound ``log Z``, and its marginals where they are wanted, and print or write what was found."""
    if output is not None and not output.parent.is_dir():  # said now, not after the work
        raise FileNotFoundError(f"cannot write {output}: there is no folder {output.parent}")
    model = read_uai(path, evidence)
    settings: dict[str, Any] = {"max_memory": memory * 2**20, "sampling": sampling, "delta": delta, "rng": seed}
    interval = bound_log_partition(model, time_limit=seconds, max_work=work, **settings)
    bounds = _marginals(model, seconds, settings) if marginals else None
    if output is not None:
        guess = interval.estimate if interval.estimate is not None else interval.upper
        write_result(output, guess if bounds is None else [_middle(low, high) for low, high in bounds])
    if as_json:
        print(json.dumps(_plain(model, interval, bounds)))
    else:
        _tell(model, interval, bounds)


def _marginals(model: Any, seconds: float, settings: dict) -> list[tuple[np.ndarray, np.ndarray]]:
    """Exact where they fit into memory; else bounds, within the same time again."""
    try:
        exact = [np.asarray(p) for p in model.marginals(max_memory=settings["max_memory"])]
    except TooWide:
        return bound_marginals(model, time_limit=seconds, **settings)
    return [(p, p) for p in exact]


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    middle = 0.5 * (low + high)
    return middle / middle.sum()


def _plain(model: Any, interval: Any, bounds: Any) -> dict:
    """What JSON can hold: infinite ends, for which it has no number, as the strings "-inf" and "inf"; null is none."""

    def number(value):
        return value if value is None or math.isfinite(value) else str(value)

    out = {
        "variables": model.n_variables,
        "factors": model.structure.n_factors,
        "evidence": len(model.evidence),
        "log_z": {name: number(getattr(interval, name)) for name in ("lower", "upper", "estimate")},
        "kind": interval.certificate.kind,
        "delta": interval.certificate.delta,
        "theorem": interval.certificate.theorem,
        "work": int(interval.certificate.details["work"]),
    }
    if bounds is not None:
        out["marginals"] = [{"lower": low.tolist(), "upper": high.tolist()} for low, high in bounds]
    return out


def _tell(model: Any, interval: Any, bounds: Any) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(str(model), markup=False)
    console.print(str(interval.certificate), markup=False)
    ten = math.log(10.0)
    console.print(f"log10 Z in [{interval.lower / ten:.6f}, {interval.upper / ten:.6f}]", markup=False)
    if bounds is None:
        return
    for v, (low, high) in enumerate(bounds[:_SHOWN]):
        states = [f"{a:.4f}" if b - a < 5e-5 else f"[{a:.4f}, {b:.4f}]" for a, b in zip(low, high, strict=True)]
        console.print(f"p(x{v}): {'  '.join(states)}", markup=False)
    if len(bounds) > _SHOWN:
        console.print(f"... and {len(bounds) - _SHOWN} more variables: --output or --json has all", markup=False)
