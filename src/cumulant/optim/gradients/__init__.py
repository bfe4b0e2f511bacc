"""Where stochastic solvers get their gradients from: exact, by rows, noisy, sampled; with the constants of their noise.

An oracle is called as ``oracle(problem, x, step, key)`` and returns an estimate of ``grad f(x)``. Where it is unbiased,
``oracle.noise(problem, x_star)`` gives ``a`` and ``b`` with ``E |g - grad f(x)|^2 <= a |x - x*|^2 + b`` for every
``x``; `rates.noisy_gradient` turns them into a guarantee.
"""

from cumulant.optim.gradients.oracles import ByRows, Exact, Fresh, Noise, Noisy, Sampled, check_oracle

__all__ = ["ByRows", "Exact", "Fresh", "Noise", "Noisy", "Sampled", "check_oracle"]
