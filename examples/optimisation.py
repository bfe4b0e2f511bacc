"""Sparse robust regression for users of jaxopt: `python examples/optimisation.py`.

A loss that the library does not know, an l1 penalty on the weights alone, step sizes by backtracking, and the strength
of the penalty by its gradient through the solution.
"""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_diabetes

from cumulant import layers, optim

X, Y = load_diabetes(return_X_y=True)
X, Y = X / X.std(axis=0), (Y - Y.mean()) / Y.std()
TRAIN, TEST = (X[:300], Y[:300]), (X[300:], Y[300:])
START = {"weights": np.zeros(10), "intercept": 0.0}


def pseudo_huber(model, data):
    """``mean sqrt(1 + r^2) - 1`` of the residuals ``r``."""
    X, y = data
    return jnp.mean(jnp.sqrt(1 + (X @ model["weights"] + model["intercept"] - y) ** 2) - 1)


def held_out_error(log_strength):
    """The error on held-out patients of the fit with this strength."""
    penalty = {"weights": optim.L1(jnp.exp(log_strength)), "intercept": None}
    return pseudo_huber(layers.argmin(pseudo_huber, START, TRAIN, penalty=penalty, tol=1e-8), TEST)


def main() -> None:
    """Run the example."""
    log_strength = np.log(0.02)
    with jax.enable_x64(True):
        slope = jax.jit(jax.value_and_grad(held_out_error))
        for _ in range(10):
            error, gradient = slope(log_strength)
            log_strength -= 20.0 * float(gradient)
    strength = float(np.exp(log_strength))
    print(f"strength {strength:.4f}, error on held-out patients {float(error):.4f}")
    penalty = {"weights": optim.L1(strength), "intercept": None}
    problem = optim.Composite(optim.Objective(pseudo_huber, TRAIN, convex=True), penalty)
    solver = optim.AcceleratedProximalGradient(restart=True)
    result = optim.run(solver, problem, START, residual_tol=1e-8, max_steps=5000)
    print(result)
    print("weights", np.round(result.x["weights"], 3))


if __name__ == "__main__":
    main()
