"""`cumulant crf`: what it writes and prints is what the library computes, and what is wrong is said in one line."""

import io
import re
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest

from cumulant import files
from cumulant.cli import main
from cumulant.sequences import ChainCRF, SequenceDualAscent
from cumulant.sequences.data.conll import read_conll, write_conll
from cumulant.sequences.data.crfsuite_text import read_crfsuite, write_crfsuite
from cumulant.sequences.data.templates import template
from cumulant.sequences.evaluation import chunk_scores, token_accuracy

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[0,1]\n"
NOUNS, ADJECTIVES, VERBS = ("dog", "cat", "house", "idea"), ("old", "green", "loud"), ("sees", "has", "likes", "builds")


def sentences(n, seed):
    """Small sentences with chunks: a noun phrase, a verb, another noun phrase, at times a full stop."""
    rng = np.random.default_rng(seed)

    def phrase():
        words = [("the", "DT"), *[(str(rng.choice(ADJECTIVES)), "JJ")] * int(rng.integers(2))]
        words.append((str(rng.choice(NOUNS)), "NN"))
        if rng.random() < 0.1:
            words = words[-1:]
        return [(*word, "I-NP" if i else "B-NP") for i, word in enumerate(words)]

    made = []
    for _ in range(n):
        sentence = [*phrase(), (str(rng.choice(VERBS)), "VB", "B-VP"), *phrase()]
        made.append(sentence + [(".", ".", "O")] * int(rng.integers(2)))
    return made


def run(*arguments):
    """Run the command in this process; returns its exit code."""
    with pytest.raises(SystemExit) as stop:
        main(list(map(str, arguments)))
    return stop.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files to learn from, and a model."""
    folder = tmp_path_factory.mktemp("crf")
    write_conll(folder / "train.conll", sentences(60, 0))
    write_conll(folder / "dev.conll", sentences(20, 1))
    write_conll(folder / "test.conll", sentences(30, 2))
    write_conll(folder / "bare.conll", [[token[:2] for token in sentence] for sentence in sentences(30, 2)])
    (folder / "words.tpl").write_text(TEMPLATE)
    assert run("crf", "train", folder / "train.conll", "-t", folder / "words.tpl", "-m", folder / "m.npz") == 0
    return folder


@pytest.fixture(scope="module")
def guesses(folder):
    """The labels of the test file by the library, without the command line."""
    made = template(TEMPLATE)
    train, test = read_conll(folder / "train.conll"), read_conll(folder / "test.conll")
    crf = ChainCRF().fit([made(s) for s in train], [[token[-1] for token in s] for s in train])
    return crf.predict([made(s) for s in test])


def test_training_prints_the_data_and_the_certificate(folder, capsys):
    code = run("crf", "train", folder / "train.conll", "-t", "chunking", "-m", folder / "chunking", "--dev",
               folder / "dev.conll", "--l2", 0.01, "--tol", 1e-4, "--jobs", 1, "--seed", 3)  # fmt: skip
    assert code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("60 sequences, ")
    for words in ("4 labels", "P(w) - P* <=", "Le Priol 2021", "held-out sequences: token accuracy", "chunk F1"):
        assert words in out
    crf = ChainCRF.load(folder / "chunking.npz")
    assert (crf.l2, crf.tol, crf.n_jobs, crf.random_state, crf.verbose) == (0.01, 1e-4, 1, 3, False)
    assert template(crf.template) == template("chunking")


def test_a_model_from_before_templates_were_kept_can_be_read(folder, tmp_path):
    saved = files.load(folder / "m.npz")
    older = {name: value for name, value in saved.settings.items() if name != "template"}
    crf = ChainCRF.load(files.save(tmp_path / "older", saved.kind, saved.arrays, older))
    assert crf.template is None
    assert np.array_equal(crf.weights_, ChainCRF.load(folder / "m.npz").weights_)


def test_the_best_weights_on_a_development_set_are_certified_with_l1(folder, tmp_path, capsys):
    code = run("crf", "train", folder / "train.conll", "-t", "chunking", "-m", tmp_path / "m.npz", "--dev",
               folder / "dev.conll", "--l1", 0.01)  # fmt: skip
    assert code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "P(w) - P* <=" in out
    assert "Fenchel-Young" in out
    assert run("crf", "show", "-m", tmp_path / "m.npz") == 0
    assert "of them zero" in capsys.readouterr().out


def test_a_file_comes_back_with_one_more_column(folder, guesses, tmp_path, capsys):
    assert run("crf", "tag", folder / "test.conll", "-m", folder / "m.npz", "-o", tmp_path / "tagged") == 0
    assert capsys.readouterr().out == ""
    tagged = read_conll(tmp_path / "tagged")
    assert [[token[:-1] for token in s] for s in tagged] == read_conll(folder / "test.conll")
    assert [[token[-1] for token in s] for s in tagged] == guesses


def test_labels_are_not_needed_and_the_rest_can_be_a_pipe(folder, guesses, monkeypatch, capsys):
    class Input:
        buffer = io.BytesIO((folder / "bare.conll").read_bytes())

    monkeypatch.setattr("sys.stdin", Input)
    assert run("crf", "tag", "-", "-m", folder / "m.npz") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines if line] == [label for labels in guesses for label in labels]
    assert lines.count("") == 30


def test_the_scores_are_those_of_the_library(folder, guesses, capsys):
    assert run("crf", "evaluate", folder / "test.conll", "-m", folder / "m.npz") == 0
    out = capsys.readouterr().out
    truth = [[token[-1] for token in s] for s in read_conll(folder / "test.conll")]
    assert f"token accuracy {100 * token_accuracy(truth, guesses):.2f} %" in out
    scores = chunk_scores(truth, guesses)
    (row,) = (line for line in out.splitlines() if re.search(r"\ball\b", line))
    numbers = re.findall(r"[\d.]+", row)
    assert numbers == [
        *(f"{100 * share:.2f}" for share in (scores.precision, scores.recall, scores.f1)),
        *map(str, scores.counts),
    ]
    assert "Confusion" in out


def test_a_file_with_predictions_needs_no_model(folder, guesses, tmp_path, capsys):
    assert run("crf", "evaluate", folder / "test.conll", "-m", folder / "m.npz") == 0
    expected = capsys.readouterr().out
    assert run("crf", "tag", folder / "test.conll", "-m", folder / "m.npz", "-o", tmp_path / "tagged") == 0
    assert run("crf", "evaluate", tmp_path / "tagged") == 0
    assert capsys.readouterr().out == expected
    truth = [[token[-1] for token in s] for s in read_conll(folder / "test.conll")]
    lines = [  # as `crfsuite tag -r -p` prints it
        ["@probability\t0.9", *(f"{label}\t{said}" for label, said in zip(*pair, strict=True)), ""]
        for pair in zip(truth, guesses, strict=True)
    ]
    (tmp_path / "crfsuite").write_text("\n".join(line for sequence in lines for line in sequence))
    assert run("crf", "evaluate", tmp_path / "crfsuite") == 0
    assert capsys.readouterr().out == expected


def test_labels_that_are_no_chunks_have_no_f1_and_new_ones_count_as_wrong(folder, tmp_path, capsys):
    tags = [[(word, pos) for word, pos, _ in s] for s in read_conll(folder / "train.conll")]
    write_conll(tmp_path / "tags", tags)
    assert run("crf", "train", tmp_path / "tags", "-t", "U:%x[0,0]", "-m", tmp_path / "tags.npz") == 0
    write_conll(tmp_path / "new", [[*tags[0], ("wow", "UH")]])
    capsys.readouterr()
    assert run("crf", "evaluate", tmp_path / "new", "-m", tmp_path / "tags.npz") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "no F1 of chunks" in out
    assert "count as wrong: UH" in out
    assert f"({len(tags[0])} of {len(tags[0]) + 1})" in out


def test_many_labels_are_confused_in_a_list(tmp_path, capsys):
    rng = np.random.default_rng(0)
    write_conll(tmp_path / "many", [[(f"w{i}", f"L{rng.integers(12):02}") for i in range(14)] for _ in range(4)])
    run("crf", "train", tmp_path / "many", "-t", "U:%x[0,0]", "-m", tmp_path / "m.npz", "--max-epochs", 1)
    capsys.readouterr()
    assert run("crf", "evaluate", tmp_path / "many", "-m", tmp_path / "m.npz") == 0
    assert "The most frequent confusions" in " ".join(capsys.readouterr().out.split())
    sure = [[(f"w{i}", f"L{i:02}") for i in range(14)]] * 3
    write_conll(tmp_path / "sure", sure)
    run("crf", "train", tmp_path / "sure", "-t", "U:%x[0,0]", "-m", tmp_path / "m.npz")
    capsys.readouterr()
    assert run("crf", "evaluate", tmp_path / "sure", "-m", tmp_path / "m.npz") == 0
    assert "no label was taken for another" in capsys.readouterr().out


def test_a_model_shows_its_weights_and_its_certificate(folder, capsys):
    assert run("crf", "show", "-m", folder / "m", "--top", 7) == 0
    out = capsys.readouterr().out
    crf = ChainCRF.load(folder / "m.npz")
    for name, label, weight in crf.state_features()[:7]:
        assert re.search(rf"{re.escape(name)}.*{re.escape(label)}.*{re.escape(f'{weight:+.4f}')}", out)
    for label, following, weight in crf.transitions()[:7]:
        assert re.search(rf"{re.escape(label)}.*{re.escape(following)}.*{re.escape(f'{weight:+.4f}')}", out)
    assert "P(w) - P* <=" in out
    assert "U1:%x[-1,0]" in out


def test_attributes_that_are_written_out_need_no_template(folder, tmp_path, capsys):
    made = template(TEMPLATE)
    for name in ("train", "test"):
        columns = read_conll(folder / f"{name}.conll")
        X = [[dict.fromkeys(token, 1.0) for token in made(s)] for s in columns]
        write_crfsuite(tmp_path / name, X, [[token[-1] for token in s] for s in columns])
    assert run("crf", "train", tmp_path / "train", "--format", "crfsuite", "-m", tmp_path / "m.npz") == 0
    assert run("crf", "tag", tmp_path / "test", "-m", tmp_path / "m.npz", "-o", tmp_path / "tagged") == 0
    X, y = read_crfsuite(tmp_path / "test")
    tagged_X, tagged_y = read_crfsuite(tmp_path / "tagged")
    assert tagged_X == X
    assert tagged_y == ChainCRF.load(tmp_path / "m.npz").predict(X)
    capsys.readouterr()
    assert run("crf", "evaluate", tmp_path / "test", "-m", tmp_path / "m.npz") == 0
    assert f"token accuracy {100 * token_accuracy(y, tagged_y):.2f} %" in capsys.readouterr().out
    assert run("crf", "tag", tmp_path / "test", "-m", tmp_path / "m.npz") == 0
    assert capsys.readouterr().out == (tmp_path / "tagged").read_text()


def test_ctrl_c_keeps_the_model(folder, tmp_path, monkeypatch, capsys):
    step = SequenceDualAscent.step

    def interrupted(self, problem, state):
        signal.raise_signal(signal.SIGINT)
        return step(self, problem, state)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(SequenceDualAscent, "step", interrupted)
        code = run("crf", "train", folder / "train.conll", "-t", folder / "words.tpl", "-m", tmp_path / "m.npz",
                   "--tol", 1e-14)  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    assert code == 130
    out = capsys.readouterr().out
    assert "Interrupted" in out
    assert "The model so far" in out
    crf = ChainCRF.load(tmp_path / "m.npz")
    assert crf.status_ == "interrupted"
    assert crf.certificate_.upper < np.inf
    assert run("crf", "tag", folder / "test.conll", "-m", tmp_path / "m.npz") == 0


def test_the_clock_ends_training(folder, tmp_path, capsys):
    code = run("crf", "train", folder / "train.conll", "-t", folder / "words.tpl", "-m", tmp_path / "m.npz",
               "--tol", 1e-15, "--time-limit", 1e-6)  # fmt: skip
    assert code == 0
    assert "Stopped by --time-limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("train none.conll -t words.tpl -m x.npz", 1, "no such file: none.conll"),
        ("train train.conll -m x.npz", 2, "needs --template"),
        ("train train.conll -t nothing.tpl -m x.npz", 1, "'nothing.tpl' is neither a file"),
        ("train train.conll -t deep.tpl -m x.npz", 1, "needs column 2"),
        ("train train.conll -t wrong.tpl -m x.npz", 1, "wrong.tpl, line 1: there is no function %y"),
        ("train ragged.conll -t words.tpl -m x.npz", 1, "ragged.conll, line 2: 2 columns"),
        ("train empty.conll -t words.tpl -m x.npz", 1, "empty.conll holds no token"),
        ("train latin.conll -t words.tpl -m x.npz", 1, "is not text in utf-8"),
        ("train train.conll -t words.tpl -m no/where.npz", 1, "the folder of --model does not exist: no"),
        ("train train.conll -t words.tpl -m x.npz --tol 0", 1, "tol must be positive"),
        ("train train.conll -t words.tpl -m x.npz --l2=-1", 1, "l2 must be positive"),
        ("train train.conll -t words.tpl -m x.npz --format crfsuite", 2, "leave --template away"),
        ("train train.conll -t words.tpl -m x.npz --format xml", 2, "xml"),
        ("train train.conll -t words.tpl -m x.npz --l1 1 --solver lbfgs", 1, "l1 penalty"),
        ("train train.conll -t words.tpl", 2, "--model"),
        ("tag test.conll -m none.npz", 1, "no such file: none.npz"),
        ("tag test.conll -m words.tpl", 1, "not a Cumulant file"),
        ("tag narrow.conll -m m.npz", 1, "narrow.conll has 1 columns, and the template of the model needs 2"),
        ("tag test.conll -m arrays.npz", 1, "columns without names"),
        ("evaluate bare.conll -m m.npz", 1, "the last one the label"),
        ("evaluate none.conll -m m.npz", 1, "no such file: none.conll"),
        ("evaluate narrow.conll", 1, "its last two columns must be the true and the predicted label"),
        ("evaluate test.conll", 1, "have no label in common"),
        ("show -m m.npz --top 0", 2, "--top"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(arguments, code, message, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    Path("deep.tpl").write_text("U:%x[0,2]")
    Path("wrong.tpl").write_text("U:%y[0,0]")
    Path("ragged.conll").write_text("a b c\na b\n")
    Path("empty.conll").write_text("\n\n")
    Path("latin.conll").write_bytes(b"caf\xe9 NN O\n")
    Path("narrow.conll").write_text("dog\n")
    if not Path("arrays.npz").exists():
        ChainCRF().fit([np.eye(2)], [["a", "b"]]).save("arrays.npz")
    assert run("crf", *shlex.split(arguments)) == code
    err = capsys.readouterr().err
    assert message in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err
    if code == 1:
        assert err.count("\n") == 1
    assert not Path("x.npz").exists()


def test_another_encoding_can_be_given(folder, tmp_path, capsys):
    (tmp_path / "latin.conll").write_bytes("café NN O\nnoir JJ O\n".encode("latin-1"))
    options = ("-m", tmp_path / "m.npz", "--encoding", "latin-1")
    assert run("crf", "train", tmp_path / "latin.conll", "-t", folder / "words.tpl", *options) == 0
    assert run("crf", "tag", tmp_path / "latin.conll", *options, "-o", tmp_path / "out") == 0
    assert (tmp_path / "out").read_bytes() == "café NN O O\nnoir JJ O O\n\n".encode("latin-1")


def test_too_little_memory_is_one_line(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("cumulant.sequences.estimator.free_memory", lambda: 10_000)
    assert run("crf", "train", folder / "train.conll", "-t", "chunking", "-m", tmp_path / "m.npz") == 1
    err = capsys.readouterr().err
    assert "GiB are free" in err
    assert err.count("\n") == 1


def test_the_commands_of_the_guide_run(folder, monkeypatch, capsys):
    guide = Path(__file__).parents[2] / "docs" / "sequences.md"
    (block,) = re.findall(r"^```sh\n(.*?)^```$", guide.read_text(), flags=re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(folder)
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    names = {command[2] for command in commands if command[:2] == ["cumulant", "crf"]}
    assert names == {"train", "tag", "evaluate", "show", "demo"}
    for command in commands:
        if command[2] != "demo":  # it has a test of its own
            assert run(*command[1:]) == 0
