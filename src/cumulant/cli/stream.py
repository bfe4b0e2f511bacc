"""`cumulant stream`: learn from a stream and report the errors. `spam` filters a folder of messages or an mbox."""

import mailbox
import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

app = typer.Typer(help="Learn from streams, predicting each item before it is learned.", no_args_is_help=True)

_LABELS = ("ham", "spam")
_BATCH = 256


@app.callback()
def _options() -> None:
    """Learn from streams, predicting each item before it is learned."""


@app.command()
def spam(
    mails: Annotated[
        Path,
        typer.Argument(
            help="A folder with sub-folders ham and spam, or, with --index, any folder of messages or an mbox."
        ),
    ],
    index: Annotated[
        Path | None,
        typer.Option(
            help="Lines 'label path', paths relative to this file; for an mbox a line 'label' for each message."
        ),
    ] = None,
    threshold: Annotated[float, typer.Option(help="Flag a message as spam from this probability.")] = 0.98,
    features: Annotated[int, typer.Option(min=2, help="Columns that words are hashed to.")] = 2**20,
    l1: Annotated[float, typer.Option(help="Penalty l1 |w|_1 beside the mean loss.")] = 1e-5,
    model: Annotated[Path | None, typer.Option("--model", "-m", help="Resume from this saved filter.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the filter here, so that it can be resumed.")] = None,
    shuffle: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of a random order.", show_default="the order of names or of the index"),
    ] = None,
    max_bytes: Annotated[int, typer.Option(min=1, help="Bytes of a message that are read.")] = 1_000_000,
) -> None:
    """Classify each message, then learn its label: the table of errors, and the number of mistakes over time.

    Messages that cannot be decoded are read as far as they can; empty ones count, with the intercept alone.
    """
    from rich.console import Console

    _run(Console(), mails, index, threshold, features, l1, model, save, shuffle, max_bytes)


class _Mail(NamedTuple):
    """Where a message is, and its label; `number` counts in an mbox."""

    path: Path
    label: str
    number: int | None = None


def _run(console, mails, index, threshold, features, l1, model, save, shuffle, max_bytes) -> None:
    from rich.progress import track
    from rich.table import Table

    from cumulant.glm import OnlineL1Logistic, hashing, prequential
    from cumulant.randomness import generator

    if save is not None and not (save.parent if str(save.parent) else Path()).is_dir():
        raise ValueError(f"--save: there is no folder {save.parent}")
    found = _find(mails, index)
    if not found:
        raise ValueError(f"{mails} holds no messages")
    if shuffle is not None:
        found = [found[i] for i in generator(shuffle).permutation(len(found))]
    filter_ = OnlineL1Logistic(l1=l1) if model is None else OnlineL1Logistic.load(model)
    if model is not None:
        if list(filter_.classes_) != list(_LABELS):
            raise ValueError(f"--model: {model} tells {list(filter_.classes_)} apart, not ham and spam")
        features = filter_.n_features_in_
    vectorizer, counted, trouble = hashing(features), None, 0
    batches = [found[i : i + _BATCH] for i in range(0, len(found), _BATCH)]
    reader = _Reader(max_bytes)
    for batch in track(batches, "reading", console=console, transient=True, disable=not console.is_terminal):
        texts = [reader.text(mail) for mail in batch]
        labels = [mail.label for mail in batch]
        table = prequential(filter_, (texts, labels), threshold, classes=_LABELS, vectorizer=vectorizer, points=_BATCH)
        counted = table if counted is None else counted + table
    reader.close()
    trouble = reader.unreadable
    assert counted is not None
    console.print(str(counted), highlight=False)
    curve = Table(title="Mistakes at probability 1/2", title_justify="left")
    for heading in ("messages", "mistakes so far", "share"):
        curve.add_column(heading, justify="right")
    for seen, wrong in _thinned(counted.curve):
        curve.add_row(str(seen), str(wrong), f"{100 * wrong / seen:.2f} %")
    console.print(curve)
    if reader.empty or reader.cut or trouble:
        console.print(f"{reader.empty} empty, {reader.cut} longer than --max-bytes, {trouble} that could not be read")
    if save is not None:
        console.print(f"The filter: {filter_.save(save)}", soft_wrap=True, markup=False)


def _thinned(curve: Any, points: int = 10) -> list[tuple[int, int]]:
    import numpy as np

    rows = np.unique(np.linspace(0, len(curve) - 1, min(points + 1, len(curve))).astype(int))[
        1 if len(curve) > 1 else 0 :
    ]
    return [(int(curve[i, 0]), int(curve[i, 1])) for i in rows]


# Finding messages and their labels ------------------------------------------------------------------------------------


def _find(mails: Path, index: Path | None) -> list[_Mail]:
    if not mails.exists():
        raise FileNotFoundError(f"no such file or folder: {mails}")
    if index is not None:
        return _indexed_mbox(mails, index) if mails.is_file() else _indexed(index)
    if mails.is_file():
        raise ValueError(f"{mails} is a file: an mbox needs --index, with the label of each message on a line")
    missing = [label for label in _LABELS if not (mails / label).is_dir()]
    if missing:
        raise ValueError(f"{mails} has no sub-folder {' or '.join(missing)}: give the labels by --index")
    found = [
        _Mail(path, label)
        for label in _LABELS
        for path in (mails / label).rglob("*")
        if path.is_file() and not path.name.startswith(".")
    ]
    # By name, so that the classes are mixed where names tell the order of arrival.
    return sorted(found, key=lambda mail: (str(mail.path.relative_to(mails / mail.label)), mail.label))


def _lines(index: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(index.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if line.strip():
            words = line.split(maxsplit=1)
            if words[0].lower() not in _LABELS:
                raise ValueError(f"{index}, line {number}: the label must be ham or spam; got {words[0]!r}")
            yield number, [words[0].lower(), *words[1:]]


def _indexed(index: Path) -> list[_Mail]:
    found = []
    for number, words in _lines(index):
        if len(words) < 2:
            raise ValueError(f"{index}, line {number}: a label and the path of a message are needed")
        path = index.parent / words[1].strip()
        if not path.is_file():
            raise FileNotFoundError(f"{index}, line {number}: no such file: {path}")
        found.append(_Mail(path, words[0]))
    return found


def _indexed_mbox(mails: Path, index: Path) -> list[_Mail]:
    labels = [words[0] for _, words in _lines(index)]
    box = mailbox.mbox(mails, create=False)
    count = len(box)
    box.close()
    if count != len(labels):
        raise ValueError(f"{mails} holds {count} messages and {index} {len(labels)} labels")
    return [_Mail(mails, label, number) for number, label in enumerate(labels)]


# Reading a message ----------------------------------------------------------------------------------------------------


class _Reader:
    """Texts of messages, with counts of those that were empty, cut short or unreadable."""

    def __init__(self, max_bytes: int):
        self.max_bytes, self.empty, self.cut, self.unreadable = max_bytes, 0, 0, 0
        self._box: mailbox.mbox | None = None

    def text(self, mail: _Mail) -> str:
        """Subject, sender and the text parts, tags of HTML taken out; empty where nothing can be read."""
        try:
            raw = self._bytes(mail)
        except OSError:
            self.unreadable += 1
            return ""
        if len(raw) > self.max_bytes:
            self.cut += 1
            raw = raw[: self.max_bytes]
        text = _text_of(raw)
        self.empty += not text.strip()
        return text

    def _bytes(self, mail: _Mail) -> bytes:
        if mail.number is None:
            with mail.path.open("rb") as file:
                return file.read(self.max_bytes + 1)
        if self._box is None:
            self._box = mailbox.mbox(mail.path, create=False)
        return self._box.get_bytes(self._box.keys()[mail.number])

    def close(self) -> None:
        """Close the mbox."""
        if self._box is not None:
            self._box.close()


def _text_of(raw: bytes) -> str:
    try:
        message = message_from_bytes(raw)
        head = [str(message.get(name, "")) for name in ("subject", "from")]
        return " ".join([*head, *(_part(part) for part in message.walk() if part.get_content_maintype() == "text")])
    except Exception:  # the parser of headers raises what it likes on mail made to break it: read it as plain text
        return raw.decode("latin-1")


def _part(part: Message) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    try:
        text = payload.decode(part.get_content_charset() or "utf-8", errors="replace")
    except LookupError:  # a character set that does not exist
        text = payload.decode("latin-1")
    return re.sub(r"<[^>]{0,500}>", " ", text) if part.get_content_subtype() == "html" else text
