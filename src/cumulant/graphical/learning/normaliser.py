"""``log Z`` of a model that was learnt: exact where that fits, else within a proved interval, else annealed."""

from dataclasses import dataclass
from typing import Any

from cumulant import checks
from cumulant.certificates import Interval
from cumulant.errors import TooWide
from cumulant.graphical.bounds.log_partition import bound_log_partition
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.samplers.annealed import annealed_importance_sampling

_NARROW = 0.1  # nats: an interval of at most this width is answer enough
_SECONDS = 4.0
_CHAINS, _TEMPERATURES = 256, 1000


@dataclass(frozen=True)
class Normaliser:
    """``log Z``, how it is known, and how well.

    Attributes
    ----------
    value : float
    method : str
        ``"exact"``: by elimination or in closed form, up to rounding. ``"interval"``: the middle of a proved interval
        of at most 0.1 nats. ``"annealed"``: an estimate by annealed importance sampling.
    error : float
        0 if exact, half the width of the interval, or the standard error of the estimate: that one is no bound.
    interval : Interval or None
        What is proved, with its certificate, where it is not exact: also an estimate lies in it.
    """

    value: float
    method: str
    error: float = 0.0
    interval: Interval | None = None

    def __str__(self):
        if self.method == "exact":
            return f"log Z = {self.value:.10g}, exact"
        how = "within" if self.method == "interval" else "estimated by annealing, standard error"
        return f"log Z = {self.value:.8g}, {how} {self.error:.2g}; proved: {self.interval}"


def normaliser(model: Any, *, rng: Any = 0, time_limit: float = _SECONDS) -> Normaliser:
    """``log Z`` by elimination; where that is too wide, by `bound_log_partition` within `time_limit` seconds; where its
    interval is wider than 0.1 nats, by `annealed_importance_sampling`, kept within the interval.

    >>> from cumulant.graphical import Ising, grid
    >>> print(normaliser(Ising(grid(2, 2), 0.5)))          # 4 log(2 cosh J) + log(1 + tanh(J)^4)
    log Z = 3.297642005, exact
    """
    checks.instance("model", model, DiscreteModel, "a DiscreteModel")
    try:
        return Normaliser(model.log_partition(), "exact")
    except TooWide:
        pass
    interval = bound_log_partition(model, time_limit=time_limit)
    if interval.width <= _NARROW:
        return Normaliser(0.5 * (interval.lower + interval.upper), "interval", 0.5 * interval.width, interval)
    draws = annealed_importance_sampling(model, _CHAINS, _TEMPERATURES, rng=rng)
    assert draws.log_normaliser is not None
    assert draws.log_normaliser_error is not None
    value = min(max(draws.log_normaliser, interval.lower), interval.upper)
    return Normaliser(value, "annealed", draws.log_normaliser_error, interval)
