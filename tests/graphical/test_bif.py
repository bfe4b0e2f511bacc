"""BIF files: a network by hand, and files that are broken on purpose."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, FileFormatError
from cumulant.graphical import read_bif, write_bif
from tests.graphical.networks import random_net

_TEXT = """// a comment
network wet { property version 1; }
variable rain { type discrete [ 2 ] { no, yes }; property "position = (1, 2)" ; }
variable hose { type discrete[2] { off on }; }
variable grass {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( rain ) { table 0.7, 0.3; }
probability ( hose | rain ) {
  (no) 0.6, 0.4;
  default 0.99, 0.01;
}
/* a longer
   comment */
probability ( grass | rain, hose ) {
  (no, off) 0.9 0.05 0.05;
  (no, on) 0.1 0.2 0.7;
  (yes, off) 0.1 0.3 0.6;
  (yes, on) 0.0 0.1 0.9;
}
"""


def test_a_network_by_hand(tmp_path):
    path = tmp_path / "wet.bif"
    path.write_text(_TEXT)
    net = read_bif(path)
    assert net.variables == ("rain", "hose", "grass")
    assert net.states["grass"] == ("dry", "damp", "wet")
    assert_allclose(net.tables["hose"], [[0.6, 0.4], [0.99, 0.01]])
    assert_allclose(net.tables["grass"][1, 0], [0.1, 0.3, 0.6])
    expected = 0.7 * (0.6 * 0.9 + 0.4 * 0.1) + 0.3 * (0.99 * 0.1)
    assert_allclose(net.marginals()["grass"][0], expected)
    assert_allclose(net.given({"rain": "yes", "hose": "off"}).marginal("grass"), [0.1, 0.3, 0.6])
    assert_allclose(net.do({"hose": "on"}).marginal("rain"), [0.7, 0.3])
    assert net.map()[0] == {"rain": "no", "hose": "off", "grass": "dry"}
    assert_allclose(net.log_prob(["yes", "off", "wet"]), np.log(0.3 * 0.99 * 0.6))
    with pytest.raises(DomainError, match=r"'grass' has no state 'soaked': its states are \('dry', 'damp', 'wet'\)"):
        net.given({"grass": "soaked"})


def test_a_whole_table_runs_through_the_variable_slowest(tmp_path):
    path = tmp_path / "x.bif"
    rows = _TEXT.index("probability ( grass")
    path.write_text(_TEXT[:rows] + "probability ( grass | rain, hose ) { table .9 .1 .1 0 .05 .2 .3 .1 .05 .7 .6 .9; }")
    assert_allclose(read_bif(path).tables["grass"][0, 1], [0.1, 0.2, 0.7])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[ 3 ]", "[ 4 ]", "line 6: variable 'grass' must have 4 different states; got 3"),
        ("rain, hose", "rain, host", "line 15: there is no variable 'host'"),
        ("(no, on)", "(no, wet)", "line 17: .* are not states of the parents"),
        ("0.1 0.2 0.7", "0.1 0.2", "line 17: a row of 'grass' needs 3"),
        ("0.1 0.2 0.7", "0.1 0.2 x", "line 17: a probability should come"),
        ("0.1 0.2 0.7", "0.1 0.2 -0.7", "line 17: a probability must not be negative"),
        ("0.1 0.2 0.7", "0.1 0.2 0.2", "sum to one"),
        ("  (no, on) 0.1 0.2 0.7;\n", "", "for all states of its parents"),
        ("variable hose", "variable rain", "comes twice"),
        ("variable hose", "variant hose", "line 4: 'network' or 'variable' or 'probability' should come"),
        ("probability ( rain ) { table 0.7, 0.3; }", "", "'rain' has no probabilities"),
        ("[ 3 ]", "[ 999999999999 ]", "line 6"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, old, new, message):
    assert old in _TEXT
    path = tmp_path / "x.bif"
    path.write_text(_TEXT.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=message):
        read_bif(path)


def test_truncations_and_noise_are_read_or_refused_and_nothing_else(tmp_path):
    path, rng = tmp_path / "x.bif", np.random.default_rng(0)
    for end in range(0, len(_TEXT) - 3, 3):
        path.write_text(_TEXT[:end])
        with pytest.raises(FileFormatError):
            read_bif(path)
    data = np.frombuffer(_TEXT.encode(), dtype=np.uint8)
    refused = []
    for _ in range(400):
        noisy = data.copy()
        noisy[rng.integers(data.size, size=2)] = rng.choice(np.frombuffer(b'{}()[];|,"0 x\n\xff', dtype=np.uint8), 2)
        path.write_bytes(noisy.tobytes())
        try:
            read_bif(path)
        except FileFormatError as problem:
            refused.append(str(problem))
    assert all("line" in message for message in refused)


def test_a_large_file_is_read_at_once(tmp_path):
    """A hundred thousand numbers in rows of three: by its processor time, the machine may be busy."""
    path, net = tmp_path / "x.bif", random_net(np.random.default_rng(0), 400, 4, 8, 5)
    write_bif(path, net)
    assert sum(table.size for table in net.tables.values()) > 50_000
    begin = time.process_time()
    again = read_bif(path)
    assert time.process_time() - begin < 0.6
    assert all(np.array_equal(again.tables[name], table) for name, table in net.tables.items())


def test_comments_and_quotes(tmp_path):
    path = tmp_path / "x.bif"
    path.write_text(
        'network "a // b" {} /* one\ntwo */ variable "x y" { type discrete [2] { "up // here", no }; } // end\n'
        'probability ( "x y" ) { table 0.25 0.75; }'
    )
    assert read_bif(path).query("x y") == pytest.approx({"up // here": 0.25, "no": 0.75})
    path.write_text("network a {} /* one\ntwo */\nvariant")
    with pytest.raises(FileFormatError, match="line 3"):
        read_bif(path)
