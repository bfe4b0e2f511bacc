"""Models written for NumPyro, as targets: in free coordinates, with draws in the model's own spaces."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from cumulant import randomness
from cumulant.precision import float64, to_numpy
from cumulant.pytrees import pytree
from cumulant.sampling import ConstrainedTarget

_STATIC: Any = {"static": True}


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class NumPyroTarget(ConstrainedTarget):
    """The posterior of a NumPyro model in free coordinates. Made by `from_numpyro`."""

    own_spaces: Callable[..., Any] = dataclasses.field(default=dict, metadata=_STATIC)
    own_shapes: tuple[tuple[str, tuple[int, ...]], ...] = dataclasses.field(default=(), metadata=_STATIC)

    def at(self, x: Any) -> Any:
        """The log-density of the free coordinates, in plain JAX."""
        return self.function(self.unflatten(x))

    def constrain(self, x: Any) -> dict[str, np.ndarray]:
        """Free coordinates ``(..., dim)`` as the model's variables, by name."""
        x = np.asarray(x, dtype=np.float64)
        with float64():
            placed = to_numpy(jax.vmap(lambda v: self.own_spaces(self.unflatten(v)))(x.reshape(-1, self.dim)))
        return {name: placed[name].reshape(*x.shape[:-1], *shape) for name, shape in self.own_shapes}

    @property
    def constrained_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable in its own space."""
        return dict(self.own_shapes)


def from_numpyro(model: Callable, *args: Any, rng: Any = 0, **kwargs: Any) -> NumPyroTarget:
    """The posterior of a NumPyro model given its data, for `fit`; needs NumPyro.

    Parameters
    ----------
    model : callable
        A NumPyro model of continuous variables.
    *args, **kwargs
        What the model is called with: its data. NumPy arrays are computed in float64.

    Examples
    --------
    ::

        def model(y):
            mu = numpyro.sample("mu", dist.Normal(0, 10))
            sigma = numpyro.sample("sigma", dist.HalfNormal(5))
            numpyro.sample("y", dist.Normal(mu, sigma), obs=y)

        posterior = vi.fit(vi.from_numpyro(model, y))
        posterior.sample(1000)["sigma"]
    """
    try:
        initialize_model = importlib.import_module("numpyro.infer.util").initialize_model
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] != "numpyro":
            raise
        raise ModuleNotFoundError("from_numpyro needs NumPyro: pip install numpyro", name="numpyro") from None
    if not callable(model):
        raise TypeError(f"model must be a NumPyro model, a function; got {type(model).__name__}")
    with float64():
        info = initialize_model(
            jax.random.key(randomness.seed(rng)), model, model_args=args, model_kwargs=kwargs, validate_grad=False
        )
        start = info.param_info.z
        if not start:
            raise ValueError("the model has no continuous variable that is not observed")
        own = info.postprocess_fn(start)
    shapes = {name: tuple(np.shape(value)) for name, value in start.items()}
    own_shapes = tuple((name, tuple(np.shape(value))) for name, value in own.items())
    return NumPyroTarget(lambda x: -info.potential_fn(x), shapes, own_spaces=info.postprocess_fn, own_shapes=own_shapes)
