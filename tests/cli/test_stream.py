"""`cumulant stream spam`: messages in folders, in an index, in an mbox; bad ones among them."""

import mailbox
import re

import numpy as np
import pytest

from cumulant.cli import main
from cumulant.glm import OnlineL1Logistic

WORDS = {"spam": ["pills", "cheap", "winner", "offer"], "ham": ["lunch", "meeting", "noon", "report"]}


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(map(str, arguments)))
    return stop.value.code


def message(label, rng):
    words = rng.choice(WORDS[label] + ["the", "and", "you"], 12)
    return f"Subject: {words[0]}\nFrom: someone@example.org\n\n{' '.join(words)}\n"


@pytest.fixture(scope="module")
def mails(tmp_path_factory):
    """Sixty messages in two folders, and some that are broken."""
    folder, rng = tmp_path_factory.mktemp("mails"), np.random.default_rng(0)
    labels = ["spam" if i % 2 else "ham" for i in range(60)]
    for label in WORDS:
        (folder / label).mkdir()
    for i, label in enumerate(labels):
        (folder / label / f"{i:03d}").write_text(message(label, rng))
    (folder / "ham" / "900").write_bytes(b"")
    (folder / "ham" / "901").write_bytes(b"Content-Type: text/plain; charset=no-such-set\n\nlunch \xff\xfe caf\xe9\n")
    (folder / "spam" / "902").write_bytes(b"Subject: =?utf-8?b?!!?=\nContent-Type: text/html\n\n<b>cheap</b> \xc3\x28")
    (folder / "spam" / "903").write_bytes(b"\n" + b"pills " * 10_000)
    (folder / "ham" / ".hidden").write_text("not a message")
    (folder / "index").write_text("".join(f"{label} {label}/{i:03d}\n" for i, label in enumerate(labels)))
    box = mailbox.mbox(folder / "all.mbox")
    for label in labels[:10]:
        box.add(mailbox.mboxMessage(message(label, rng)))
    box.close()
    (folder / "labels").write_text("\n".join(labels[:10]))
    return folder


def counts(text):
    table = re.search(r"kept\s+(\d+) .*?\)\s+(\d+).*\nflagged\s+(\d+) .*?\)\s+(\d+)", text)
    return tuple(map(int, table.groups()))


def test_two_folders(mails, capsys, tmp_path):
    saved = tmp_path / "filter.npz"
    assert run("stream", "spam", mails, "--threshold", 0.9, "--max-bytes", 20_000, "--save", saved) == 0
    text = capsys.readouterr().out
    kept, missed, false_alarms, caught = counts(text)
    assert kept + false_alarms == 32
    assert missed + caught == 32
    assert caught > 15
    assert false_alarms <= 2
    assert "1 empty, 1 longer than --max-bytes, 0 that could not be read" in text
    assert "mistakes so far" in text
    model = OnlineL1Logistic.load(saved)
    assert model.n_rows_ == 64
    assert run("stream", "spam", mails, "--index", mails / "index", "--model", saved, "--threshold", 0.9) == 0
    kept, missed, false_alarms, caught = counts(capsys.readouterr().out)
    assert (kept + false_alarms, missed + caught) == (30, 30)
    assert missed + false_alarms <= 8


def test_an_mbox_and_a_random_order(mails, capsys):
    assert (
        run("stream", "spam", mails / "all.mbox", "--index", mails / "labels", "--shuffle", 1, "--features", 1024) == 0
    )
    assert "10 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (lambda m: [m / "none"], "no such file or folder"),
        (lambda m: [m / "ham"], "has no sub-folder ham or spam"),
        (lambda m: [m / "all.mbox"], "an mbox needs --index"),
        (lambda m: [m / "all.mbox", "--index", m / "index"], "10 messages and .* 60 labels"),
        (lambda m: [m, "--index", m / "labels"], "line 1: a label and the path"),
        (lambda m: [m, "--index", m / "ham" / "000"], "label must be ham or spam"),
        (lambda m: [m, "--save", m / "none" / "x.npz"], "there is no folder"),
        (lambda m: [m, "--threshold", "1.5"], "threshold must be"),
    ],
)
def test_what_is_wrong_is_said(mails, capsys, arguments, said):
    assert run("stream", "spam", *arguments(mails)) == 1
    assert re.search(said, " ".join(capsys.readouterr().err.split()))
