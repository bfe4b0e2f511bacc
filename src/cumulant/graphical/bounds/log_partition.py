"""An interval that contains ``log Z``, whatever the model: exact where it fits, else the best bounds time allows."""

import contextlib
import math
import time
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from cumulant import checks
from cumulant.certificates import Certificate, Interval, by_construction, check, issuer, recipe_of, rounding
from cumulant.errors import CertificateError, DomainError, TooWide
from cumulant.graphical.bounds.context import Context, Memory
from cumulant.graphical.bounds.ledger import Ledger, check_limits
from cumulant.graphical.bounds.search import Settings, search
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.exact.elimination import MAX_MEMORY
from cumulant.graphical.exact.support import reduce
from cumulant.graphical.kaufman import bound_torus, torus_of
from cumulant.graphical.messages.simple_bounds import check_simple_bounds
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.structure import Structure
from cumulant.randomness import seed as seed_of

_GRACE = 0.2  # seconds over its limit, and a tenth of that, after which no other variable is looked at
_SMALLEST = float(np.finfo(np.float64).tiny)  # below it numbers lose digits


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

    * *Exact*, up to rounding, for an Ising model on a torus without fields (Kaufman's formula), where elimination fits
      into `max_memory`, or where it does once some variables are given values, over all of which is then summed, and
      where that can be done in about the time allowed.
    * *Impossible states* (entries of minus infinity) are left out first, as far as propagation finds them. Where it
      leaves a variable none, or a search has refuted every configuration, ``log Z = -inf``: both ends say so. Else the
      lower end is finite as soon as one possible configuration is found: it is the sum over all configurations that
      agree with it on some variables. Where dense tables do not fit, elimination on the possible entries alone is
      tried.
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
    >>> model = spin_glass(grid(10, 10), couplings=0.5, fields=0.5, rng=0)
    >>> narrow = bound_log_partition(model)                      # 10 x 10 is no problem: exact
    >>> narrow.width < 1e-9
    True
    >>> wide = bound_log_partition(model, max_memory=2**14, max_work=20, exact=False)
    >>> model.log_partition() in wide and wide.width < 3.0
    True
    """
    _check(model, time_limit, max_memory, max_work, delta)
    if exact and isinstance(model, Ising) and torus_of(model) is not None:
        return bound_torus(model)
    structure, theta, _ = model.restricted()
    ledger, settings, possible = Ledger(time_limit, max_work), Settings(exact, sampling, delta), True
    part = structure, theta
    if np.isneginf(theta).any():
        found = reduce(structure, theta, smaller_scopes=True)
        possible = found is not None
        part = part if found is None else (found.structure, found.theta)
    context = Context(*part, ledger, int(max_memory), seed_of(rng), n_jobs)
    if possible:
        search(context, settings)
    else:
        context.bracket.settle(-np.inf, "propagation, which leaves a variable without a possible state", 0.0)
    return _interval(context, settings, structure, theta)


def _interval(context: Context, settings: Settings, structure: Structure, theta: np.ndarray) -> Interval:
    bracket = context.bracket
    theorem = bracket.theorem()
    lower, upper, guess = bracket.lower, bracket.upper, bracket.estimate
    if guess is None:
        guess = 0.5 * (lower + upper) if np.isfinite(lower) else upper
    guess = min(max(guess, lower), upper)
    grounds = {
        "elimination": "every state is in exactly one term of the sum",
        "propagation": "only states without a possible entry in some table were removed",
        "refutes": "every value of every variable was refuted by propagation",
        "copies": "the shares of the copies add up to theta and their weights to one",
        "mini-buckets": "the weights of each bucket add up to one and its shifts to zero",
        "annealed": "the annealed estimates are independent and unbiased",
    }
    assumptions = [
        *(by_construction(text) for word, text in grounds.items() if word in theorem),
        by_construction("rounding stays within the allowance", f"{bracket.slack:.2g}, included"),
        check_simple_bounds(structure, theta, lower, upper),
    ]
    limit = context.ledger.time_limit
    details = {
        "work": context.ledger.work,
        "max_memory": context.max_memory,
        "seed": context.seed,
        "found_exact": bracket.exact,
        "exact_allowed": settings.exact,
        "sampling_allowed": settings.sampling,
        "delta": settings.delta,
        "time_limit": math.inf if limit is None else limit,
    }
    certificate = Certificate(
        "log Z", Interval(lower, upper, guess), theorem, tuple(assumptions),
        kind="with probability" if bracket.likely else "deterministic",
        delta=settings.delta if bracket.likely else None, recipe=recipe_of(certify_interval), details=details,
    )  # fmt: skip
    return Interval(lower, upper, guess, certificate)


def _check(model, time_limit, max_memory, max_work, delta) -> None:
    checks.instance("model", model, DiscreteModel, "a DiscreteModel")
    check_limits(time_limit, max_memory, max_work)
    checks.fraction("delta", delta)


@issuer
def certify_interval(model: Any, interval: Interval) -> Certificate:
    """The certificate of an interval for ``log Z`` again, by the same work on the model.

    What the work gives is compared, at both ends, with `simple_bounds`, which share no arithmetic with it; an exact
    value also with elimination in another order, where that fits into the same memory.
    """
    certificate = interval.certificate
    if certificate is None:
        raise CertificateError("this interval has no certificate: it cannot be verified")
    settings = certificate.details
    limit = settings["time_limit"]
    again = bound_log_partition(
        model,
        time_limit=None if limit == math.inf else limit,
        max_memory=int(settings["max_memory"]),
        max_work=int(settings["work"]),
        exact=bool(settings["exact_allowed"]),
        sampling=bool(settings["sampling_allowed"]),
        delta=settings["delta"],
        rng=int(settings["seed"]),
    )
    assert again.certificate is not None
    assert again.estimate is not None
    if again.certificate.theorem == "elimination":
        with contextlib.suppress(TooWide):
            other = model.log_partition(method="elimination", max_memory=int(settings["max_memory"]))
            same = other == again.estimate or abs(other - again.estimate) <= again.width
            check(same, "elimination in another order gives the same value", f"{other:.17g}")
    return again.certificate


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
    >>> model = spin_glass(grid(4, 4), couplings=0.5, fields=0.5, rng=0)
    >>> low, high = bound_marginals(model, [3])[0]
    >>> p = model.marginals()[3]
    >>> bool(np.all((low <= p) & (p <= high)))
    True
    """
    begin = time.monotonic()
    _check(model, time_limit, max_memory, max_work, delta)
    n_variables, cardinalities = model.n_variables, model.cardinalities.tolist()
    wanted = range(n_variables) if variables is None else [int(v) for v in variables]
    for v in wanted:
        if not 0 <= v < n_variables:
            raise ValueError(f"variables must be numbers from 0 to {n_variables - 1}; got {v}")
    structure, theta, free = model.restricted()
    states = {v: np.array([x]) for v, x in model._evidence.items()}  # those that may be possible, where not all are
    if np.isneginf(theta).any():
        found = reduce(structure, theta, smaller_scopes=True)
        if found is None:
            raise DomainError("every state is impossible: there is no distribution")
        states |= dict(zip(free.tolist(), found.states, strict=True))
        structure, theta, free = found.structure, found.theta, free[found.left]
    place = dict(zip(free.tolist(), range(free.size), strict=True))
    asked = [v for v in dict.fromkeys(wanted) if v in place]
    widened = _with_tables(structure, [place[v] for v in asked])
    sizes, seed, memory = [int(structure.cardinalities[place[v]]) for v in asked], seed_of(rng), Memory()
    n_searches = waiting = sum(sizes) + 1
    quickest = math.inf  # seconds of a search

    def bracket_of(tables, chance):
        nonlocal waiting, quickest
        share, started = time_limit, time.monotonic()
        if time_limit is not None:  # what is counted in pieces must not depend on the clock
            left = time_limit - (started - begin) if max_work is None else time_limit
            share = max(left, 0.0) / (waiting if max_work is None else n_searches)
        waiting -= 1
        context = Context(widened, tables, Ledger(share, max_work), int(max_memory), seed, n_jobs, memory)
        found = search(context, Settings(exact, sampling, chance))
        quickest = min(quickest, time.monotonic() - started)
        return found

    tables = np.concatenate([theta, np.zeros(sum(sizes))])
    bounds: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    quick = False
    if asked:
        first, memory.q = bracket_of(tables, delta)
        quick = first.exact
    # even a search without time looks at all tables once: too long for each of thousands of variables
    limit = math.inf if quick or max_work is not None or time_limit is None else 1.1 * time_limit + _GRACE
    for k, (at, size) in enumerate(zip((theta.size + np.cumsum(sizes) - sizes).tolist(), sizes, strict=True)):
        if time.monotonic() - begin + size * quickest > limit:
            break
        each = []
        for a in range(size):
            given = tables.copy()
            given[at : at + size] = np.where(np.arange(size) == a, 0.0, -np.inf)
            each.append(bracket_of(given, delta / size)[0])
            each[-1].theorem()  # refuses bounds that contradict each other
        low, high = np.array([one.lower for one in each]), np.array([one.upper for one in each])
        if not (high > -np.inf).any():
            raise DomainError("every state is impossible: there is no distribution")
        bounds[asked[k]] = _probabilities(low, high)
    for v, size in zip(asked, sizes, strict=True):
        if v not in bounds:  # its turn has not come
            bounds[v] = np.zeros(size), np.ones(size)
    out = []
    for v in wanted:
        low, high = bounds.get(v, (1.0, 1.0))  # what is not free has one state, or one that is left
        out.append((np.zeros(cardinalities[v]), np.zeros(cardinalities[v])))
        where = states.get(v, slice(None))
        out[-1][0][where], out[-1][1][where] = low, high
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
    """Bounds on ``Z_a / sum_b Z_b = 1 / (1 + sum_(b != a) Z_b / Z_a)`` from bounds on the logarithms.

    Everything is a difference of logarithms: a probability that underflows is not zero, and one that rounds to one is
    not certain. Only -inf, the logarithm of zero, is taken for an impossible state.
    """
    others = ~np.eye(low.size, dtype=bool)
    rest_low, rest_high = (logsumexp(np.where(others, ends, -np.inf), axis=1) for ends in (low, high))
    # log odds: inf where all others are zero
    less = np.where(rest_high == -np.inf, np.inf, np.where(low == -np.inf, 0.0, low) - rest_high)
    more = np.where(rest_low == -np.inf, np.inf, np.where(high == -np.inf, 0.0, high) - rest_low)
    sizes = np.where(np.isfinite(low), np.abs(low), 0.0).max() + np.where(np.isfinite(high), np.abs(high), 0.0).max()
    off = rounding(sizes, low.size, terms=8.0)
    lower = np.where(less == np.inf, 1.0, expit(less - off) * (1.0 - 1e-15))
    lower[lower < _SMALLEST] = 0.0
    upper = np.where(high == -np.inf, 0.0, np.maximum(expit(more + off) * (1.0 + 1e-15), _SMALLEST))
    return np.where(low == -np.inf, 0.0, lower), np.minimum(upper, 1.0)
