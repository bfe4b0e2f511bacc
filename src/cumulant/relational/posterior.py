"""What is believed of the latent variables of a network: `Posterior`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumulant.errors import CumulantError
from cumulant.relational.network import Network
from cumulant.relational.parameters import Counts


@dataclass(frozen=True, eq=False)
class Posterior:
    """Beliefs on who decides independently, and on who sways whom, given attributes and ties.

    They are exact with ``method="exact"``, an average over a Markov chain with ``"gibbs"``, and without any guarantee
    of their distance to the truth with ``"loopy"`` and ``"double_loop"``.

    Attributes
    ----------
    model : SmokersModel
    network : Network
    method : str
    independence : array (n,)
        The probability that a person decides independently.
    habits : array (n, 2, 2, 2)
        Of each person: the joint distribution of (independent, encouraged, discouraged).
    gate_people : array (gates, 2)
        Person and friend: one gate for each direction of each tie.
    gates : array (gates,)
        The probability that the friend sways the person.
    counts : Counts
        Expected numbers of uses and successes of each rule.
    log_likelihood : float or None
        ``log p(attribute, ties)``, or minus the Bethe free energy in its place; None for a Markov chain.
    converged : bool or None
        Whether messages settled; True where there is nothing to settle, None for a Markov chain.
    sweeps : int
        Sweeps, or outer loops, or states.
    change : float
        The last change of a message; in a double loop of a belief or, if that is larger, of a message of the last
        inner loop.
    trace : array
        The change in each sweep; the free energy after each outer loop.
    damping : float
        The damping of the run that is reported.
    pair_beliefs : array (n, n, 2, 2) or None
        Of each pair, ``[x, y, z_x, z_y]``; only where they were asked for.
    """

    model: Any = field(repr=False)
    network: Network = field(repr=False)
    method: str
    independence: np.ndarray
    habits: np.ndarray
    gate_people: np.ndarray
    gates: np.ndarray
    counts: Counts
    log_likelihood: float | None
    converged: bool | None
    sweeps: int
    change: float
    trace: np.ndarray
    damping: float = 0.0
    pair_beliefs: np.ndarray | None = None
    state: Any = field(default=None, repr=False)

    @property
    def free_energy(self) -> float | None:
        """Minus `log_likelihood`."""
        return None if self.log_likelihood is None else -self.log_likelihood

    @property
    def settled(self) -> bool:
        """Whether there are no messages, or they settled: only then `log_likelihood` and `counts` belong together."""
        return self.converged is not False

    def require_log_likelihood(self) -> float:
        """`log_likelihood`, which a Markov chain does not have."""
        if self.log_likelihood is None:
            raise CumulantError(
                "a Markov chain gives no log-likelihood; model.log_likelihood(network, 'ais') estimates it"
            )
        return self.log_likelihood

    def require_pair_beliefs(self) -> np.ndarray:
        """`pair_beliefs`, which are kept only where they were asked for."""
        if self.pair_beliefs is None:
            raise CumulantError("beliefs of pairs were not kept: ask for them with pairs=True")
        return self.pair_beliefs

    @property
    def encouraged(self) -> np.ndarray:
        """The probability that some friend with the attribute sways the person."""
        return self.habits[:, :, 1].sum(axis=(1, 2))

    @property
    def discouraged(self) -> np.ndarray:
        """The probability that some friend without the attribute sways the person."""
        return self.habits[:, :, :, 1].sum(axis=(1, 2))

    def __str__(self):
        if self.method == "exact":
            return f"log p = {self.log_likelihood:.6g}  (exact: {self.sweeps} states)"
        if self.log_likelihood is None:
            return f"Gibbs sampling, {self.sweeps} sweeps"
        unit = "sweeps" if self.method == "loopy" else "outer loops"
        end = "converged" if self.converged else f"NOT converged, last change {self.change:.2g}"
        change = "" if math.isfinite(self.log_likelihood) else ", not finite"
        return (
            f"log p ~ {self.log_likelihood:.6g}  (Bethe estimate without a certificate; "
            f"{self.sweeps} {unit}, {end}{change})"
        )
