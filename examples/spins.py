"""Spins for those who simulate them: `python examples/spins.py`.

A square lattice at three temperatures against its exact energy, a cube, and the couplings of spins from their states.
"""

from cumulant.graphical import Ising, IsingEstimator, grid, lattice, torus


def main() -> None:
    """Run the example."""
    for J in (0.3, 0.44, 0.6):
        plane = Ising(torus(24, 24), J)
        draws = plane.sample(500, rng=0, method="mcmc", burn_in=200)
        drawn, error = (f(lambda x, m=plane: -m.family.score(x, m.theta)) for f in (draws.mean, draws.standard_error))
        print(f"J = {J}: log Z {plane.log_partition():.6f}, R-hat {draws.r_hat().max():.3f}")
        print(f"    energy {-plane.theta @ plane.mean():.2f}, drawn {drawn:.2f} +- {error:.2f}")
    cube = Ising(lattice((8, 8, 8), periodic=True), 0.22).sample(250, rng=0, method="mcmc", burn_in=200)
    print(f"cube: magnetisation {abs(cube.flat.mean(axis=1)).mean():.3f}, R-hat {cube.r_hat().max():.3f}")
    found = IsingEstimator().fit(Ising(grid(4, 4), 0.5).sample(1000, rng=0))
    print(f"{len(found.edges_)} couplings found:", found.couplings_.round(2), found.structure_.certificate, sep="\n")


if __name__ == "__main__":
    main()
