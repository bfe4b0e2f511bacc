"""Tables before and after changes, drawn from their posterior: which mechanism changed, then every mechanism."""

import numpy as np
from scipy.special import logsumexp

from cumulant.causal.changes import Explanation, explain, log_evidence, turned
from cumulant.causal.dirichlet import log_dirichlet

_ONE_MECHANISM = ("cause", "effect", "row")


def draw_tables(
    counts: list[np.ndarray], pseudo_counts: tuple[float, ...], n: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Logarithms of `n` tables of the reference and of each transfer, ``(n, K_x, K_y)``, from counts, reference first.

    The prior is that of `table_changes`. What a change keeps is one mechanism of both tables, so that noise in their
    counts is not taken for a change. As evidence is exact and mechanisms are conjugate, draws are exact and independent
    where there is one transfer. With several, the explanation of each is drawn from its posterior without the others;
    the reference is one for all and learns from those with the same cause, that with more observations behind it.
    """
    reference, *transfers = counts
    explained = [explain(reference, after, pseudo_counts) for after in transfers]
    chosen = np.stack([rng.choice(len(scores), n, p=_shares(scores)) for _, scores in explained], axis=1)
    kinds, members = np.unique(chosen, axis=0, return_inverse=True)
    found = [np.empty((n, *reference.shape)) for _ in counts]
    for i, kind in enumerate(kinds):
        changes = [names[place] for (names, _), place in zip(explained, kind, strict=True)]
        here = np.flatnonzero(members.ravel() == i)
        for table, logs in zip(found, _draw(changes, counts, pseudo_counts, here.size, rng), strict=True):
            table[here] = logs
    return found


def _draw(
    changes: list[Explanation],
    counts: list[np.ndarray],
    pseudo_counts: tuple[float, ...],
    n: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """The same for given changes."""
    reference, *transfers = counts
    arrow = _common_cause(changes, transfers)
    rows = turned(reference, arrow).copy()
    cause, whole = rows.sum(axis=1), []
    for change, after in zip(changes, transfers, strict=True):
        seen = turned(after, arrow).copy()
        if change.kind == "everything":
            whole.append(seen)
        elif change.kind == "none" or change.cause == arrow:
            if change.kind != "cause":
                cause += seen.sum(axis=1)
            if change.kind == "row":
                seen[change.place] = 0
            if change.kind != "effect":
                rows += seen
    weights = np.array([sum(log_evidence(each, a).sum() for each in (rows, *whole)) for a in pseudo_counts])
    a = np.asarray(pseudo_counts)[rng.choice(len(weights), n, p=_shares(weights))][:, None, None]

    def table(of_cause: np.ndarray, of_rows: np.ndarray) -> np.ndarray:
        logs = log_dirichlet(of_cause + 1.0, n, rng)[..., None] + log_dirichlet(of_rows + a, (), rng)
        return turned(logs, arrow)

    start, found = table(cause, rows), []
    for change, after in zip(changes, transfers, strict=True):
        if change.kind == "everything":
            seen = turned(after, arrow)
            found.append(table(seen.sum(axis=1), seen))
        else:
            found.append(_changed(start, change, after, rng))
    return [start, *found]


def _changed(start: np.ndarray, change: Explanation, after: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Tables with one mechanism changed, or none."""
    if change.kind == "none":
        return start
    logs, seen = turned(start, change.cause), turned(after, change.cause)
    cause = logsumexp(logs, axis=-1, keepdims=True)
    rows = logs - cause
    if change.kind == "cause":
        cause = log_dirichlet(seen.sum(axis=1) + 1.0, len(start), rng)[..., None]
    elif change.kind == "effect":
        rows = log_dirichlet(seen.sum(axis=0) + 1.0, len(start), rng)[:, None, :]
    else:
        rows[:, change.place] = log_dirichlet(seen[change.place] + 1.0, len(start), rng)
    return turned(cause + rows, change.cause)


def _common_cause(changes: list[Explanation], transfers: list[np.ndarray]) -> int:
    """That of the changes of one mechanism with more observations; without such, of the first."""
    totals = [0.0, 0.0]
    for change, after in zip(changes, transfers, strict=True):
        totals[change.cause] += after.sum() if change.kind in _ONE_MECHANISM else 0.0
    return int(totals[1] > totals[0]) if any(totals) else changes[0].cause


def _shares(logs: np.ndarray) -> np.ndarray:
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()
