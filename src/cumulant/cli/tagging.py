"""What the commands of `cumulant crf` do: read sequences, train, label, compare, look."""

import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from cumulant.optim import InterruptedWarning
from cumulant.sequences import ChainCRF
from cumulant.sequences.data.conll import read_conll, read_text, write_conll
from cumulant.sequences.data.crfsuite_text import read_crfsuite, write_crfsuite
from cumulant.sequences.data.templates import Template, template
from cumulant.sequences.evaluation import ChunkScores, chunk_scores, confusion, token_accuracy

_MATRIX = 10  # labels of which a whole confusion matrix is printed; of more, only the largest entries
_CONFUSIONS = 15


class _Sequences(NamedTuple):
    """Attribute names (and values) of each token, and its label."""

    X: list[Any]
    y: list[list[str]]

    @property
    def n_tokens(self) -> int:
        return sum(map(len, self.y))


def train(
    data: str, model: Path, *, source: str | None, dev: str | None, encoding: str, settings: dict[str, Any]
) -> bool:
    """Fit and save a model; print how it went. False where Ctrl-C ended it. `source` is that of the template."""
    console = Console()
    model = _file(model)
    _check_folder(model)  # now, rather than after an hour of training
    made = None if source is None else template(source)
    with console.status("reading"):
        known = _read_labelled(data, made, encoding)
        held_out = None if dev is None else _read_labelled(dev, made, encoding)
    attributes = len({name for sequence in known.X for token in sequence for name in token})
    console.print(
        f"{len(known.X)} sequences, {known.n_tokens} tokens, {attributes} attributes, "
        f"{len({label for labels in known.y for label in labels})} labels"
    )
    crf = ChainCRF(**settings, verbose=True)
    with warnings.catch_warnings():  # how training ended is printed below
        for kind in (ConvergenceWarning, InterruptedWarning):
            warnings.simplefilter("ignore", kind)
        crf.fit(known.X, known.y, *(() if held_out is None else held_out))
    crf.set_params(verbose=False)
    crf.template = None if made is None else made.text
    saved = crf.save(model)
    console.print(f"{_ENDINGS[crf.status_]} {_journey(crf)}")
    _print_certificate(console, crf)
    if held_out is not None:
        guesses = _predicted(crf, held_out.X)
        scores = _chunk_scores(held_out.y, guesses)
        f1 = "" if scores is None else f", chunk F1 {100 * scores.f1:.2f}"
        console.print(f"held-out sequences: token accuracy {100 * token_accuracy(held_out.y, guesses):.2f} %{f1}")
    interrupted = crf.status_ == "interrupted"
    console.print(f"The model{' so far' if interrupted else ''}: {escape(str(saved))}", soft_wrap=True)
    return not interrupted


_ENDINGS = {
    "converged": "Converged",
    "max_steps": "Stopped by --max-epochs",
    "time_limit": "Stopped by --time-limit",
    "interrupted": "[yellow]Interrupted[/]",
    "stopped": "Stopped by the held-out sequences",
    "stationary": "Stationary",
    "rounding": "Stopped by rounding",
    "diverged": "[red]Diverged[/]",
}


def tag(data: str, model: Path, output: Path | None, encoding: str) -> None:
    """Write the sequences with their predicted labels to a file or to standard output."""
    crf = _load(model)
    if crf.template is None:
        X, _ = read_crfsuite(data, encoding=encoding)
        guesses = _predicted(crf, X)
        _write(output, lambda path: write_crfsuite(path, X, guesses, encoding=encoding), encoding)
        return
    sentences = read_conll(data, encoding=encoding)
    guesses = _predicted(crf, _attributes(Template(crf.template), sentences, data))
    tagged = [
        [(*token, label) for token, label in zip(sentence, labels, strict=True)]
        for sentence, labels in zip(sentences, guesses, strict=True)
    ]
    _write(output, lambda path: write_conll(path, tagged, encoding=encoding), encoding)


def evaluate(data: str, model: Path | None, encoding: str) -> None:
    """Print the token accuracy, the chunks where labels are chunks, and the confusions."""
    unknown: set[str] = set()
    if model is None:
        truth, guesses = _read_predictions(data, encoding)
    else:
        crf = _load(model)
        known = _read_labelled(data, None if crf.template is None else Template(crf.template), encoding)
        truth, guesses = known.y, _predicted(crf, known.X)
        unknown = {label for labels in truth for label in labels}.difference(map(str, crf.classes_))
    console = Console()
    pairs = list(zip(truth, guesses, strict=True))
    right = sum(a == b for labels, said in pairs for a, b in zip(labels, said, strict=True))
    whole = sum(labels == said for labels, said in pairs)
    console.print(
        f"token accuracy {100 * token_accuracy(truth, guesses):.2f} % ({right} of {sum(map(len, truth))}); "
        f"whole sequences {100 * whole / len(truth):.2f} % ({whole} of {len(truth)})"
    )
    if unknown:
        console.print(
            f"labels that did not occur in training, and count as wrong: {escape(', '.join(sorted(unknown)))}"
        )
    scores = _chunk_scores(truth, guesses)
    if scores is None:
        console.print("the labels are not those of chunks (B-type, I-type, O and the like): no F1 of chunks")
    else:
        console.print(_chunk_table(scores))
    console.print(_confusion_table(truth, guesses))


def show(model: Path, top: int) -> None:
    """Print the largest weights, how the model was fitted, and its certificate."""
    crf, console = ChainCRF.load(_file(model)), Console()
    attributes = len(crf.weights_) - len(crf.classes_) - 3 * crf.bias
    zero = float((crf.weights_ == 0).mean())
    console.print(
        f"{attributes} attributes, {len(crf.classes_)} labels, {crf.weights_.size} weights"
        + (f", {100 * zero:.1f} % of them zero" if zero else "")
    )
    l2 = "1 / sequences" if crf.l2 is None else f"{crf.l2:g}"
    console.print(f"l2 = {l2}, l1 = {crf.l1:g}, tol = {crf.tol:g}: {crf.status_} {_journey(crf)}")
    _print_certificate(console, crf)
    features = Table(title="Features", title_justify="left")
    for heading in ("attribute", "label"):
        features.add_column(heading, overflow="fold")
    features.add_column("weight", justify="right")
    for name, label, weight in crf.state_features()[:top]:
        features.add_row(escape(str(name)), escape(str(label)), f"{weight:+.4f}")
    steps = Table(title="Transitions", title_justify="left")
    for heading in ("label", "next label"):
        steps.add_column(heading, overflow="fold")
    steps.add_column("weight", justify="right")
    for label, following, weight in crf.transitions()[:top]:
        steps.add_row(escape(str(label)), escape(str(following)), f"{weight:+.4f}")
    console.print(features, steps)
    if crf.template is not None:
        console.print(f"template of {len(Template(crf.template))} attributes a token:")
        console.print(escape(crf.template.strip()), style="dim", soft_wrap=True)


# Reading --------------------------------------------------------------------------------------------------------------


def _file(model: Path) -> Path:
    return model if model.suffix else model.with_suffix(".npz")


def _load(model: Path) -> ChainCRF:
    crf = ChainCRF.load(_file(model))
    if crf.vocabulary_.names is None:
        raise ValueError(f"{model} was fitted to columns without names: such a model is used from Python")
    return crf


def _predicted(crf: ChainCRF, X: list[Any]) -> list[list[str]]:
    return [list(map(str, labels)) for labels in crf.predict(X)]


def _read_labelled(path: str, made: Template | None, encoding: str) -> _Sequences:
    """From a file of columns with a template, else of attributes that are written out."""
    if made is None:
        return _Sequences(*read_crfsuite(path, encoding=encoding))
    sentences = read_conll(path, encoding=encoding)
    width = len(sentences[0][0])
    if made.n_columns >= width:
        raise ValueError(
            f"{path} has {width} columns, the last one the label, and the template needs column {made.n_columns - 1} "
            f"beside it (columns count from 0)"
        )
    y = [[token[-1] for token in sentence] for sentence in sentences]
    return _Sequences(_attributes(made, sentences, path), y)


def _read_predictions(path: str, encoding: str) -> tuple[list[list[str]], list[list[str]]]:
    """True and predicted labels: the last two columns of a file."""
    sentences = read_conll(path, comment="@probability", encoding=encoding)  # which CRFsuite writes before a sequence
    if len(sentences[0][0]) < 2:
        raise ValueError(
            f"{path} has 1 column; without --model its last two columns must be the true and the predicted label"
        )
    true, predicted = ([[token[c] for token in sentence] for sentence in sentences] for c in (-2, -1))
    if not set(chain.from_iterable(true)).intersection(chain.from_iterable(predicted)):
        raise ValueError(
            f"the last two columns of {path} have no label in common, so they are not the true and the predicted one: "
            "is --model missing?"
        )
    return true, predicted


def _attributes(made: Template, sentences: Sequence[Sequence[tuple[str, ...]]], path: str) -> list[list[list[str]]]:
    width = len(sentences[0][0])
    if made.n_columns > width:
        raise ValueError(f"{path} has {width} columns, and the template of the model needs {made.n_columns}")
    known: dict[str, str] = {}  # each name is kept once: a corpus repeats them millions of times
    return [[list(map(known.setdefault, names, names)) for names in made(sentence)] for sentence in sentences]


def _check_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder of --model does not exist: {folder}")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise PermissionError(f"the model cannot be written to {path}")


def _write(output: Path | None, write: Callable[[Path], None], encoding: str) -> None:
    """Have a file written, or print what would be in it."""
    if output is not None:
        write(output)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tagged"
        write(path)
        sys.stdout.write(read_text(path, encoding))


# Printing -------------------------------------------------------------------------------------------------------------


def _journey(crf: ChainCRF) -> str:
    """How long training took and where it ended."""
    last = crf.history_[-1] if crf.history_ else {"epoch": 0, "seconds": 0.0}  # Ctrl-C may come before the first pass
    if crf.certificate_ is None or not crf.objective_ > 0:
        share = "not known"
    else:
        share = f"at most {100 * crf.certificate_.upper / crf.objective_:.2g} %"
    return (
        f"after {last['epoch']:.0f} passes and {last['seconds']:.1f} s; objective {crf.objective_:.6g}, of which the "
        f"gap is {share}"
    )


def _print_certificate(console: Console, crf: ChainCRF) -> None:
    if crf.certificate_ is None:
        console.print("no certificate: the objective at these weights overflows")
    else:
        console.print(Padding(escape(str(crf.certificate_)), (0, 2)), style="cyan")


def _chunk_scores(y: list[list[str]], guesses: list[list[str]]) -> ChunkScores | None:
    """None where the labels are of no scheme of chunks."""
    for scheme in ("IOB2", "IOE2", "IOBES"):  # conlleval's rules read all alike; they differ in the letters allowed
        try:
            return chunk_scores(y, guesses, scheme)
        except ValueError:
            continue
    return None


def _chunk_table(scores: ChunkScores) -> Table:
    table = Table(title="Chunks", title_justify="left")
    table.add_column("type", overflow="fold")
    for heading in ("precision, %", "recall, %", "F1, %", "true", "found", "right"):
        table.add_column(heading, justify="right")
    for name, counts in (*scores.by_type.items(), ("all", scores.counts)):
        percentages = (f"{100 * share:.2f}" for share in (counts.precision, counts.recall, counts.f1))
        table.add_row(escape(name), *percentages, *map(str, counts), style="bold" if name == "all" else None)
    return table


def _confusion_table(y: list[list[str]], guesses: list[list[str]]) -> Table | str:
    labels, matrix = confusion(y, guesses)
    if len(labels) <= _MATRIX:
        table = Table(title="Confusion: a row for each true label", title_justify="left")
        table.add_column("true \\ said", overflow="fold")
        for label in labels:
            table.add_column(escape(label), justify="right")
        for label, row in zip(labels, matrix, strict=True):
            table.add_row(escape(label), *map(str, row))
        return table
    wrong = Counter(
        {(labels[i], labels[j]): int(matrix[i, j]) for i, j in zip(*matrix.nonzero(), strict=True) if i != j}
    )
    if not wrong:
        return "no label was taken for another"
    table = Table(title="The most frequent confusions", title_justify="left", min_width=30)
    for heading in ("true", "said"):
        table.add_column(heading, overflow="fold")
    table.add_column("tokens", justify="right")
    for (truth, said), count in wrong.most_common(_CONFUSIONS):
        table.add_row(escape(truth), escape(said), str(count))
    return table
