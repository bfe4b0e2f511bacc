"""Conditional mean field with sequential Monte Carlo: the function that users call."""

from collections.abc import Callable
from typing import Any

from cumulant import checks
from cumulant.graphical import Ising
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.particles.conditional.bridge import ConditionalMeanField, product_start
from cumulant.particles.conditional.partitions import refinements
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult


def conditional_mean_field(
    model: Ising,
    n_particles: int = 1000,
    *,
    temperatures: int = 100,
    partition: str | Callable = "halve",
    free_edges: bool = False,
    sweeps: int = 1,
    start: str = "mean_field",
    backward: str = "mixture",
    pilot: bool = False,
    resampling: str = "stratified",
    ess_threshold: float = 0.5,
    n_islands: int = 1,
    delta: float = 0.05,
    rng: Any = None,
    progress: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    client: Any = None,
) -> ParticleResult:
    """Sequential Monte Carlo from mean field to an Ising model, through approximations that the particles fit.

    The first distribution has independent spins, those of mean field. Then the spins are partitioned into finer and
    finer blocks. For each partition an Ising model without couplings inside blocks is fitted to the conditional
    distributions of the target at the particles (`ConditionalObjective`), and the particles move to it in
    `temperatures` steps along the line between the parameters. At blocks of single spins the approximation is the
    target. A step redraws one block of each particle and weighs the result with the exact backward kernel of that move
    (`BlockGibbs`); `sweeps` Gibbs sweeps over all spins follow, which change no weights.

    ``exp(log_partition())`` is consistent as the number of particles grows. It is unbiased, and has a certificate,
    where the path does not depend on the particles that are weighted: ``pilot=True``.

    A large effective size is no evidence that the particles are right. Particles from a peaked mean field may all lie
    in the same mode and weigh about the same. Compare ``start="uniform"``, and the spread of several islands
    (``n_islands``, ``result.replicate_error``); ``result.trace`` has the number of blocks and of different particles.

    Parameters
    ----------
    model : Ising
        On any graph, with or without evidence.
    n_particles, temperatures : int
    partition : str or callable
        ``"halve"`` (every block at once), ``"split_largest"``, ``"peel"`` (one spin at a time), or a function of the
        blocks and the edges that returns finer blocks; spins are numbered among those without evidence.
    free_edges : bool
        Fit the couplings between blocks too; otherwise they have the values of the target.
    sweeps : int
        Gibbs sweeps after each weighted step. 0 is the published method, which redraws a single block.
    start : str
        ``"mean_field"``, or ``"uniform"`` for fair coins.
    backward : str
        ``"mixture"``; ``"reversal"`` is the usual backward kernel of annealing, for comparison.
    pilot : bool
        Fit the approximations to another population of the same size, before; this doubles the work.
    resampling, ess_threshold, n_islands, delta, rng, progress, time_limit, n_jobs, client
        As for `run`.

    Returns
    -------
    ParticleResult

    References
    ----------
    Carbonetto (2009), "New probabilistic inference algorithms that harness the strengths of variational and Monte Carlo
    methods", thesis, chapter 4. Del Moral, Doucet and Jasra (2006), "Sequential Monte Carlo samplers".

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> model = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])
    >>> result = conditional_mean_field(model, 1000, temperatures=20, rng=0)
    >>> bool(abs(result.log_partition() - model.log_partition()) < 0.05)
    True
    >>> result.trace["n_blocks"][-1]
    np.float64(4.0)
    """
    checks.instance("model", model, Ising, "an Ising model")
    checks.whole("temperatures", temperatures)
    checks.whole("sweeps", sweeps, 0)
    checks.instance("free_edges", free_edges, bool, "True or False")
    checks.choice("start", start, ("mean_field", "uniform"))
    checks.choice("backward", backward, ("mixture", "reversal"))
    spins = IsingArrays.of(model)
    if not spins.n:
        raise ValueError("model must have a spin that is not given as evidence")
    first = product_start(spins, start)
    partitions = refinements(partition, spins.n, spins.edges)
    bridge = ConditionalMeanField(model, partitions, first, temperatures, free_edges, sweeps, backward, None, n_jobs)
    return run(
        bridge,
        n_particles,
        n_islands=n_islands,
        resampling=resampling,
        ess_threshold=ess_threshold,
        pilot=pilot,
        delta=delta,
        method="conditional mean field",
        total=bridge.n_steps,
        rng=rng,
        progress=progress,
        time_limit=time_limit,
        n_jobs=n_jobs,
        client=client,
    )
