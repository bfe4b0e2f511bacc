import subprocess
import sys

import matplotlib
import numpy as np
import pytest

from cumulant import Interval, plotting


def test_drawing_and_saving_change_no_global_setting(tmp_path):
    before = dict(matplotlib.rcParams)
    fig, axes = plotting.figure(2, 2, sharex=True)
    axes[0, 0].plot([0, 1], [0, 1], label="line")
    plotting.legend(axes[0, 0])
    plotting.band(axes[0, 0], [0, 1], [0, 0], [1, 1])
    plotting.interval(axes[1, 1], 0.5, Interval(0, 1, 0.4))
    plotting.save(fig, tmp_path / "a.png")
    assert dict(matplotlib.rcParams) == before


def test_the_users_settings_do_not_leak_into_the_picture(tmp_path):
    def picture(path):
        fig, ax = plotting.figure()
        ax.plot([0, 1], [0, 1])
        return plotting.save(fig, path).read_bytes()

    plain = picture(tmp_path / "plain.png")
    with matplotlib.rc_context(
        {"lines.linewidth": 9, "axes.facecolor": "red", "xtick.labelsize": 20, "savefig.dpi": 30}
    ):
        assert picture(tmp_path / "styled.png") == plain


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_figure_is_the_same_file(tmp_path, suffix):
    fig, ax = plotting.figure()
    ax.plot(np.arange(5))
    first, second = (plotting.save(fig, tmp_path / f"{name}{suffix}") for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_save_makes_folders_adds_a_suffix_and_returns_the_path(tmp_path):
    path = plotting.save(plotting.figure()[0], tmp_path / "deep" / "down" / "picture")
    assert path == tmp_path / "deep" / "down" / "picture.png"
    assert path.read_bytes().startswith(b"\x89PNG")


def test_an_unknown_format_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match=r"'\.docx'.*png"):
        plotting.save(plotting.figure()[0], tmp_path / "a.docx")


@pytest.mark.parametrize("sizes", [{"rows": 0}, {"columns": -1}, {"rows": True}, {"rows": 1.5}, {"width": -2.0}])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match=next(iter(sizes))):
        plotting.figure(**sizes)


def test_without_matplotlib_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"  # what Python does for a module that is not there
        "from cumulant import plotting\n"
        "try:\n    plotting.figure()\n"
        "except ModuleNotFoundError as problem:\n    print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "cumulant[plot]"' in done.stdout


def test_pyplot_is_never_loaded(tmp_path):
    code = (
        "import sys; from cumulant import plotting\n"
        "assert 'matplotlib' not in sys.modules\n"
        "fig, ax = plotting.figure(); ax.plot([1, 2]); plotting.save(fig, sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.png")], check=True, env={"MPLBACKEND": "qtagg"})
