"""The rule of precision, and each of the traps it avoids."""

import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import families as fam
from cumulant import precision, randomness
from cumulant.precision import precise, to_jax

POISSON, GAMMA = fam.Poisson(), fam.Gamma()
THETA = GAMMA.natural(shape=2.0, rate=3.0)


@precise
def double(x, offset=0.0):
    return 2 * x + offset


@precise(static=("power",))
def raised(x, *, power):
    return x**power


@pytest.mark.parametrize("x", [1.5, np.float32(1.5), np.float64(1.5)])
def test_numbers_come_back_as_float64_scalars(x):
    assert type(double(x)) is np.float64
    assert double(x) == 3.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy_of_any_width_is_computed_in_float64(dtype):
    x = np.array([1.0, 2.0], dtype=dtype)
    third = precise(lambda v: v / 3)(x)
    assert third.dtype == np.float64
    assert third[0] == 1 / 3


def test_answers_may_be_written_to():
    answer = double(np.ones(3))
    answer[0] = 7.0
    assert answer[0] == 7.0


def test_jax_arrays_keep_the_callers_precision_and_kind():
    assert isinstance(double(jnp.ones(2)), jax.Array)
    assert double(jnp.ones(2)).dtype == jnp.float32
    with jax.enable_x64(True):
        assert np.asarray(double(jnp.ones(2))).dtype == np.float64


def test_one_jax_argument_decides_for_all():
    assert isinstance(double(np.ones(2), jnp.ones(2)), jax.Array)
    assert double(np.ones(2), jnp.ones(2)).dtype == jnp.float32


def test_lists_are_arrays_and_tuples_of_arrays_are_structures():
    assert double([1.0, 2.0]).shape == (2,)
    assert double((1.0, 2.0)).shape == (2,)
    assert double([[1.0], [2.0]]).shape == (2, 1)
    assert isinstance(to_jax((np.ones(2), np.ones(3))), tuple)


def test_static_arguments_are_part_of_the_program():
    assert raised([2.0, 3.0], power=2).tolist() == [4.0, 9.0]


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([1j]), np.array([None], dtype=object)])
def test_what_is_not_a_real_number_is_refused_by_name(bad):
    with pytest.raises(TypeError, match="x must be an array of real numbers"):
        double(bad)


def test_no_float64_array_leaves_a_context():
    for answer in (
        GAMMA.log_partition(THETA),
        GAMMA.to_mean(THETA),
        GAMMA.fisher(THETA),
        GAMMA.sample(THETA, 3, rng=0),
    ):
        assert not isinstance(answer, jax.Array)
    # The trap: a float64 JAX array made inside the context is silently narrowed by the next operation outside it.
    with jax.enable_x64(True):
        leaked = jnp.asarray(1.0) / 3
    assert leaked.dtype == np.float64
    assert (leaked * jnp.ones(())).dtype == jnp.float32


def test_nothing_global_is_changed_by_importing_or_computing():
    code = (
        "import jax, numpy as np; before = (jax.config.jax_enable_x64, np.geterr());"
        "from cumulant import families as f; g = f.Gamma(); g.mle([1.0, 2.0]);"
        "assert (jax.config.jax_enable_x64, np.geterr()) == before;"
        "import jax.numpy as jnp; assert jnp.ones(1).dtype == jnp.float32"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_worker_threads_enter_their_own_context():
    answers = {}

    def work(i):
        answers[i] = GAMMA.log_partition(THETA)
        answers[-i - 1] = jnp.ones(1).dtype  # and leave it: the flag is not on in the thread itself

    with jax.enable_x64(True):  # not inherited by the threads
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {answers[i] for i in range(4)} == {GAMMA.log_partition(THETA)}
    assert all(answers[i].dtype == np.float64 for i in range(4))
    assert all(answers[-i - 1] == jnp.float32 for i in range(4))


def test_a_key_draws_other_numbers_with_the_flag_on_so_draws_are_made_inside():
    key = randomness.key(0)
    with jax.enable_x64(True):
        wide = np.asarray(jax.random.normal(key, (3,)))
    narrow = np.asarray(jax.random.normal(key, (3,)))
    assert not np.allclose(wide, narrow, atol=1e-3)  # the trap itself
    normal = fam.Normal()
    theta = normal.natural(mean=0.0, variance=1.0)
    first = normal.sample(theta, 3, rng=0)
    with jax.enable_x64(True):  # the user's own flag does not change what a seed means
        second = normal.sample(theta, 3, rng=0)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, wide)


def test_a_users_own_grad_with_the_flag_off():
    gradient = jax.grad(GAMMA.log_partition)(jnp.asarray(THETA))
    assert gradient.dtype == jnp.float32
    np.testing.assert_allclose(gradient, GAMMA.to_mean(THETA), rtol=1e-5)
    # NumPy constants inside somebody's trace are computed eagerly, in float64, and become constants of that trace.
    mixed = jax.jit(lambda t: t * GAMMA.log_partition(THETA))(jnp.float32(2.0))
    np.testing.assert_allclose(mixed, 2 * GAMMA.log_partition(THETA), rtol=1e-6)
    assert jax.grad(lambda t: t * POISSON.log_partition(np.zeros(1)))(jnp.float32(1.0)) == 1.0


def test_jit_vmap_and_grad_go_through_every_kind_of_question():
    thetas = jnp.asarray(np.tile(THETA, (4, 1)))
    np.testing.assert_allclose(jax.jit(jax.vmap(GAMMA.to_natural))(GAMMA.to_mean(thetas)), thetas, rtol=1e-4)
    jacobian = jax.jacobian(GAMMA.to_natural)(GAMMA.to_mean(thetas[0]))
    np.testing.assert_allclose(jacobian @ GAMMA.fisher(thetas[0]), np.eye(2), atol=1e-3)
    assert jax.jit(lambda key, t: GAMMA.sample(t, 5, rng=key))(jax.random.key(0), thetas[0]).shape == (5,)
    assert jax.jit(lambda shape: GAMMA.natural(shape=shape, rate=1.0))(2.0).shape == (2,)


def test_any_jax_and_any_tracer_look_at_leaves():
    assert not precision.any_jax(np.ones(2), 1.0, {"a": [np.ones(1)]})
    assert precision.any_jax({"a": [jnp.ones(1)]})
    assert not precision.any_tracer(jnp.ones(1))
    assert jax.jit(lambda x: jnp.asarray(precision.any_tracer(x)))(1.0)
