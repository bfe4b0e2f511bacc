"""Parameters, networks and a program that the tests of the relational model share."""

import numpy as np

from cumulant.relational import Network, Program

THETA = (0.6, 0.1, 0.2, 0.7, 0.15, 0.4, 0.05, 0.3, 0.5, 0.25, 0.2, 0.1, 0.8, 0.45)
STUDY = (0.5, 0.10, 0.02, 0.30, 0.10, 0.15, 0.10, 0.4, 0.5, 0.5, 0.3, 0.05, 0.9, 0.5)
T3 = Network.from_edges([1, 1, 0], [(0, 1), (0, 2)])
READINGS = ("independent", "ordered")
EXTREMES = (1e-100, 1e-60, 1e-30, 1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12, 1 - 2.0**-53)

CONTAGION = """
    var X, Y: person
    fact contact{X, Y}
    seed(X) ~ 0.2                  # ill from outside
    immune(X) ~ 0.3
    passes(X, Y) ~ 0.6
    first(X) <- seed(X), not immune(X)
    ill(X) <- first(X)
    ill(X) <- contact{X, Y}, first(Y), passes(Y, X), not immune(X)
"""
CONTACTS = [("anna", "bob"), ("bob", "carl"), ("dora", "carl")]
PEOPLE = ["anna", "bob", "carl", "dora"]


def random_network(n, rng, density=0.4, smoking=0.5):
    """Attributes and ties that owe nothing to the model."""
    ties = np.triu(rng.random((n, n)) < density, 1)
    return Network(rng.random(n) < smoking, ties | ties.T)


def extreme_theta(rng, share):
    """Probabilities of which a share is close to 0 or 1; the first may be 0 or 1."""
    theta = np.where(rng.random(14) < share, rng.choice(EXTREMES, 14), rng.random(14))
    if rng.random() < 0.1:
        theta[0] = rng.choice([0.0, 1.0])
    return theta


def contagion():
    """Illness that passes from contact to contact."""
    return Program(CONTAGION).ground(PEOPLE, {"contact": CONTACTS})
