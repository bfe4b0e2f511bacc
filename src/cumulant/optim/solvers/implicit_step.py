"""The implicit mirror step, by Newton's method in the dual variable."""

import jax
import jax.numpy as jnp

_NEWTON, _HALVINGS = 100, 60


def implicit_step(problem, entropy, dual, tau, simplex=False):
    """The dual coordinates ``v`` of ``argmin_x tau f(x) + psi(x) - <u, x>``: ``v - u + tau grad f(grad psi*(v)) = 0``.

    On the simplex, with the Shannon entropy: the same equation with ``exp(v) / sum exp(v)`` in place of ``grad psi*``,
    since the multiplier of ``sum x = 1`` adds a constant to ``grad psi(x)`` that the rescaling takes away again.

    Newton's method on that equation, whose Jacobian is ``I + tau hess f hess psi^-1``; its direction descends on the
    convex function being minimised, which serves for the line search. Points outside the domain count as failures of
    it. Dense, for up to a few hundred coordinates. What is being traced stays pure.

    Returns ``v``, a bound on ``max_i r_i - min_i r_i`` of what is left of the equation, ``r``, with its rounding, and
    whether ``r`` is small beside the dual coordinates: that of ``tau f`` is not, where ``tau`` is huge.
    """
    shape = dual.shape
    axes = tuple(range(len(shape)))
    eps = jnp.finfo(dual.dtype).eps

    def point(v):
        return jax.nn.softmax(v, axis=axes) if simplex else entropy.conjugate_gradient(v)

    def change(x, dv):  # of the point, with the dual coordinates
        return x * (dv - jnp.sum(x * dv)) if simplex else entropy.inverse_hessian_apply(x, dv)

    def equation(flat):
        v = flat.reshape(shape)
        return (v - dual + tau * problem.gradient(point(v))).reshape(-1)

    def merit(v):
        inside = jnp.all(entropy.in_conjugate_domain(v))
        x = point(jnp.where(inside, v, dual))
        # psi(x) - <u, x> up to a constant is the divergence from the last point, which does not cancel.
        phi = tau * problem.value(x) + jnp.sum(entropy.divergence(x, point(dual)))
        return jnp.where(inside, phi, jnp.inf)

    def unfinished(carry):
        _, residual, scale, k, stuck = carry
        return (residual > 4 * eps * scale) & (k < _NEWTON) & ~stuck

    def newton(carry):
        v, residual, _, k, _ = carry
        r = equation(v.reshape(-1))
        direction = -jnp.linalg.solve(jax.jacfwd(equation)(v.reshape(-1)), r).reshape(shape)
        dx = change(point(v), direction)
        slope = jnp.sum(r.reshape(shape) * dx, axis=axes)
        here = merit(v)
        fuzz = 8 * eps * jnp.abs(here)

        def refused(t):
            new = v + t * direction
            calmer = jnp.linalg.norm(jnp.where(jnp.isfinite(merit(new)), equation(new.reshape(-1)), jnp.inf)) < residual
            enough = merit(new) <= here + 1e-4 * t * slope
            return ~(enough | ((merit(new) <= here + fuzz) & calmer)) & (t > 2.0**-_HALVINGS)

        t = jax.lax.while_loop(refused, lambda t: t / 2, jnp.ones((), dual.dtype))
        stuck = ~(t > 2.0**-_HALVINGS)
        v = jnp.where(stuck, v, v + t * direction)
        return v, *_state(v), k + 1, stuck

    def _state(v):
        g = tau * problem.gradient(point(v))
        scale = jnp.linalg.norm(v) + jnp.linalg.norm(dual) + jnp.linalg.norm(g)
        return jnp.linalg.norm((v - dual + g).reshape(-1)), scale

    v, residual, *_ = jax.lax.while_loop(unfinished, newton, (dual, *_state(dual), 0, jnp.asarray(False)))
    left, g = equation(v.reshape(-1)), tau * problem.gradient(point(v))
    size = jnp.linalg.norm(v) + jnp.linalg.norm(dual)
    rounding = 16 * eps * (jnp.max(jnp.abs(v)) + jnp.max(jnp.abs(dual)) + jnp.max(jnp.abs(g)))
    return v, jnp.max(left) - jnp.min(left) + rounding, residual <= jnp.sqrt(eps) * size
