"""Exact sums over lattices: the claims of `graphical_theorems` on spin glasses, and numbers computed elsewhere."""

import functools
import math
import time

import numpy as np

from cumulant.experiments._spin_glasses import instance
from cumulant.experiments._vsmc import right_and_down
from cumulant.experiments.base import Claim, listed, verdict
from cumulant.graphical import (
    Ising,
    complete,
    density_of_states,
    grid,
    kac_ward,
    spin_glass,
    spin_glass_log_partition,
)

# log Z of two glasses of 12 x 12 by elimination, the energy of their ground states, and how many there are
GLASSES = {
    "pattern": ({1: 200.940785628, 2: 372.545749522, 10: 1780.465796916}, -176, 773005650),
    "random": ({1: 217.236845309, 2: 412.910528009, 10: 2028.227909838}, -202, 3744),
}
# log Z of fields uniform in [-1, 1] and couplings +-1/2, grid of 12 x 12 and complete graph of 26, seeds 0 and 1
BASELINES = {("grid", 0): 153.838123, ("grid", 1): 149.5459, ("complete", 0): 48.451494, ("complete", 1): 49.413736}
ZERO_SHARE = 0.0564045  # of the states of the unpublished glass of 20 x 20 that have the energy zero (footnote 13)


def baselines() -> Claim:
    off = {}
    for (place, seed), expected in BASELINES.items():
        model = instance(seed, grid(12, 12) if place == "grid" else complete(26))
        off[f"{place} {seed}"] = model.log_partition() - expected
    return Claim(
        "exact log Z of the two instances of each spin glass that sampling is compared on (another code)",
        listed({f"{place} {seed}": value for (place, seed), value in BASELINES.items()}, ".6f"),
        "off by " + listed(off, "+.0e"),
        verdict(max(map(abs, off.values())) < 5e-5),
        item="section 4.4",
    )


@functools.cache
def bonds(name: str) -> np.ndarray:
    e = np.arange(288)
    if name == "pattern":
        return np.where((e**2 + 3 * e) % 7 < 4, 1.0, -1.0)
    return np.random.default_rng(2024).choice([-1.0, 1.0], 288)


def glasses() -> tuple[Claim, ...]:
    claims = []
    for name, (values, ground, number) in GLASSES.items():
        start = time.process_time()
        states = density_of_states(Ising(right_and_down(12), bonds(name)))
        seconds = time.process_time() - start
        found = {beta: spin_glass_log_partition(Ising(right_and_down(12), beta * bonds(name))) for beta in values}
        inside = all(f.lower - 5e-10 <= values[beta] <= f.upper + 5e-10 for beta, f in found.items())
        off = max(abs(states.log_partition(beta) - value) for beta, value in values.items())
        claims.append(
            Claim(
                f"log Z of the {name} glass on the torus of 12 x 12 at beta = 1, 2 and 10, energy and number of its "
                "ground states, by Pfaffians modulo primes",
                f"{listed(list(values.values()), '.9f')} by elimination; {number} states of energy {ground}",
                f"off by at most {off:.0e}; {states.n_ground_states} states of energy {states.ground_energy:.0f} in "
                f"{seconds:.2f} s, all {len(states.counts)} counts add up to 2^144",
                verdict(
                    inside
                    and off < 1e-9
                    and states.n_ground_states == number
                    and states.ground_energy == ground
                    and sum(states.counts) == 2**144
                ),
                item="section 3.4.3",
            )
        )
    return tuple(claims)


def cold(quick: bool):
    """The planar determinant in float64 against whole numbers, from hot to cold."""
    side = 6 if quick else 12
    where = np.stack(np.divmod(np.arange(side * side), side), axis=1)
    signs = spin_glass(grid(side, side), kind="signs", rng=0).couplings
    errors, widths = {}, {}
    for beta in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0):
        model = Ising(grid(side, side), beta * signs)
        found = spin_glass_log_partition(model)
        widths[beta] = found.width
        try:
            errors[beta] = abs(kac_ward(model, where) - found.lower)
        except ValueError:
            errors[beta] = np.nan
    exact = [Ising(grid(side, side), beta * signs).log_partition() for beta in errors]
    inside = all(
        abs(spin_glass_log_partition(Ising(grid(side, side), beta * signs)).lower - value) < 1e-10 * value
        for beta, value in zip(errors, exact, strict=True)
    )
    refused = [beta for beta, error in errors.items() if np.isnan(error)]
    claim = Claim(
        f"a determinant in floating point loses all digits when it is cold, exact counting does not (grid of {side} x "
        f"{side}, beta = 0.5 to 32)",
        "exact by modular arithmetic",
        f"the determinant is refused from beta = {min(refused, default=math.inf):g} on; intervals of whole numbers are "
        f"at most {max(widths.values()):.0e} wide and agree with elimination",
        verdict(inside and bool(refused) and max(widths.values()) < 1e-9),
        item="section 3.4.3, exactness",
    )
    return claim, (errors, widths)


def no_zero_energy(quick: bool) -> Claim:
    side = 8 if quick else 20
    shares, odd = [], []
    for seed in range(2):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], 2 * side * side)
        for turned in (False, True):
            couplings = signs.copy()
            couplings[0] *= -1 if turned else 1
            share = density_of_states(Ising(right_and_down(side), couplings)).count(0.0) / 2 ** (side * side)
            (odd if np.sum(couplings < 0) % 2 else shares).append(share)
    normal = 4 / math.sqrt(4 * math.pi * side * side)
    return Claim(
        f"glasses of {side} x {side} with an odd number of negative bonds have no state of energy zero, others as "
        "large a share as the one whose count is printed",
        f"a count: {ZERO_SHARE} of all states at 20 x 20",
        f"{listed(shares, '.7f')} of all states with an even number, {listed(odd, 'g')} with an odd one; a normal "
        f"density has {normal:.7f}",
        verdict(max(odd) == 0 and max(abs(s / normal - 1) for s in shares) < (0.05 if quick else 2e-3)),
        item="footnote 13",
    )
