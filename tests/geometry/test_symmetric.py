"""Half-vectorised symmetric matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.geometry.symmetric import side, unvech, vech


def test_inner_products_agree_and_the_round_trip_is_exact_to_rounding():
    a, b = np.random.default_rng(0).standard_normal((2, 6, 4, 4))
    a, b = a + a.swapaxes(-2, -1), b + b.swapaxes(-2, -1)
    assert vech(a).shape == (6, 10)
    assert_allclose(np.sum(vech(a) * vech(b), axis=-1), np.trace(a @ b, axis1=-2, axis2=-1), rtol=1e-12, atol=1e-12)
    assert_allclose(unvech(vech(a)), a, rtol=1e-15)


def test_the_side_of_a_vector():
    assert [side(n * (n + 1) // 2) for n in range(1, 60)] == list(range(1, 60))
    with pytest.raises(ValueError, match="no symmetric matrix has 5 distinct entries"):
        side(5)
