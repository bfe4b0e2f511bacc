"""What the experiments on categorical cause-effect models share: problems, tuned runs, and their summaries."""

import numpy as np

from cumulant import causal

SOURCE = "Le Priol (2021), thesis, chapter 4"
K, BUDGET = 20, 100  # values of each variable; step sizes are compared after K^2 / 4 observations
STEPS = (0.03, 0.1, 0.3, 1.0, 3.0, 9.0, 30.0)


def adapt(prior: str, target: str, n: int, T: int, rng: int) -> causal.Trajectories:
    """`n` problems of a prior, the same references for every target."""
    streams = np.random.SeedSequence(rng).generate_state(5).tolist()
    reference = causal.sample_reference(K, n, prior, rng=streams[0])
    place = ("cause", "effect", "single").index(target)
    transfer = reference.intervene(target, rng=streams[1 + place])
    return causal.adapt_categorical(reference, transfer, T, STEPS, rng=streams[4])


def means(best: causal.Tuned, time: int = BUDGET) -> str:
    """Mean divergences of the causal, anticausal and joint model at a time, with their step sizes."""
    place = int(np.flatnonzero(best.times == time)[0])
    found = (
        f"{best.mean(model)[place]:.3g} (step {step:g})"
        for model, step in zip(best.models, best.step_sizes, strict=True)
    )
    return " / ".join(found)


def distances(best: causal.Tuned) -> str:
    """Mean squared distances at the start."""
    return " / ".join(f"{getattr(best.distances, model).mean():.3g}" for model in best.models)


def lower(best: causal.Tuned, first: str = "causal", second: str = "anticausal") -> float:
    """How often one model is ahead of another at the budget."""
    return float(np.mean(best.at_budget(first) < best.at_budget(second)))


def lead(best: causal.Tuned, first: str, second: str) -> float:
    """By how many standard errors the mean divergence of the first is below that of the second."""
    ahead = best.at_budget(second) - best.at_budget(first)
    return float(ahead.mean() / (ahead.std(ddof=1) / np.sqrt(len(ahead))))
