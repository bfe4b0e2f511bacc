"""The decorator of compiled loops: who may call what, and what the terminal says while it compiles."""

import ast
import gc
import importlib
import inspect
import io
import pkgutil
import sys
import textwrap
import time
from types import ModuleType

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.compiler import Flags
from numba.core.dispatcher import Dispatcher

import cumulant
from cumulant import kernel_compiler, kernels


@pytest.fixture(scope="module")
def modules():
    return [importlib.import_module(module.name) for module in pkgutil.walk_packages(cumulant.__path__, "cumulant.")]


@pytest.fixture(scope="module")
def all_kernels(modules):
    found = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    assert len(found) > 100
    return list(found.values())


def called_by(one):
    tree = ast.parse(textwrap.dedent(inspect.getsource(one.py_func)))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    values = [value for name, value in one.py_func.__globals__.items() if name in names]
    return [value for value in values if isinstance(value, Dispatcher) and value is not one]


def test_a_kernel_that_others_call_is_put_into_them(all_kernels):
    """Else the last bits of an answer would depend on which of them the process loaded first."""
    for one in all_kernels:
        for other in called_by(one):
            assert other.targetoptions["forceinline"], f"{one.py_func} calls {other.py_func}: not called_by='python'"


def test_a_kernel_without_a_wrapper_is_called_by_kernels_alone(modules, all_kernels):
    inner = {id(one) for one in all_kernels if one.targetoptions["no_cpython_wrapper"]}
    assert inner
    for module in modules:
        if module.__name__.endswith("_kernels"):
            continue
        aliases = {name for name, value in vars(module).items() if isinstance(value, ModuleType)}
        used = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
                used.append(getattr(vars(module)[node.value.id], node.attr, None))
        assert not [one for one in used if id(one) in inner], f"{module.__name__} calls kernels without a wrapper"


def test_a_kernel_that_only_kernels_call_has_no_machine_code_of_its_own():
    part = kernels.kernel(lambda x: x * x, called_by="kernels")

    @numba.njit
    def sum_of_squares(values):
        total = 0.0
        for value in values:
            total += part(value)
        return total

    assert sum_of_squares(np.arange(4.0)) == 14.0
    (compiled,) = part.overloads.values()
    assert isinstance(compiled.library, kernel_compiler._Part)
    assert not compiled.library._object_caching_enabled
    whole = sum_of_squares.overloads[sum_of_squares.signatures[0]].library
    assert compiled.fndesc.mangled_name not in {f.name for f in whole.get_defined_functions()}  # it is inlined


def test_flags_that_are_quickly_compared_are_those_of_numba():
    plain = Flags()
    plain.error_model = "numpy"
    quick = kernel_compiler._Flags(plain)
    assert quick == plain == quick.copy()
    assert hash(quick) == hash(plain)
    assert quick.values() == plain.values()
    quick.forceinline = True
    assert quick != plain
    assert quick.values()["forceinline"] is True


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def no_other_listener():
    event.unregister("numba:compile", kernels._compiling)
    yield
    event.register("numba:compile", kernels._compiling)


def compile_something(listener):
    def plus_one(x):
        return x + 1.0

    plus_one.__module__ = "cumulant.kernels"
    with event.install_listener("numba:compile", listener):
        assert numba.njit(plus_one)(1.0) == 2.0


@pytest.mark.usefixtures("no_other_listener")
def test_a_terminal_is_told_once_that_it_takes_long(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(kernels, "_PATIENCE", 0.0)
    listener = kernels._Compiling()
    compile_something(listener)
    assert gc.isenabled()
    deadline = time.monotonic() + 60.0
    while not screen.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert screen.getvalue().startswith("cumulant: compiling, ")
    compile_something(listener)
    assert screen.getvalue().count("compiling") == 1


@pytest.mark.usefixtures("no_other_listener")
@pytest.mark.parametrize(("screen", "patience"), [(Terminal(), 60.0), (io.StringIO(), 0.0)])
def test_nobody_is_told_where_it_is_quick_or_where_there_is_no_terminal(monkeypatch, screen, patience):
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(kernels, "_PATIENCE", patience)
    compile_something(kernels._Compiling())
    assert screen.getvalue() == ""
