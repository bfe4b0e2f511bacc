"""What a sampler is: the contract between `sample` and everything it runs.

A **sampler** is a frozen dataclass of settings with

* ``init(target, x0, rng) -> state``: the state of a batch of chains started at ``x0``, one row each;
* ``step(target, state) -> state``: one transition of every chain, which leaves the target's distribution as it is;
* ``report(state) -> dict``: what the settings of the draws should say, such as the share of accepted proposals.

A target says where chains begin (``starts(chains, start, seed)``) and what the variables of a draw are (``shapes``).

``state.x`` holds the current states, one row for each chain, and the state holds all randomness, so that a run that is
continued equals one that was never stopped. With ``backend = "jax"`` a step is pure and `sample` compiles many of them
into one call. With ``backend = "host"`` it may change its state in place, and the sampler also has

* ``advance(target, state, n, burn_in, thin) -> (state, values)``: ``burn_in + n * thin`` transitions at once, and every
  ``thin``-th state after the first ``burn_in``, in the values that users see, ``(chains, n, ...)``.

Chain ``c`` depends on the seed and on ``c`` only, never on the number of chains or threads (host backend).
"""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Sampler(Protocol):
    """A Markov transition with settings: `init` and `step` over a batch of chains.

    >>> from cumulant import sampling
    >>> isinstance(sampling.HMC(0.1), Sampler), sampling.HMC(0.1).backend
    (True, 'jax')
    """

    backend: str

    def init(self, target: Any, x0: Any, rng: Any) -> Any:
        """The state of chains started at ``x0``, shape ``(chains, ...)``."""
        ...

    def step(self, target: Any, state: Any) -> Any:
        """The state one transition later."""
        ...

    def report(self, state: Any) -> dict[str, Any]:
        """What the settings of the draws should say about a run that ended in this state."""
        ...
