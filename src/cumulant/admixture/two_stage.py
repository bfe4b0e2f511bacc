"""Two-stage Gibbs sampling of an admixture: frequencies and memberships, then the components of all tokens."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.admixture.model import AdmixtureModel
from cumulant.admixture.two_stage_kernels import two_stage_chain
from cumulant.threads import side_by_side


class TwoStageChains(NamedTuple):
    """The components of all tokens in each chain, and the sweeps done."""

    x: np.ndarray
    sweeps: int
    seed: int


@dataclasses.dataclass(frozen=True)
class TwoStageGibbs:
    """Draw ``beta_k | z ~ Dirichlet(eta* + m_k)`` and ``tau_d | z ~ Dirichlet(nu* + n_d)``, then every ``z_di`` with
    ``P(k)`` proportional to ``tau_dk beta_kj``: the sampler of STRUCTURE.

    With `exchange`, a sweep ends with proposals to exchange two components in all tokens of a document: memberships
    hold them together, so that sweeps alone rarely move a whole document.

    A draw has the variables ``"memberships"`` and ``"frequencies"``. The draws of a chain depend on the seed and on the
    number of the chain, not on `n_jobs`.

    Pritchard, Stephens and Donnelly (2000), "Inference of population structure using multilocus genotype data".

    Examples
    --------
    >>> from cumulant import sampling
    >>> from cumulant.admixture import AdmixtureModel, Corpus
    >>> model = AdmixtureModel(Corpus.from_counts([[9, 1, 0], [0, 1, 9]]), 2)
    >>> draws = sampling.sample(TwoStageGibbs(), model, 200, chains=2, burn_in=50, rng=0)
    >>> draws["memberships"].shape, draws["frequencies"].shape
    ((2, 200, 2, 2), (2, 200, 2, 3))
    """

    exchange: bool = False
    n_jobs: int | None = None

    backend: ClassVar[str] = "host"

    def init(self, model: AdmixtureModel, x0: Any, rng: Any) -> TwoStageChains:
        """Chains whose tokens have the components ``x0``, one row each."""
        return TwoStageChains(np.array(x0, np.int32), 0, randomness.seed(rng))

    def step(self, model: AdmixtureModel, state: TwoStageChains) -> TwoStageChains:
        """One sweep of every chain, in place."""
        return self.advance(model, state, 0, 1, 1)[0]

    def advance(
        self, model: AdmixtureModel, state: TwoStageChains, n: int, burn_in: int, thin: int
    ) -> tuple[TwoStageChains, np.ndarray]:
        """``burn_in + n * thin`` sweeps in place, and the `n` draws of each chain."""
        sweeps = burn_in + n * thin
        if state.sweeps + sweeps >= 2**32:
            raise ValueError(f"burn_in + n * thin must be below 2**32 sweeps; got {state.sweeps + sweeps}")
        corpus, k = model.corpus, model.n_components
        totals, eta = model.totals.astype(np.float64), np.full((k, corpus.n_words), float(model.allele_prior))
        found = np.empty((len(state.x), n, k * (corpus.n_documents + corpus.n_words)))

        def work(c):
            two_stage_chain(
                corpus.document, corpus.word, corpus.locus_starts, totals, eta, float(model.membership_prior),
                state.x[c], found[c], state.sweeps, burn_in, thin, self.exchange, state.seed, c,
            )  # fmt: skip

        side_by_side(work, len(state.x), self.n_jobs)
        return state._replace(sweeps=state.sweeps + sweeps), found

    def report(self, state: TwoStageChains) -> dict[str, Any]:
        """Nothing besides the seed."""
        return {}
