"""`import cumulant` costs nothing: each part is loaded when it is first used."""

import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import cumulant

HEAVY = ("jax", "numba", "sklearn", "matplotlib", "scipy", "networkx", "numpy")


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_loads_nothing_heavy():
    loaded = python("import sys, cumulant; print(*sorted(m for m in sys.modules if '.' not in m))").split()
    assert "cumulant" in loaded
    assert not set(HEAVY) & set(loaded)


def test_importing_takes_less_than_three_tenths_of_a_second():
    code = "import time; start = time.process_time(); import cumulant; print(time.process_time() - start)"
    assert statistics.median(float(python(code)) for _ in range(5)) < 0.3


def test_the_parts_are_there_when_asked_for():
    code = "import cumulant; print(cumulant.graphical.BayesNet.__name__, cumulant.Certificate.__name__)"
    assert python(code).split() == ["BayesNet", "Certificate"]
    assert python("import cumulant; print(*dir(cumulant))").split().count("graphical") == 1


def test_every_package_is_a_part():
    packages = {path.parent.name for path in Path(cumulant.__file__).parent.glob("*/__init__.py")} - {"cli"}
    assert packages <= set(cumulant.__all__)
    assert [name for name in sorted(packages) if getattr(cumulant, name) is not sys.modules[f"cumulant.{name}"]] == []


def test_importing_everything_changes_no_setting_of_jax_or_numpy():
    parts = "families, geometry, graphical, optim, plotting, report, experiments"
    code = (
        "import jax, numpy as np\n"
        "before = dict(jax.config.values), np.geterr(), np.get_printoptions()\n"
        f"from cumulant import {parts}\n"
        "assert (dict(jax.config.values), np.geterr(), np.get_printoptions()) == before\n"
        "assert jax.numpy.asarray(1.0).dtype == 'float32'\n"
        "import sys; assert 'matplotlib' not in sys.modules\n"
    )
    python(code)


def test_importing_graphical_loads_nothing_before_a_name_is_asked_for():
    loaded = set(python("import sys, cumulant.graphical; print(*sys.modules)").split())
    assert not {"jax", "numba", "sklearn", "scipy", "networkx", "cumulant.optim", "cumulant.families"} & loaded
    ising = set(python("import sys; from cumulant.graphical import Ising; print(*sys.modules)").split())
    assert not {"sklearn", "matplotlib"} & ising


def test_every_public_name_of_graphical_is_where_the_package_looks_for_it():
    from cumulant import graphical

    assert set(graphical.__all__) == set(graphical._NAMES)
    assert set(graphical.__all__) <= set(dir(graphical))
    for name in graphical.__all__:
        assert getattr(graphical, name) is getattr(sys.modules[f"cumulant.graphical.{graphical._NAMES[name]}"], name)
    with pytest.raises(AttributeError, match="no attribute 'Isng'"):
        _ = graphical.Isng
