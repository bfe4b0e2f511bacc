import io

from rich.console import Console

from cumulant.cli import warm_up


def test_each_call_is_made_and_the_folders_are_named(monkeypatch):
    made, page = [], io.StringIO()
    monkeypatch.setattr(warm_up, "_CALLS", {"one": lambda: made.append(1), "two": lambda: made.append(2)})
    warm_up.show(Console(file=page, width=400))
    lines = page.getvalue().splitlines()
    assert made == [1, 2]
    assert [line.split()[0] for line in lines[:3]] == ["one", "two", "together"]
    assert lines[3].startswith("kernels are kept in: ")
    assert lines[4].startswith("JAX programs are kept in: ")


def test_the_calls_are_those_of_a_first_session():
    for call in warm_up._CALLS.values():
        call()
