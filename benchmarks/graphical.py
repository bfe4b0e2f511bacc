"""Exact inference against pyAgrum's Shafer-Shenoy: log Z and all single-variable marginals.

Grids are random-field Ising models; the other problems are the UAI files of a folder named by CUMULANT_DATA, with their
evidence. The peer's model is built beforehand and its time is that of a new inference (which triangulates), of
`makeInference` and of reading every posterior. Ours is a new model (which searches an order), its marginals and log Z.
Both sides may use all threads (the peer is often faster with one, and gets what is faster), and must give the same
marginals.
"""

import os
from pathlib import Path

import numpy as np

from benchmarks.timing import Row, race, seconds
from cumulant.graphical import FactorGraph, Ising, grid, read_uai, spin_glass
from cumulant.threads import cores

_GRIDS = ((10, 3.0), (12, 3.0), (14, 3.0), (16, 2.0))


def run() -> list[Row]:
    try:
        import pyagrum  # noqa: F401
    except ImportError:
        print("graphical: left out; pyAgrum is not installed: pip install pyagrum")
        return []
    rows = []
    for n, bar in _GRIDS:
        glass = spin_glass(grid(n, n), couplings=0.5, fields=0.5, rng=n)
        rows.append(
            compare(
                f"grid {n}x{n}", glass.to_factor_graph(), lambda m=glass: Ising(m.edges, m.couplings, m.fields), bar
            )
        )
    folder = os.environ.get("CUMULANT_DATA")
    if not folder or not (Path(folder) / "uai").is_dir():
        print("graphical: UAI files left out; set CUMULANT_DATA to the folder that has uai/")
        return rows
    for path in sorted((Path(folder) / "uai").glob("*.uai")):
        evidence = path.with_suffix(".uai.evid")
        model = read_uai(path, evidence if evidence.exists() else None)
        rows.append(compare(path.stem, model, lambda m=model: fresh(m), 1.0))
    return rows


def fresh(model: FactorGraph) -> FactorGraph:
    return FactorGraph.from_flat(
        type(model.structure).flat(model.cardinalities, model.structure.scope_starts, model.structure.scopes),
        model.theta,
    ).given(model.evidence)


def compare(name: str, model: FactorGraph, make, bar: float) -> Row:
    peer = agrum(model)
    answers = {}

    def ours():
        mine = make()
        answers["ours"] = np.concatenate(list(mine.marginals()))
        mine.log_partition()

    def theirs():
        answers["theirs"] = np.concatenate(infer(peer, model, threads))

    ours(), infer(peer, model, 1)
    tried = {n: seconds(lambda n=n: infer(peer, model, n)) for n in (1, cores(None))}
    threads = min(tried, key=lambda n: tried[n])
    theirs()
    difference = np.abs(answers["ours"] - answers["theirs"]).max()
    if not difference < 1e-7:
        raise AssertionError(f"{name}: the marginals of the two sides differ by {difference:.2g}")
    peer_name = f"pyAgrum, {threads} thread{'s' if threads > 1 else ''}"
    return race(name, peer_name, ours, theirs, bar=bar, repeats=1 if tried[threads] > 10.0 else 5)


def agrum(model: FactorGraph):
    """The same model for pyAgrum, which takes numbers rather than logarithms."""
    import pyagrum as gum

    peer = gum.MarkovRandomField()
    for v, size in enumerate(model.cardinalities.tolist()):
        peer.add(gum.LabelizedVariable(str(v), "", size))
    joint: dict[tuple[int, ...], np.ndarray] = {}
    for scope, table in model.factors:  # one factor for each set of variables, as it takes no two
        order = np.argsort(scope)
        key = tuple(sorted(scope))
        joint[key] = joint.get(key, 0.0) + np.transpose(table, order)
    for scope, table in joint.items():
        if scope:
            tensor = gum.Tensor()
            for v in scope:
                tensor.add(peer.variable(str(v)))
            tensor.fillWith(np.exp(table - table.max()).ravel(order="F").tolist())
            peer.addFactor(tensor)
    return peer


def infer(peer, model: FactorGraph, threads: int) -> list[np.ndarray]:
    import pyagrum as gum

    inference = gum.ShaferShenoyMRFInference(peer)
    inference.setNumberOfThreads(threads)
    inference.setEvidence({str(v): x for v, x in model.evidence.items()})
    inference.makeInference()
    return [np.asarray(inference.posterior(str(v)).toarray()) for v in range(model.n_variables)]
