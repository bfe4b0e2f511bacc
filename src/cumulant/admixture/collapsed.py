"""Collapsed Gibbs sampling from a corpus to posterior means: `collapsed_gibbs`."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.admixture.collapsed_kernels import add_draw
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.admixture.collapsed_result import CollapsedResult, Sums
from cumulant.admixture.collapsed_sampler import CollapsedGibbs
from cumulant.admixture.data import Corpus
from cumulant.optim.driver.display import Display
from cumulant.optim.driver.interruption import InterruptedWarning, Interruption
from cumulant.threads import side_by_side

_PIECE = 2_000_000  # tokens of a chain between two looks at the clock


def collapsed_gibbs(
    corpus: Corpus,
    n_components: int,
    *,
    document_prior: Any = 0.1,
    word_prior: Any = 0.1,
    n_sweeps: int = 1000,
    burn_in: int = 500,
    thin: int = 10,
    n_chains: int = 4,
    init: Any = None,
    keep: bool = False,
    rng: Any = None,
    progress: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> CollapsedResult:
    """Sample the components of all tokens given the words (Griffiths and Steyvers 2004).

    Sweeps are those of `CollapsedGibbs`: exact, one token after the other. Chains run on threads of their own; the
    answer depends on the seed only, not on their number.

    Parameters
    ----------
    corpus : Corpus
    n_components : int
        Topics, or populations.
    document_prior, word_prior : float, or array (components,) and (words,)
        Of the Dirichlet distributions of memberships and of frequencies.
    n_sweeps, burn_in, thin : int
        After `burn_in` sweeps, every `thin`-th of `n_sweeps` is a draw.
    n_chains : int
    init : array (tokens,) or (chains, tokens), optional
        Where chains begin; by default each token has a component drawn uniformly.
    keep : bool
        Keep the components of all tokens at every draw: one or two bytes for each token.
    rng : int, numpy.random.Generator or None
    progress : bool, str or None
    time_limit : float, optional
        Seconds after which no further sweeps are begun.

    Returns
    -------
    CollapsedResult
        Ctrl-C (with an `InterruptedWarning`) and the clock end a run between two sweeps; `CollapsedResult.resume`
        continues it.

    Examples
    --------
    >>> corpus = Corpus.from_counts([[9, 8, 0, 0], [0, 0, 9, 8], [5, 4, 4, 5]])
    >>> result = collapsed_gibbs(corpus, 2, n_sweeps=500, burn_in=100, rng=0)
    >>> tau = result.memberships()
    >>> bool(abs(tau[0, 0] - tau[1, 0]) > 0.9), bool(abs(tau[2, 0] - 0.5) < 0.2), tau.shape
    (True, True, (3, 2))
    >>> longer = result.resume(500)
    >>> longer.log_joint.shape, bool((longer.log_joint[:, :50] == result.log_joint).all())
    ((4, 100), True)
    """
    posterior = CollapsedPosterior(corpus, n_components, document_prior, word_prior)
    checks.whole("n_sweeps", n_sweeps)
    begun = begin_chains(posterior, n_chains, burn_in, thin, init, keep, randomness.seed(rng))
    return run_chains(begun, burn_in + n_sweeps, progress, time_limit, n_jobs)


def begin_chains(
    posterior: CollapsedPosterior, n_chains: int, burn_in: int, thin: int, init: Any, keep: bool, seed: int
) -> CollapsedResult:
    """Chains before their first sweep."""
    checks.whole("burn_in", burn_in, 0)
    checks.whole("thin", thin)
    checks.whole("n_chains", n_chains)
    state = CollapsedGibbs().init(posterior, posterior.starts(n_chains, init, seed), seed)
    kept = None
    if keep:
        kept = np.empty((n_chains, 0, posterior.corpus.n_tokens), np.min_scalar_type(posterior.n_components - 1))
    none = np.empty((n_chains, 0))
    return CollapsedResult(posterior, state, burn_in, thin, "max_steps", none, Sums.zeros(posterior, n_chains), kept)


def run_chains(
    begun: CollapsedResult,
    until: int,
    progress: Any,
    time_limit: float | None,
    n_jobs: int | None,
    watch: Callable[[int, int, np.ndarray], None] | None = None,
) -> CollapsedResult:
    """Continue to sweep `until`, or until the clock or Ctrl-C ends it; `begun` is left as it is.

    ``watch(chain, draw, z)`` sees the components of all tokens at every draw.
    """
    if time_limit is not None:
        checks.positive("time_limit, in seconds,", time_limit, finite=False)
    posterior, burn_in, thin = begun.posterior, begun.burn_in, begun.thin
    sampler, state = CollapsedGibbs(n_jobs=n_jobs), begun.state._replace(x=begun.state.x.copy())
    sums = Sums(*(each.copy() for each in begun.sums))
    chains = len(state.x)
    counts = np.empty((chains, *sums.members.shape[1:]), np.int32)
    trace, kept = [begun.log_joint], [] if begun.assignments is None else [begun.assignments]
    most, status = max(1, _PIECE // max(posterior.corpus.n_tokens, 1)), "max_steps"
    started, shown, value = time.perf_counter(), -math.inf, math.nan

    def record(chain):
        _add(posterior, state.x[chain], counts[chain], Sums(*(each[chain] for each in sums)))
        if watch is not None:
            watch(chain, (state.sweeps - burn_in) // thin - 1, state.x[chain])
        return posterior.log_joint(state.x[chain])

    with Interruption() as interruption, Display(progress, "collapsed Gibbs", until) as display:
        while state.sweeps < until:
            after = state.sweeps - burn_in
            stop = burn_in if after < 0 else burn_in + (after // thin + 1) * thin
            piece = min(stop, until, state.sweeps + most) - state.sweeps
            state, _ = sampler.advance(posterior, state, 0, piece, 1)
            if state.sweeps == stop and stop > burn_in:
                trace.append(np.array(side_by_side(record, chains, n_jobs))[:, None])
                value = float(trace[-1][0, 0])
                if begun.assignments is not None:
                    kept.append(state.x.astype(begun.assignments.dtype)[:, None])
            elapsed = time.perf_counter() - started
            if state.sweeps < burn_in and elapsed > shown + 1.0:
                value, shown = posterior.log_joint(state.x[0]), elapsed
            display.update(state.sweeps, elapsed, value, math.inf)
            if state.sweeps < until and (interruption.requested or (time_limit is not None and elapsed > time_limit)):
                status = "interrupted" if interruption.requested else "time_limit"
                break
    if status == "interrupted":
        warnings.warn(
            f"interrupted after {state.sweeps} of {until} sweeps: the draws are those so far, resume() continues",
            InterruptedWarning,
            stacklevel=3,
        )
    return dataclasses.replace(
        begun,
        state=state,
        status=status,
        log_joint=np.concatenate(trace, axis=1),
        sums=sums,
        assignments=np.concatenate(kept, axis=1) if kept else None,
    )


def _add(posterior: CollapsedPosterior, z: np.ndarray, counts: np.ndarray, sums: Sums) -> None:
    corpus = posterior.corpus
    weights = 1.0 / (posterior.locus_prior[:, None] + posterior.totals(z))
    sums.inverse[:] += weights
    add_draw(
        corpus.document, corpus.word, posterior.tokens.locus, z, weights, counts,
        sums.members, sums.squares, sums.frequencies,
    )  # fmt: skip
