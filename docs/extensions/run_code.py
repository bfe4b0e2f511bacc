"""Run the Python blocks of the guides while they are built, and show below each what it prints, returns and draws.

The blocks of a page share one namespace, as the cells of a notebook do. What stands below a block is then what the code
of today answers, so that it cannot go stale; a block that fails fails the build. A block of text directly below the
code, for those who read the page as a file, gives way to the answer.
"""

import ast
import contextlib
import hashlib
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_BLOCK = re.compile(r"^(```python\n(.*?)^```$)(\n+```text\n.*?^```$)?", flags=re.MULTILINE | re.DOTALL)
_PICTURES = "_pictures"


@dataclass
class Answer:
    """What one block of a page did: `text` as it would stand in a console, and the figures it drew."""

    text: str
    figures: list[Any] = field(default_factory=list)


def blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a Markdown page, each with the number of its first line."""
    return [(text[: match.start(2)].count("\n") + 1, match.group(2)) for match in _BLOCK.finditer(text)]


def answers(text: str, name: str) -> Iterator[Answer]:
    """Run the blocks of a page one after the other, in an empty folder; `name` stands in tracebacks."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown: list[Any] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for line, source in blocks(text):
            yield _answer("\n" * (line - 1) + source, name, names, shown)


def _answer(source: str, name: str, names: dict[str, Any], shown: list[Any]) -> Answer:
    """Run one block; the value of a last line that is an expression is shown, as in a console."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), names)
        drawn = [figure for figure in map(_figure, [*names.values(), value]) if figure is not None]
        if value is not None and _figure(value) is None:
            with np.printoptions(legacy="1.25"):  # 0.5 instead of np.float64(0.5)
                print(repr(value))
    new = []
    for figure in drawn:
        if all(figure is not other for other in shown):
            shown.append(figure)
            new.append(figure)
    return Answer(printed.getvalue().rstrip(), new)


def _figure(value: Any) -> Any:
    """The matplotlib figure that a value is, or belongs to."""
    if type(value).__module__.startswith("matplotlib"):
        return getattr(value, "figure", None)
    several = isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.size > 0  # an array of axes
    return _figure(value.flat[0]) if several else None


def _alternative(figure: Any) -> str:
    """What a reader who does not see a figure is told."""
    axes = [f"{ax.get_ylabel() or 'values'} against {ax.get_xlabel() or 'position'}" for ax in figure.axes]
    return "; ".join(axes).replace("\n", " ")


def _below(page: str, answer: Answer, save: Callable[[Any, Path], Any], folder: Path) -> str:
    shown = ""
    if answer.text:
        fence = "`" * 4
        shown += f"\n\n{fence}{{code-block}} text\n:class: output\n\n{answer.text}\n{fence}"
    for figure in answer.figures:
        path = folder / _PICTURES / f"{page}-{hashlib.sha1(_alternative(figure).encode()).hexdigest()[:8]}.svg"
        while path.exists():
            path = path.with_stem(path.stem + "x")
        save(figure, path)
        shown += f"\n\n```{{image}} /{_PICTURES}/{path.name}\n:alt: {_alternative(figure)}\n:class: picture\n```"
    return shown


def _run_page(app: Any, page: str, source: list[str]) -> None:
    if "/" in page or not blocks(source[0]):
        return
    from cumulant import plotting

    folder = Path(app.srcdir)
    for old in folder.glob(f"{_PICTURES}/{page}-*.svg"):
        old.unlink()
    results = answers(source[0], f"{page}.md")
    source[0] = _BLOCK.sub(lambda match: match.group(1) + _below(page, next(results), plotting.save, folder), source[0])
    results.close()


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    # The pages and the tests compile the same programs: what one has compiled the other reads.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(app.srcdir).parent / ".jax_cache"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    app.connect("source-read", _run_page)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
