import subprocess
import sys

import pytest

import cumulant
from cumulant import errors
from cumulant.cli import app, main


def run(*arguments):
    """Run the command in this process; returns its exit code."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code


def test_the_version_is_printed_without_loading_jax_or_the_like():
    code = (
        "import sys\nfrom cumulant.cli import main\n"
        "try:\n    main(['--version'])\n"
        "except SystemExit as stop:\n    assert stop.code == 0\n"
        "heavy = {'jax', 'numpy', 'numba', 'scipy', 'sklearn', 'matplotlib', 'networkx'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"cumulant {cumulant.__version__}\n"


def test_without_arguments_the_commands_are_listed(capsys):
    run()
    text = capsys.readouterr()
    for command in ("families", "demo", "reproduce"):
        assert command in text.out + text.err


def test_an_unknown_command_is_a_usage_error(capsys):
    assert run("nonsense") == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.fixture
def failing(request):
    """A command of its own that raises what the test asks for, removed afterwards."""

    @app.command(name="failing")
    def _failing():
        raise request.param

    yield request.param
    app.registered_commands.pop()


@pytest.mark.parametrize(
    "failing",
    [
        ValueError("rows must be at least 1; got 0"),
        errors.DomainError("theta must be negative; got 3 [at index 7]"),
        errors.TooWide("too wide"),
        FileNotFoundError("no such file: a.npz"),
        ModuleNotFoundError("pictures need matplotlib", name="matplotlib"),
    ],
    indirect=True,
    ids=lambda error: type(error).__name__,
)
def test_a_refusal_is_one_line_and_exit_code_one(failing, capsys):
    assert run("failing") == 1
    text = capsys.readouterr()
    assert text.err == f"error: {failing}\n"
    assert text.out == ""


@pytest.mark.parametrize("failing", [ValueError("a\nmessage  of\nthree lines")], indirect=True)
def test_a_message_of_several_lines_becomes_one(failing, capsys):
    assert run("failing") == 1
    assert capsys.readouterr().err == "error: a message of three lines\n"


@pytest.mark.parametrize("failing", [errors.TooWide("too wide")], indirect=True)
def test_debug_shows_the_traceback(failing):
    with pytest.raises(errors.TooWide):
        main(["--debug", "failing"])


@pytest.mark.parametrize("failing", [KeyError("a bug"), ModuleNotFoundError("jax", name="jax")], indirect=True, ids=str)
def test_a_bug_is_not_hidden_behind_one_line(failing):
    with pytest.raises(type(failing)):
        main(["failing"])
