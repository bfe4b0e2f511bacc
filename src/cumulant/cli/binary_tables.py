"""Tables of binary data and lists of pairs, from text or NumPy files; what is wrong with one is said with its line."""

import zipfile
from pathlib import Path

import numpy as np


def read_binary(path: Path) -> tuple[np.ndarray, list[str] | None]:
    """The spins -1 and +1 of a table of 0 and 1 or of -1 and +1, shape (observations, variables), and its header."""
    table, names, first = _read(path)
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"{_where(path, row, column, first)}: {table[row, column]} is not a number that data can have")
    low = -1.0 if (table == -1).any() else 0.0
    wrong = (table != low) & (table != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{_where(path, row, column, first)}: data must be 0 and 1, or -1 and +1; got {table[row, column]:g}"
            + (" beside -1" if low < 0 and table[row, column] == 0 else "")
        )
    return np.where(table > 0, 1, -1), names


def read_pairs(path: Path, n: int) -> np.ndarray:
    """Pairs of variables from 0 to `n` - 1, one on each line: shape (pairs, 2)."""
    table, _, first = _read(path)
    if table.shape[1] != 2:
        raise ValueError(f"{path}: an edge is two columns, the variables it joins; got {table.shape[1]}")
    wrong = ~((table >= 0) & (table < n) & (table == np.floor(table)))  # a NaN is wrong too
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{_where(path, row, column, first)}: variables are whole numbers from 0 to {n - 1}; "
            f"got {table[row, column]:g}"
        )
    return table.astype(np.int64)


def _where(path: Path, row: int, column: int, first: list[int] | None) -> str:
    return f"{path}, row {row}, column {column}" if first is None else f"{path}, line {first[row]}, column {column + 1}"


def _read(path: Path) -> tuple[np.ndarray, list[str] | None, list[int] | None]:
    """The numbers, the header where there is one, and the line of each row of a text file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file of data")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if path.suffix in (".npy", ".npz"):
        return _read_numpy(path), None, None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is not text in UTF-8: {problem.reason} at byte {problem.start}") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise ValueError(f"{path} is empty")
    delimiter = next((each for each in ",;\t" if each in lines[0][1]), None)
    head = [cell.strip().strip('"') for cell in lines[0][1].split(delimiter)]
    names = None if all(_is_number(cell) for cell in head) else head
    body = lines if names is None else lines[1:]
    if not body:
        raise ValueError(f"{path} has a header and no rows")
    for number, line in body:
        width = len(line.split(delimiter))
        if width != len(head):
            raise ValueError(f"{path}, line {number}: {width} columns, where line {lines[0][0]} has {len(head)}")
    try:
        table = np.loadtxt([line for _, line in body], delimiter=delimiter, comments=None, ndmin=2)
    except ValueError:
        for number, line in body:
            for column, cell in enumerate(line.split(delimiter), 1):
                if not _is_number(cell):
                    what = repr(cell.strip()) if cell.strip() else "an empty cell"
                    raise ValueError(f"{path}, line {number}, column {column}: {what} is no number") from None
        raise
    return table, names, [number for number, _ in body]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_numpy(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.lib.npyio.NpzFile):
                with found:
                    found = found[_named(path, found.files)]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as problem:
        raise ValueError(f"{path} cannot be read as NumPy data: {problem}") from None
    if found.ndim == 3 and path.suffix == ".npz":  # chains, draws, variables: what `sample` writes
        found = found.reshape(-1, found.shape[-1])
    if found.ndim != 2 or not found.size or found.dtype.kind not in "biuf":
        raise ValueError(
            f"{path}: data must be numbers of shape (observations, variables); got shape {found.shape}, {found.dtype}"
        )
    return found.astype(np.float64)


def _named(path: Path, names: list[str]) -> str:
    arrays = [name for name in names if not name.startswith("__")]
    for name in ("data", "values"):
        if name in arrays:
            return name
    if len(arrays) != 1:
        raise ValueError(f"it holds the arrays {arrays}, none of them called data or values")
    return arrays[0]
