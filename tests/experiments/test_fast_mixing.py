"""The 4 x 4 grid of Domke (2015) and the mis-specified grids: quick versions, and what must hold of them."""

from cumulant.experiments import fast_mixing_grid, misspecified_ising, mixing_theorems


def test_the_grid_comes_out_again(tmp_path):
    report = fast_mixing_grid.run(tmp_path, quick=True, rng=0)
    assert [claim.verdict for claim in report.claims] == ["reproduced", "true, not tight", *["reproduced"] * 3]
    assert "46 x 151 x 515" in report.claims[1].ours
    assert report.pictures[0].stat().st_size > 5_000


def test_every_theorem_comes_out(tmp_path):
    report = mixing_theorems.run(tmp_path, quick=True, rng=0)
    assert [claim.item for claim in report.claims if claim.verdict == "not reproduced"] == []
    assert sum(claim.verdict == "corrected" for claim in report.claims) == 6
    assert len({claim.item for claim in report.claims}) == len(report.claims)
    assert report.pictures[0].stat().st_size > 5_000


def test_the_distribution_of_hidden_spins_is_a_marginal():
    """Against the joint model of a smaller grid, summed over its hidden spin by elimination."""
    import numpy as np

    model, n = misspecified_ising._hidden(2, 2)
    assert (n, model.n_variables) == (4, 5)
    states = misspecified_ising._all_states(4)
    field = 0.45 * states.sum(axis=1)
    closed = np.logaddexp(field, -field)
    both = np.logaddexp(*(model.log_prob(np.column_stack([states, np.full(16, h)])) for h in (-1, 1)))
    assert np.allclose(closed - closed[0], both - both[0])
    assert np.isclose(np.exp(misspecified_ising._distribution("products of three")).sum(), 1)
