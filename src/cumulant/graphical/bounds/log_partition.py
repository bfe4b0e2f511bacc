"""An interval that contains ``log Z``, whatever the model: exact where it fits, else the best bounds time allows."""

import math
import time
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, Interval, by_construction, recipe_of, verifier
from cumulant.errors import CertificateError, DomainError
from cumulant.graphical.bounds.ledger import Ledger
from cumulant.graphical.bounds.search import Memory, Search
from cumulant.graphical.exact.elimination import MAX_MEMORY
from cumulant.graphical.structure import Structure
from cumulant.randomness import seed as seed_of

__all__ = ["bound_log_partition", "bound_marginals"]

_GRACE = 0.2  # seconds over its limit, and a tenth of that, after which no other variable is looked at


def bound_log_partition(
    model: Any,
    *,
    time_limit: float | None = 10.0,
    max_memory: int = MAX_MEMORY,
    max_work: int | None = None,
    exact: bool = True,
    sampling: bool = False,
    delta: float = 1e-6,
    rng: Any = 0,
    n_jobs: int | None = None,
) -> Interval:
    """An interval that contains ``log Z``, with a certificate; the longer it may work, the narrower it is.

    * *Exact*, up to rounding, where elimination fits into `max_memory`, or where it does once some variables are given
      values, over all of which is then summed, and where that can be done in about the time allowed.
    * *Above*: ``log Z <= sum_k w_k log Z_k(z_k / w_k)`` (Hölder) over copies of the model cut into wide blocks, each
      at another place, or into clusters joined by trees; shares and weights are optimised (see `reweighted`).
    * *Below*: ``E_q <theta, T> + H(q)`` for independent blocks, each solved exactly (see `structured_mean_field`).
    * *Above and below* by weighted mini-buckets (see `mini_bucket_bound`): at once where there are no good cuts or
      factors join three variables or more, else when the others have come to an end.
    * *Below, with probability* ``1 - delta``, where `sampling`: annealed importance sampling gives independent unbiased
      estimates of ``Z``, and Markov's inequality says how far their order statistics can be above it.

    Without `sampling` the interval is certain: nothing random enters its proof, and nothing has to have converged. It
    is widened by an allowance for rounding (``certificate.slack``).

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence.
    time_limit : float or None
        Seconds; None: no limit. The clock is looked at within the pieces of work too, and one that it ends counts for
        nothing: a run is over by fractions of a second (by more where kernels are compiled for the first time). The
        less time, the narrower the blocks, so that there is enough of it to optimise over them.
    max_memory : int
        Bytes that tables may take; 64 KiB, and what the factors themselves and spanning trees of them need, are
        always taken.
    max_work : int, optional
        Pieces of work instead of seconds: ``certificate.details["work"]`` of a run that the clock ended, with all else
        as it was, gives the same interval again.
    exact : bool
        Whether to look for an exact answer first.
    sampling : bool
        Whether bounds that hold with probability ``1 - delta`` may be used.
    rng : int, Generator or None
        For starts of mean field and for annealing.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(10, 10), coupling=0.5, field=0.5, rng=0)
    >>> narrow = bound_log_partition(model)                      # 10 x 10 is no problem: exact
    >>> narrow.width < 1e-9
    True
    >>> wide = bound_log_partition(model, max_memory=2**14, max_work=20, exact=False)
    >>> model.log_partition() in wide and wide.width < 3.0
    True
    """
    _check(time_limit, max_memory, max_work, delta)
    seed, ledger = seed_of(rng), Ledger(time_limit, max_work)
    structure, theta, _ = model.restricted()
    search = Search(structure, theta, ledger, int(max_memory), exact, sampling, delta, seed, n_jobs)
    search.run()
    return _interval(search)


def _interval(search: Search) -> Interval:
    lower, upper = min(search.lower, search.upper), search.upper
    guess = search.estimate
    if guess is None:
        guess = 0.5 * (lower + upper) if np.isfinite(lower) else upper
    guess = min(max(guess, lower), upper)
    exact = search.why.get("upper", "").startswith("exact")
    theorem = (
        search.why["upper"]
        if exact
        else f"above by {search.why.get('upper', 'nothing')}; below by {search.why.get('lower', 'nothing')}"
    )
    assumptions = [by_construction("the shares of the copies add up to theta and their weights to one")]
    if exact:
        assumptions = [by_construction("every state is in exactly one term of the sum")]
    elif search.likely:
        assumptions.append(by_construction("the annealed estimates are independent and unbiased", "Neal 2001"))
    assumptions.append(by_construction("rounding stays within the allowance", f"{search.slack:.2g}, included"))
    limit = search.ledger.time_limit
    details = {
        "work": search.ledger.work,
        "max_memory": search.max_memory,
        "seed": search.seed,
        "exact": search.look,
        "sampling": search.sampling,
        "time_limit": math.inf if limit is None else limit,
    }
    certificate = Certificate(
        "log Z", Interval(lower, upper, guess), theorem, tuple(assumptions),
        kind="with probability" if search.likely else "deterministic", delta=search.delta if search.likely else None,
        recipe=recipe_of(replay), details=details,
    )  # fmt: skip
    return Interval(lower, upper, guess, certificate)


def _check(time_limit, max_memory, max_work, delta) -> None:
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"time_limit must be a number of seconds that is not negative, or None; got {time_limit!r}")
    if isinstance(max_memory, bool) or not max_memory > 0:
        raise ValueError(f"max_memory must be a positive number of bytes; got {max_memory!r}")
    if max_work is not None and (isinstance(max_work, bool) or not isinstance(max_work, int) or max_work < 0):
        raise ValueError(f"max_work must be a whole number that is not negative, or None; got {max_work!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be strictly between 0 and 1; got {delta!r}")


@verifier
def replay(model: Any, interval: Interval) -> float:
    """The upper end again, by the same work on the model; a `CertificateError` where the lower end comes out lower."""
    certificate = interval.certificate
    if certificate is None:
        raise CertificateError("this interval has no certificate to replay")
    settings = certificate.details
    limit = settings["time_limit"]
    again = bound_log_partition(
        model,
        time_limit=None if limit == math.inf else limit,
        max_memory=int(settings["max_memory"]),
        max_work=int(settings["work"]),
        exact=bool(settings["exact"]),
        sampling=bool(settings["sampling"]),
        delta=certificate.delta or 1e-6,
        rng=int(settings["seed"]),
    )
    if not again.lower >= interval.lower:
        raise CertificateError(f"the lower end was {interval.lower:.17g} and is {again.lower:.17g} when replayed")
    return again.upper


def bound_marginals(
    model: Any,
    variables: Any = None,
    *,
    time_limit: float | None = 10.0,
    max_memory: int = MAX_MEMORY,
    max_work: int | None = None,
    exact: bool = True,
    sampling: bool = False,
    delta: float = 1e-6,
    rng: Any = 0,
    n_jobs: int | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bounds on the probability of each state of some variables: pairs of arrays, lower and upper ends.

    ``p(x_i = a) = Z_a / sum_b Z_b``, where ``Z_a`` has ``x_i`` given the value ``a``. It rises with ``Z_a`` and falls
    with the others, so that intervals for their logarithms, found as by `bound_log_partition`, make one for it.

    The first search, with no value given, finds cuts, blocks and orders, which serve all states, and shares and
    distributions, from which the searches for them begin.

    Parameters
    ----------
    time_limit : float or None
        Seconds for all of it together; each search has an equal share of what is left. Variables whose turn does not
        come get the bounds 0 and 1.
    max_work : int, optional
        Pieces of work for each search.
    delta : float
        With `sampling`, the probability that the bounds on a variable do not hold.

    The others are those of `bound_log_partition`.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(4, 4), coupling=0.5, field=0.5, rng=0)
    >>> low, high = bound_marginals(model, [3])[0]
    >>> p = model.marginals()[3]
    >>> bool(np.all((low <= p) & (p <= high)))
    True
    """
    _check(time_limit, max_memory, max_work, delta)
    wanted = range(model.n_variables) if variables is None else [int(v) for v in variables]
    for v in wanted:
        if not 0 <= v < model.n_variables:
            raise ValueError(f"variables must be numbers from 0 to {model.n_variables - 1}; got {v}")
    structure, theta, free = model.restricted()
    place = {int(v): k for k, v in enumerate(free)}
    asked = [v for v in dict.fromkeys(wanted) if v in place]
    widened = _with_tables(structure, [place[v] for v in asked])
    sizes, seed, memory = [int(model.cardinalities[v]) for v in asked], seed_of(rng), Memory()
    waiting, begin = sum(sizes) + 1, time.monotonic()

    def search(tables, chance):
        nonlocal waiting
        share = time_limit
        if time_limit is not None:  # what is counted in pieces must not depend on the clock
            left = time_limit - (time.monotonic() - begin) if max_work is None else time_limit
            share = max(left, 0.0) / (waiting if max_work is None else sum(sizes) + 1)
        waiting -= 1
        found = Search(
            widened, tables, Ledger(share, max_work), int(max_memory), exact, sampling, chance, seed, n_jobs, memory
        )
        found.run()
        return found

    tables = np.concatenate([theta, np.zeros(sum(sizes))])
    bounds: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    quick = False
    if asked:
        first = search(tables, delta)
        memory.q, quick = first.q, first.why.get("upper", "").startswith("exact")
    at = theta.size
    for v, size in zip(asked, sizes, strict=True):
        # even a search without time looks at all tables once: too long for each of thousands of variables
        limit = math.inf if quick or max_work is not None or time_limit is None else 1.1 * time_limit + _GRACE
        if time.monotonic() - begin > limit:
            bounds[v] = np.zeros(size), np.ones(size)
            at += size
            continue
        each = []
        for a in range(size):
            given = tables.copy()
            given[at : at + size] = np.where(np.arange(size) == a, 0.0, -np.inf)
            each.append(search(given, delta / size))
        at += size
        low = np.array([min(one.lower, one.upper) for one in each])
        high = np.array([one.upper for one in each])
        if not (high > -np.inf).any():
            raise DomainError("every state is impossible: there is no distribution")
        bounds[v] = _probabilities(low, high)
    out = []
    for v in wanted:
        if v not in bounds:  # given, or with one state
            state = model._evidence[v] if v in model.evidence else 0
            certain = (np.arange(int(model.cardinalities[v])) == state).astype(float)
            bounds[v] = certain, certain
        out.append((bounds[v][0].copy(), bounds[v][1].copy()))
    return out


def _with_tables(structure: Structure, variables: list[int]) -> Structure:
    """With one more table for each of some variables, after the others."""
    ends = structure.scope_starts[-1] + 1 + np.arange(len(variables))
    return Structure.flat(
        structure.cardinalities,
        np.concatenate([structure.scope_starts, ends]),
        np.concatenate([structure.scopes, np.array(variables, dtype=np.int64)]),
    )


def _probabilities(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on ``Z_a / sum_b Z_b`` from bounds on the logarithms; -inf is the logarithm of zero."""
    top = high.max()
    least, most = np.exp(low - top), np.exp(high - top)
    with np.errstate(invalid="ignore"):  # 0 / 0 is where nothing is known
        lower = np.where(least > 0, least / (least + (most.sum() - most)), 0.0)
        upper = np.where(most > 0, most / (most + (least.sum() - least)), 0.0)
    return np.maximum(lower - 1e-15, 0.0), np.minimum(upper + 1e-15, 1.0)
