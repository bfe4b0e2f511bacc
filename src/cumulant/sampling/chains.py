"""The one loop of samplers: chains from their starts, a burn-in, and draws."""

import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks, randomness
from cumulant.precision import float64
from cumulant.sampling.draws import Draws

_PIECE = 256  # draws of one compiled call: between two of them the clock is looked at


def sample(
    sampler: Any,
    target: Any,
    n: int,
    *,
    chains: int = 4,
    burn_in: int = 1000,
    thin: int = 1,
    start: Any = None,
    rng: Any = None,
    time_limit: float | None = None,
) -> Draws:
    """`n` draws from each of several Markov chains.

    Parameters
    ----------
    sampler : Sampler
        `RandomWalk`, `MALA` or `HMC` for a `Target`; the samplers of `graphical` for its models.
    target : Target or model
    n : int
        Draws of each chain.
    burn_in, thin : int
        Transitions that are discarded first; transitions from one draw to the next.
    start : array (dim,) or (chains, dim), optional
        Standard normal for a `Target`, uniform over the states for a discrete model.
    rng : int, numpy.random.Generator or None
    time_limit : float, optional
        Seconds after which no further draws are begun: what there is is returned, ``settings["n"]`` says how much.
        Compiling and the burn-in are not interrupted.

    Returns
    -------
    Draws
        ``settings["acceptance"]`` is the share of accepted proposals of each chain, where there are proposals.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from cumulant.sampling import HMC, Target
    >>> target = Target(lambda x: -jnp.sum((x - 1.0) ** 2) / 2, 2)
    >>> draws = sample(HMC(0.5), target, 500, rng=0)
    >>> draws.values.shape, bool(draws.r_hat().max() < 1.02)
    ((4, 500, 2), True)
    """
    for name, value, method in (("sampler", sampler, "init"), ("target", target, "starts")):
        if isinstance(value, type) or not hasattr(value, method):
            raise TypeError(f"{name} must be a {name}, such as HMC(0.5) or Target(log_density, 2); got {value!r:.60}")
    require_counts(n=(n, 0), chains=(chains, 1), burn_in=(burn_in, 0), thin=(thin, 1))
    if time_limit is not None:
        checks.positive("time_limit, in seconds,", time_limit, finite=False)
    seed = randomness.seed(rng)
    settings: dict[str, Any] = {"seed": seed, "burn_in": burn_in, "thin": thin}
    begun = time.perf_counter()
    pieces: list[np.ndarray] = []
    with float64():
        state = sampler.init(target, target.starts(chains, start, seed), seed)
        done = 0
        while done < n or not pieces:
            size = n - done if sampler.backend == "host" and time_limit is None else min(_PIECE, n - done)
            if sampler.backend == "jax":
                state, values = _advance(sampler, target, state, burn_in if done == 0 else 0, thin, size)
                values = np.asarray(values).swapaxes(0, 1)
            else:
                state, values = sampler.advance(target, state, size, burn_in if done == 0 else 0, thin)
            pieces.append(values)
            done += size
            if time_limit is not None and time.perf_counter() - begun > time_limit:
                break
        settings |= {"n": done, **sampler.report(state)}
    return Draws(np.concatenate(pieces, axis=1), type(sampler).__name__, settings, variables=target.shapes)


@functools.partial(jax.jit, static_argnames=("n",))
def _advance(sampler, target, state, burn_in, thin, n):
    def keep(state, count):
        state = jax.lax.fori_loop(0, count, lambda _, s: sampler.step(target, s), state)
        return state, state.x

    # The burn-in belongs to the first draw, so that the step is compiled once; without draws there is only the burn-in.
    counts = jnp.full(max(n, 1), thin if n else 0).at[0].add(burn_in)
    state, values = jax.lax.scan(keep, state, counts)
    return state, values[:n]


def require_counts(**counts: tuple[Any, int]) -> None:
    """Refuse what is not a whole number from its least value on: ``require_counts(n=(n, 0))``."""
    for name, (value, least) in counts.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number from {least} on; got {value!r}")
