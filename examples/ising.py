"""An Ising model of a binary table: `python examples/ising.py`.

Draws of a 4 x 4 spin glass are learnt inside a set in which Gibbs sampling is certain to mix; the fit is compared with
the best one outside the set, sampled for as long as its certificate says, and its normaliser is bounded.
"""

from cumulant.graphical import FastMixing, Ising, bound_log_partition, fit, grid, spin_glass


def main() -> None:
    """Run the example."""
    truth = spin_glass(grid(4, 4), couplings=0.3, fields=0.2, rng=0)
    data = truth.sample(1000, rng=1)
    family = Ising(grid(4, 4), 0.0, [0.0] * 16)
    inside = fit(data, family, method="exact", mixing=FastMixing(0.7), l2=0.01)
    outside = fit(data, family, method="exact", l2=0.01)
    print(inside)
    for name, model in (("inside the set", inside.model), ("anywhere", outside.model)):
        print(f"{name}: KL from the truth {truth.kl(model):.4f} nats")
    certificate = inside.model.mixing_time(0.01)
    print(certificate)
    sweeps = int(certificate.upper) // 16 + 1
    draws = inside.model.sample(500, rng=2, method="random", chains=4, burn_in=sweeps)
    print(f"{draws}: R-hat {draws.r_hat().max():.3f}, effective {draws.effective_sample_size().min():.0f}")
    print(bound_log_partition(inside.model).certificate)


if __name__ == "__main__":
    main()
