"""What every discrete graphical model answers: a family bound to a parameter, and to evidence where there is some."""

import copy
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from cumulant import checks, files, sampling
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, DomainError, FileFormatError, TooWide
from cumulant.graphical.discrete_family import DiscreteFamily, draw, inner
from cumulant.graphical.exact.covariance import covariance
from cumulant.graphical.exact.elimination import MAX_MEMORY, Cost, Elimination, predict
from cumulant.graphical.exact.enumeration import enumerate_states
from cumulant.graphical.exact.orders import ORDERS, elimination_order
from cumulant.graphical.exact.support import reduce
from cumulant.graphical.labels import Labels
from cumulant.graphical.mixing.certificates import certify_mixing_time
from cumulant.graphical.structure import Structure
from cumulant.optim.driver.fingerprint import fingerprint

_WIDE = 2.0**20  # entries of a pass from which states that are certain to be impossible are looked for first
_CHAINS_INSTEAD = (
    "raise max_memory, or draw from a Markov chain, with R-hat and effective sample sizes: method='mcmc' chooses one; "
    "method='perfect' gives independent draws of an Ising model without frustration"
)
_METHODS = (
    "elimination", "enumeration", "mean_field", "structured_mean_field", "loopy", "double_loop", "generalised",
    "tree_reweighted",
)  # fmt: skip


class DiscreteModel:
    """A distribution over variables with finitely many states: `family`, `theta`, and the questions to them.

    Variables and states are meant by number or, where they have any, by name: see `labels`.

    Every question takes

    * ``method``: ``"elimination"`` (the default) or ``"enumeration"`` (all states one by one: for small models), both
      exact; or, with options of their own and no promise but one, `mean_field` and `structured_mean_field` (their
      ``log_partition`` is a lower bound), `tree_reweighted` (an upper bound), ``"loopy"`` (`belief_propagation`),
      ``"double_loop"`` and ``"generalised"`` (`generalised_belief_propagation`): estimates;
    * ``order``: the kind of elimination order (see `elimination_order`) or the variables in order; default ``"best"``;
    * ``max_memory``: bytes that tables may take. `TooWide` is raised, before any work, where they do not fit;
    * ``n_jobs``: threads for large tables; the answer does not depend on it.
    """

    family: DiscreteFamily
    theta: np.ndarray

    def _bind(self, family: DiscreteFamily, theta: np.ndarray) -> None:
        self.family, self.theta = family, family._checked(theta)
        self.theta.setflags(write=False)
        self._evidence: dict[int, int] = {}
        self._log_z: float | None = None
        self._restriction: tuple[dict[int, int], tuple[Structure, np.ndarray, np.ndarray]] | None = None

    # Description -----------------------------------------------------------------------------------------------------

    @property
    def structure(self) -> Structure:
        """Cardinalities and scopes."""
        return self.family.structure

    @property
    def n_variables(self) -> int:
        """How many variables there are, those with evidence included."""
        return self.structure.n_variables

    @property
    def cardinalities(self) -> np.ndarray:
        """How many states each variable has."""
        return self.structure.cardinalities

    @property
    def labels(self) -> Labels:
        """What variables and states are called."""
        return self.family.labels

    @property
    def evidence(self) -> dict[int, int]:
        """The values that variables are given, by number: ``{variable: value}``."""
        return {v: self.labels.number(x) for v, x in self._evidence.items()}

    @property
    def factors(self) -> list[tuple[tuple[int, ...], np.ndarray]]:
        """The factors as pairs of a scope and a table of logarithms."""
        tables = self.family.log_tables(self.theta)
        return [(self.structure.scope(f), self.structure.table(f, tables)) for f in range(self.structure.n_factors)]

    def __repr__(self):
        given = f", given {len(self._evidence)} of them" if self._evidence else ""
        return f"{type(self).__name__}({self.n_variables} variables{given}, {self.structure.n_factors} factors)"

    def __eq__(self, other):
        if not isinstance(other, DiscreteModel):
            return NotImplemented
        return (
            type(self) is type(other)
            and self.family == other.family
            and np.array_equal(self.theta, other.theta)
            and self._evidence == other._evidence
        )

    def __hash__(self):
        return hash((type(self), self.family, self.theta.tobytes(), tuple(sorted(self._evidence.items()))))

    def given(self, evidence: Mapping[Any, Any]) -> Self:
        """The model conditioned on values of some variables, ``{variable: value}``, by name or number.

        The variables stay: their marginals are certain. `log_partition` is then the logarithm of the sum over the
        states that agree with the evidence.
        """
        new = copy.copy(self)
        new._evidence, new._log_z = dict(self._evidence), None
        checks.instance("evidence", evidence, Mapping, "a mapping of variables to states")
        with checks.about("evidence"):
            for key, value in evidence.items():
                v = self._variable(key)
                state = self.labels.state(v, value)
                if new._evidence.get(v, state) != state:
                    before = self.labels.value(v, new._evidence[v])
                    raise ValueError(f"variable {key!r} is already given the value {before!r}; got {value!r}")
                new._evidence[v] = state
        return new

    def _variable(self, variable: Any) -> int:
        """The number of a variable that is meant by its name or number, and is not hidden."""
        v = self.labels.variable(variable)
        if v >= self.n_variables:
            raise ValueError(
                f"there is no variable {variable!r}: there are the variables from 0 to {self.n_variables - 1}"
            )
        return v

    # Exact answers ---------------------------------------------------------------------------------------------------

    def cost(self, *, order: Any = "best", max_memory: int = MAX_MEMORY) -> Cost:
        """What exact inference by elimination needs, known without doing it."""
        return predict(self.restricted()[0], order=order, max_memory=max_memory)

    def log_partition(self, *, method: str | None = None, **options: Any) -> float:
        """``A(theta) = log Z``: with evidence, of the states that agree with it. -inf where none is possible."""
        if self._log_z is None or method is not None or options:
            value = self._answer(method, "log_partition", options)[0]
            if method is not None or options:
                return value
            self._log_z = value
        return self._log_z

    def marginals(self, *, method: str | None = None, **options: Any) -> Any:
        """The distribution of each variable: a list of arrays in the order of the variables, which takes their names
        too where they have any.
        """
        value, found, _ = self._answer(method, "marginals", options)
        self._require_possible(value)
        if method is None and not options:
            self._log_z = value  # it comes along
        return self.labels.by_name(self._all_marginals(found))

    def marginal(self, variables: Any, *, method: str | None = None, **options: Any) -> np.ndarray:
        """The distribution of one variable, by name or number, or the joint table of a list of them in their order.

        >>> from cumulant.graphical import Ising
        >>> Ising([(0, 1)], 0.5, names=["a", "b"], states=["down", "up"]).marginal(["a", "b"]).round(4)
        array([[0.3655, 0.1345],
               [0.1345, 0.3655]])
        """
        if not isinstance(variables, list | tuple):
            return self.marginals(method=method, **options)[self._variable(variables)]
        wanted = [self._variable(v) for v in variables]
        joined = self._with_factors(np.array([0, len(wanted)]), np.array(wanted, dtype=np.int64))
        return joined.structure.table(self.structure.n_factors, joined._beliefs(method, options)[1]).copy()

    def _with_factors(self, scope_starts: np.ndarray, scopes: np.ndarray) -> "FactorView":
        """The same distribution with more factors, all of whose entries are zero."""
        mine = self.structure
        both = Structure.flat(
            mine.cardinalities,
            np.concatenate([mine.scope_starts, mine.scope_starts[-1] + scope_starts[1:]]),
            np.concatenate([mine.scopes, scopes]),
        )
        both._check()
        tables = self.family.log_tables(self.theta)
        return FactorView(both, np.append(tables, np.zeros(int(both.table_starts[-1]) - tables.size)), self._evidence)

    def _all_marginals(self, found: list[np.ndarray]) -> Any:
        left = self.restricted()[2]
        out: list[np.ndarray] = []
        for v, size in enumerate(self.structure.cardinalities.tolist()):
            out.append(np.zeros(size))
            out[v][self._evidence.get(v, 0)] = 1.0
        for v, p in zip(left.tolist(), found, strict=True):
            out[v] = p
        return out

    def beliefs(self, *, method: str | None = None, **options: Any) -> list[np.ndarray]:
        """The marginal table of each factor: zero at states that disagree with the evidence."""
        flat = self._beliefs(method, options)[1]
        return [self.structure.table(f, flat) for f in range(self.structure.n_factors)]

    def mean(self, *, method: str | None = None, **options: Any) -> np.ndarray:
        """``mu = E T(x) = grad A(theta)``: all statistics, in the order of `theta`."""
        return self.family.mean_of(self._beliefs(method, options)[1])

    def covariance(self, **options: Any) -> np.ndarray:
        """``Cov T(x)``, the Hessian of ``A`` at `theta`: see `DiscreteFamily.fisher`.

        Its largest eigenvalue is the curvature of the log-likelihood here (elsewhere it may be larger).
        """
        tables = self.family.log_tables(self.theta)
        self._require_possible(self.log_partition(**options))
        return covariance(self.structure, tables, self.family.design, self._evidence, **options)

    def entropy(self, *, method: str | None = None, **options: Any) -> float:
        """``H = -E log p(x)`` in nats."""
        value, flat = self._beliefs(method, options)
        return float(value - inner(flat, self.family.log_tables(self.theta)))

    def kl(self, other: "DiscreteModel", *, method: str | None = None, **options: Any) -> float:
        """``KL(self || other) = E log p - E log q`` between models of the same variables, of whatever factors.

        Infinite where `other` forbids a state that is possible here.
        """
        other = checks.instance("other", other, DiscreteModel, "a DiscreteModel")._without_hidden()
        if not np.array_equal(self.structure.cardinalities, other.structure.cardinalities):
            raise ValueError("other must be a model of the same variables: the cardinalities differ")
        tables = self.family.log_tables(self.theta)
        joined = self._with_factors(other.structure.scope_starts, other.structure.scopes)
        value, flat = joined._beliefs(method, options)
        log_q = other.log_partition(method=method, **options)
        for v, x in other._evidence.items():
            if joined._all_marginals(joined._answer(method, "marginals", options)[1])[v][x] < 1.0:
                return np.inf
        if log_q == -np.inf:
            raise DomainError("every state is impossible in other: there is no distribution to compare with")
        own, cross = flat[: tables.size], flat[tables.size :]
        gap = inner(own, tables) - value - inner(cross, other.family.log_tables(other.theta)) + log_q
        return max(float(gap), 0.0)  # it is never negative; only rounding can say otherwise

    def log_prob(self, x: Any, *, method: str | None = None, **options: Any) -> np.ndarray:
        """``log p(x)`` of values ``(..., variables)``; -inf where that is impossible or disagrees with the evidence."""
        value = self.log_partition(method=method, **options)
        self._require_possible(value)
        score = np.asarray(self.family.score(x, self.theta))
        states = self.family.states(x)
        agrees = np.ones(states.shape[:-1], bool)
        for v, state in self._evidence.items():
            agrees &= states[..., v] == state
        return np.where(agrees, score - value, -np.inf)[()]

    def sample(self, n: int = 1, rng: Any = None, *, method: str | None = None, **options: Any) -> Any:
        """`n` draws: independent and exact, or `n` from each of several Markov chains.

        ``None`` and ``"exact"`` draw each variable given those eliminated after it, and take `order`, `max_memory` and
        `n_jobs`; ``"perfect"`` is coupling from the past for Ising models without frustration, and takes `max_sweeps`
        and `n_jobs`. Both give an array ``(n, variables)``.

        The other methods run `chains` (default 4) Markov chains from uniform states (or from `start`), discard
        `burn_in` sweeps (1000), keep every `thin`-th (1) and give `Draws`, ``(chains, n, variables)``, with R-hat,
        effective sample size and `to_arviz`: ``"systematic"``, ``"random"`` and ``"chromatic"`` single-site Gibbs,
        ``"blocked"`` Gibbs over forests, ``"swendsen_wang"`` and ``"wolff"`` clusters for Ising and Potts models,
        ``"multi_spin"`` for a uniform torus, and ``"mcmc"``: ``"swendsen_wang"`` where couplings make neighbours agree,
        else ``"chromatic"``. A sweep updates every variable once on average; one of ``"wolff"`` is one cluster. The
        same seed gives the same draws whatever `n_jobs`.
        """
        if method is None or (isinstance(method, str) and method == "exact"):
            checks.keywords(f"sample with method={method!r}", options, ("order", "max_memory", "n_jobs"))
            checks.whole("n", n, 0)
            tables = self.family.log_tables(self.theta)
            try:
                return self.family.values(draw(self.structure, tables, self._evidence, n, rng, **options))
            except TooWide as problem:
                need = str(problem).partition(": ")[0]
                raise TooWide(f"{need}: {_CHAINS_INSTEAD}") from problem
        from cumulant.graphical.samplers import chains  # it knows the kinds of models, which know this one

        checks.choice("method", method, (*chains.METHODS, None))
        if method == "perfect":
            return chains.draw_perfectly(self, n, rng, **options)
        method = chains.chain_for(self) if method == "mcmc" else method
        draws = sampling.sample(chains.sampler_of(method, options.pop("n_jobs", None)), self, n, rng=rng, **options)
        return replace(draws, method=method)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """What the draws of a sampler are: the variables by name, or one vector ``x`` where they have no names."""
        names = self.labels.names
        return {"x": (self.structure.n_variables,)} if names is None else dict.fromkeys(names, ())

    def starts(self, chains: int, start: Any, seed: int) -> np.ndarray:
        """Where chains begin, values ``(chains, variables)``: at `start`, one for all or one each, or at uniform states
        that depend on the seed and the number of the chain only.
        """
        n = self.structure.n_variables  # hidden variables included
        if start is None:
            sizes = self.structure.cardinalities
            states = [np.random.default_rng([seed, c]).integers(0, sizes) for c in range(chains)]
            return self.family.values(np.array(states, dtype=np.int64).reshape(chains, n))
        if np.shape(start) not in ((n,), (chains, n)):
            raise ValueError(f"start must have shape ({n},) or ({chains}, {n}); got {np.shape(start)}")
        return np.broadcast_to(np.asarray(start), (chains, n)).copy()

    def map(self, **options: Any) -> tuple[np.ndarray, float]:
        """A most probable state and its ``log p(x) + A``: the largest of ``<theta, T(x)>``, by max-product."""
        return self.marginal_map(range(self.n_variables), **options)

    def marginal_map(self, variables: Any, **options: Any) -> tuple[np.ndarray, float]:
        """The most probable values of `variables` when the others are summed out, and ``log sum`` there.

        The others must be eliminated first, which can need far larger tables than either alone (Park and Darwiche
        2004). Values come in the order of `variables`.
        """
        _check_options(options)
        wanted = [self._variable(v) for v in variables]
        if len(set(wanted)) < len(wanted):
            raise ValueError(f"variables must be different; got {list(variables)}")
        structure, tables, left = self.restricted()
        maximised = np.isin(left, wanted)
        solver = _sums_first(structure, tables, maximised, options)
        if "order" in options or solver.order.entries <= _WIDE or not np.isneginf(tables).any():
            value, best = solver.best(maximised)
            self._require_possible(value)
        else:
            found = reduce(structure, tables)
            self._require_possible(-np.inf if found is None else 0.0)
            assert found is not None
            kept = maximised[found.left]
            value, part = _sums_first(found.structure, found.theta, kept, options).best(kept)
            self._require_possible(value)
            best = found.configuration(part)
        states = self.given_states()
        states[left] = best
        return self.labels.decode(states[wanted], wanted), value

    def mixing_time(self, eps: float = 0.01, *, norm: str = "spectral", bound: str = "oscillation") -> Certificate:
        """How many updates random-scan Gibbs sampling needs to be within `eps`, proved: see `certify_mixing_time`."""
        return certify_mixing_time(self, eps, norm=norm, bound=bound)

    def verify(self, found: Any) -> Certificate:
        """Issue the certificate of an interval, a bound or a result for this model again: see `Certificate.verify`."""
        if not isinstance(found.certificate, Certificate):
            raise CertificateError(f"this {type(found).__name__} has no certificate to verify")
        return found.certificate.verify(Subject(self, found))

    # How -------------------------------------------------------------------------------------------------------------

    def _without_hidden(self) -> "DiscreteModel":
        """The model of the variables that are asked about: itself, where none are hidden."""
        return self

    def restricted(self) -> tuple[Structure, np.ndarray, np.ndarray]:
        """What inference works on: the structure without the variables that are given or have one state, its tables of
        logarithms as one flat array, and the numbers of the variables that are left.
        """
        if self._restriction is None or self._restriction[0] != self._evidence:
            tables = self.family.log_tables(self.theta)
            self._restriction = (self._evidence, self.structure.restrict(tables, self._evidence))
        return self._restriction[1]

    def given_states(self, *shape: int) -> np.ndarray:
        """States of all variables, ``(*shape, variables)``: those of the evidence, and 0 elsewhere."""
        states = np.zeros((*shape, self.structure.n_variables), np.int64)
        states[..., list(self._evidence)] = list(self._evidence.values())
        return states

    def _answer(self, method: str | None, question: str, options: dict) -> tuple[float, list[np.ndarray], np.ndarray]:
        structure, tables, _ = self.restricted()
        if checks.choice("method", method, (*_METHODS, None)) == "enumeration":
            return enumerate_states(structure, tables)
        if method not in (None, "elimination"):
            from cumulant.graphical.messages.methods import approximate  # it asks models, which this one is

            alone = structure.table_starts[:-1][np.diff(structure.scope_starts) == 0]
            if np.isneginf(tables[alone]).any():  # a constant that is log 0: no method has anything to say
                return -np.inf, [], np.zeros(0)
            tables = self.family.log_tables(self.theta)
            return approximate(FactorView(self.structure, tables, self._evidence), method, options)
        _check_options(options)
        solver = Elimination.of(structure, tables, **options)
        if "order" in options or solver.order.entries <= _WIDE or not np.isneginf(tables).any():
            return solver.answer(question)
        found = reduce(structure, tables, smaller_scopes=question != "beliefs")
        if found is None:
            return -np.inf, [], np.zeros(0)
        value, marginals, flat = Elimination.of(found.structure, found.theta, **options).answer(question)
        if value == -np.inf or question == "log_partition":
            return value, [], np.zeros(0)
        return value, found.marginals(marginals), found.beliefs(flat) if question == "beliefs" else flat

    def _beliefs(self, method: str | None, options: dict) -> tuple[float, np.ndarray]:
        """``log Z`` and the marginal tables of all factors, put back to full size where there is evidence."""
        value, _, flat = self._answer(method, "beliefs", options)
        self._require_possible(value)
        smaller = self.restricted()[0]
        if smaller is self.structure:
            return value, flat
        state, fixed = self.given_states(), self.structure.cardinalities == 1
        fixed[list(self._evidence)] = True
        out = np.zeros(int(self.structure.table_starts[-1]))
        for f in range(self.structure.n_factors):
            where = tuple(int(state[v]) if fixed[v] else slice(None) for v in self.structure.scope(f))
            self.structure.table(f, out)[where] = smaller.table(f, flat)
        return value, out

    def _require_possible(self, value: float) -> None:
        if value == -np.inf:
            named = {self.labels.name(v): self.labels.value(v, x) for v, x in self._evidence.items()}
            what = f"the evidence {named} has probability zero" if self._evidence else "every state is impossible"
            raise DomainError(f"{what}: there is no distribution")

    # Files -----------------------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """A short name for the contents, the same in every process: what ties a checkpoint to a model."""
        given = sorted(self._evidence.items())
        return fingerprint((type(self).__name__, self.family.fingerprint(), np.asarray(self.theta), given))

    def save(self, path: str | os.PathLike) -> Path:
        """Write the model to an `.npz` file (no pickle); `load` of its class reads it."""
        settings, arrays = self._description()
        evidence = np.array(sorted(self._evidence.items()), dtype=np.int64).reshape(-1, 2)
        settings |= self.labels.settings()
        return files.save(path, type(self).__name__, {**arrays, "theta": self.theta, "evidence": evidence}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read what `save` wrote."""
        saved = files.load(path, cls.__name__)
        try:
            new = cls._of_description(saved.settings, saved.arrays)
            return new.given({int(v): new.labels.number(int(x)) for v, x in saved.arrays["evidence"]})
        except (KeyError, ValueError, TypeError, IndexError) as problem:
            raise FileFormatError(f"{path} does not hold a {cls.__name__}: {problem}") from problem

    def _description(self) -> tuple[dict, dict]:
        """Settings and arrays for a file, besides those of every model."""
        return {}, {name: getattr(self.structure, name) for name in Structure.PARTS}

    @classmethod
    def _of_description(cls, settings: dict, arrays: dict) -> Self:
        """The inverse, from all settings and arrays; an error where they do not fit together."""
        raise TypeError(f"a {cls.__name__} is not read from files")


def _check_options(options: dict) -> None:
    unknown = options.keys() - {"order", "max_memory", "n_jobs"}
    if unknown:
        raise TypeError(f"there is no option {min(unknown)!r}: exact answers take order, max_memory and n_jobs")


def _sums_first(structure: Structure, tables: np.ndarray, maximised: np.ndarray, options: dict) -> Elimination:
    """An elimination that maximises over the marked variables after it has summed out the others."""
    order = options.get("order")
    if not order:
        kinds = [elimination_order(structure, kind).order for kind in ORDERS[: 2 if maximised.size > 4096 else None]]
        orders = [each[np.argsort(maximised[each], kind="stable")] for each in kinds]
        order = min(orders, key=lambda o: Elimination.of(structure, tables, order=o).order.entries)
    solver = Elimination.of(structure, tables, **{**options, "order": order})
    if maximised[solver.order.order].tolist() != sorted(maximised.tolist()):
        raise ValueError("order must have the variables that are summed out before those that are maximised over")
    return solver


class FactorView(DiscreteModel):
    """Tables and a structure that are known to be right, asked as a model."""

    def __init__(self, structure: Structure, tables: np.ndarray, evidence: dict[int, int]):
        self._bind(DiscreteFamily(structure), tables)
        self._evidence = dict(evidence)
