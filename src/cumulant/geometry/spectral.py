"""Entropies of symmetric matrices: a separable entropy of the eigenvalues.

``psi(X) = sum_i psi_0(lambda_i)``, ``grad psi(X) = U psi_0'(lambda) U^T`` (Lewis 1996; Peyré 2021, remark 8). Matrices
lie on the last two axes; symmetry is required of arguments and gradients are with respect to the trace inner product.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from cumulant.geometry._calling import is_symmetric
from cumulant.geometry.entropies import Shannon
from cumulant.geometry.entropy import DIVERGENCE_RULE, NEAR, Entropy, Separable, entropy_type, integral
from cumulant.geometry.spectral_maps import compose, congruence, eigen, transpose


class _Matrix(Entropy):
    """An entropy of symmetric matrices."""

    event_ndim = 2

    form = "symmetric and finite"

    def _has_gradient(self, x):
        return self._in_interior(x)  # on the boundary infinite eigenvalues would meet in one entry

    def _formed(self, value):
        return is_symmetric(value) & jnp.all(jnp.isfinite(value), axis=(-2, -1))


@entropy_type
@dataclass(frozen=True)
class Spectral(_Matrix):
    """The lift of a separable entropy to symmetric matrices: ``psi(X) = psi_0(eigenvalues of X)``.

    The Hessian is ``U (Gamma o U^T S U) U^T`` with the secants of ``psi_0'`` (Daleckii and Krein 1965), and its inverse
    divides by them. Eigenvalues of matrices with a half-line domain that are negative only by rounding count as zero.
    First and second derivatives survive repeated eigenvalues; third ones, through the eigenvectors, do not.

    Parameters
    ----------
    base : Separable
        The entropy of the eigenvalues, with scalar parameters.

    Examples
    --------
    >>> from cumulant.geometry import Hypentropy
    >>> psi = Spectral(Hypentropy(1.0))
    >>> psi.conjugate_gradient(psi.gradient([[2.0, 1.0], [1.0, -1.0]])).round(12)
    array([[ 2.,  1.],
           [ 1., -1.]])
    """

    base: Any

    def __post_init__(self):
        if isinstance(self.base, Entropy) and not isinstance(self.base, Separable):
            raise TypeError(f"base of Spectral must be an entropy of vectors; got {self.base!r}")

    @property
    def closure(self) -> str:
        """Where points must lie."""
        return f"a matrix with eigenvalues {self.base.closure}"

    @property
    def interior(self) -> str:
        """Where points must lie for a Hessian to exist."""
        return f"a matrix with eigenvalues {self.base.interior}"

    @property
    def conjugate_closure(self) -> str:
        """Where dual coordinates must lie."""
        return f"a matrix with eigenvalues {self.base.conjugate_closure}"

    def _eigen(self, x):
        values, basis = eigen(x)
        if self.base.positive:
            size = jnp.max(jnp.abs(values), axis=-1, keepdims=True, initial=0.0)
            rounding = values.shape[-1] * jnp.finfo(values.dtype).eps * size
            values = jnp.where((values < 0) & (values >= -rounding), 0.0, values)
        return values, basis

    def _value(self, x):
        return self.base._value(self._eigen(x)[0])

    def _gradient(self, x):
        values, basis = self._eigen(x)
        return compose(basis, self.base._gradient(values))

    def _conjugate(self, u):
        return self.base._conjugate(eigen(u)[0])

    def _conjugate_gradient(self, u):
        values, basis = eigen(u)
        return compose(basis, self.base._conjugate_gradient(values))

    def _hessian_apply(self, x, v):
        values, basis = self._eigen(x)
        return self._in_basis(values, basis, v, lambda secants, inner: secants * inner)

    def _inverse_hessian_apply(self, x, v):
        values, basis = self._eigen(x)
        return self._in_basis(values, basis, v, lambda secants, inner: inner / secants)

    def _in_basis(self, values, basis, v, combine):
        inner = congruence(transpose(basis), (v + transpose(v)) / 2)
        return congruence(basis, combine(self.base._secant(values[..., :, None], values[..., None, :]), inner))

    def _divergence(self, x, y):
        """``sum_ij <u_i, v_j>^2 D_0(lambda_i|eta_j)``: no term is negative. Closer still, by quadrature."""
        x, y = jnp.broadcast_arrays(x, y)
        (lam, left), (eta, right) = self._eigen(x), self._eigen(y)
        overlap = (transpose(left) @ right) ** 2
        pieces = self.base._pieces(lam[..., :, None], eta[..., None, :])
        # Eigenvectors are orthogonal up to rounding only: a shared null space must not cost infinity.
        none = jnp.isinf(pieces) & (overlap <= (x.shape[-1] * jnp.finfo(x.dtype).eps) ** 2)
        far = jnp.sum(jnp.where(none, 0.0, overlap * pieces), axis=(-2, -1))

        step = (x - y + transpose(x - y)) / 2
        reach = self.base._reach(eta)
        relative = congruence(transpose(right), step) / jnp.sqrt(reach[..., :, None] * reach[..., None, :])
        near = jnp.sqrt(jnp.sum(relative**2, axis=(-2, -1))) <= NEAR

        def quadrature():
            return integral(
                DIVERGENCE_RULE, lambda z: jnp.sum(step * self._hessian_apply(z, step), axis=(-2, -1)), y, step
            )

        close = jax.lax.cond(jnp.any(near), quadrature, lambda: far)
        return jnp.where(near, close, far)

    def _in_domain(self, x):
        return self._formed(x) & self.base._in_domain(self._eigen(_or_identity(x, self._formed(x)))[0])

    def _in_conjugate_domain(self, u):
        return self._formed(u) & self.base._in_conjugate_domain(eigen(_or_identity(u, self._formed(u)))[0])

    def _in_closure(self, x):
        return jnp.all(self.base._in_closure(self._eigen(x)[0]), axis=-1)

    def _in_interior(self, x):
        return jnp.all(self.base._in_interior(self._eigen(x)[0]), axis=-1)

    def _in_conjugate_closure(self, u):
        return jnp.all(self.base._in_conjugate_closure(eigen(u)[0]), axis=-1)


@entropy_type
@dataclass(frozen=True)
class VonNeumann(Spectral):
    """``psi(X) = tr(X log X - X + I)`` on positive semi-definite matrices; ``D(X|Y) = tr(X log X - X log Y - X + Y)``.

    ``grad psi = log X``, ``grad psi* = exp U``. The Shannon entropy of the eigenvalues.

    >>> float(VonNeumann().divergence([[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]))      # 3 log 3 - 2
    1.29583686600432...
    """

    base: Any = field(default=Shannon())


@entropy_type
@dataclass(frozen=True)
class LogDet(_Matrix):
    """``psi(X) = -log det X`` on positive definite matrices; ``D(X|Y) = tr(X Y^-1) - log det(X Y^-1) - d`` (Stein).

    ``grad psi = -X^-1``, ``psi*(U) = -d - log det(-U)`` for negative definite ``U``, ``hess psi(X)[S] = X^-1 S X^-1``
    and its inverse is ``X S X``. By Cholesky factors. The divergence is a function of the eigenvalues of
    ``Y^-1/2 (X - Y) Y^-1/2``, and so accurate for close matrices.

    >>> float(LogDet().divergence([[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]))          # 2 - log 3
    0.90138771133189...
    """

    closure = "a positive definite matrix"
    conjugate_closure = "a negative definite matrix"

    def _value(self, x):
        return -_log_det(x)

    def _gradient(self, x):
        return -_inverse(x)

    def _conjugate(self, u):
        return -u.shape[-1] - _log_det(-u)

    def _conjugate_gradient(self, u):
        return _inverse(-u)

    def _hessian_apply(self, x, v):
        return congruence(_inverse(x), (v + transpose(v)) / 2)

    def _inverse_hessian_apply(self, x, v):
        return congruence(x, (v + transpose(v)) / 2)

    def _divergence(self, x, y):
        x, y = jnp.broadcast_arrays(x, y)
        factor = _cholesky(y)
        half = solve_triangular(factor, (x - y + transpose(x - y)) / 2, lower=True)
        ratio_less_one = eigen(solve_triangular(factor, transpose(half), lower=True))[0]
        # x/y - log(x/y) - 1 at the ratio 1 + m; the eigenvalue m carries more digits than 1 + m.
        return jnp.sum(_stein(ratio_less_one), axis=-1)

    def _in_domain(self, x):
        return self._formed(x) & (eigen(_or_identity(x, self._formed(x)))[0][..., 0] > 0)

    def _in_conjugate_domain(self, u):
        return self._in_domain(-u)

    def _in_closure(self, x):
        return eigen(x)[0][..., 0] > 0

    def _in_interior(self, x):
        return self._in_closure(x)

    def _in_conjugate_closure(self, u):
        return self._in_closure(-u)


def _or_identity(x, fine):
    """The matrices that are fine, and identities for the others, whose eigenvalues nobody will read."""
    return jnp.where(fine[..., None, None], x, np.eye(x.shape[-1], dtype=x.dtype))


def _cholesky(x):
    return jnp.linalg.cholesky((x + transpose(x)) / 2, symmetrize_input=False)


def _log_det(x):
    """The logarithm of the determinant, and minus infinity where the matrix is not positive definite."""
    diagonal = jnp.diagonal(_cholesky(x), axis1=-2, axis2=-1)
    return jnp.where(jnp.all(diagonal > 0, axis=-1), 2 * jnp.sum(jnp.log(diagonal), axis=-1), -jnp.inf)


def _inverse(x):
    factor = _cholesky(x)
    half = solve_triangular(factor, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape), lower=True)
    return transpose(half) @ half


def _stein(m):
    """``m - log(1 + m)``, and ``+inf`` from -1 down, by the two formulas of `Separable`."""
    near = m * (m * integral(DIVERGENCE_RULE, lambda ratio: 1 / ratio**2, jnp.ones_like(m), m))
    far = jnp.where(m > -1, m - jnp.log(jnp.where(m > -1, 1 + m, 1.0)), jnp.inf)
    return jnp.where(jnp.abs(m) <= NEAR, near, far)
