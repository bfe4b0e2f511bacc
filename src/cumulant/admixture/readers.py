"""Readers of genotypes: STRUCTURE files, PLINK's .bed/.bim/.fam, tables in CSV and NPZ."""

import csv
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.admixture.data import MISSING
from cumulant.admixture.genotypes import Genotypes
from cumulant.errors import FileFormatError

_BED_MAGIC = b"\x6c\x1b"
_PLINK_CODES = np.array([[0, 0], [MISSING, MISSING], [0, 1], [1, 1]])  # of two bits: 00, 01, 10, 11


def read_genotypes(path: Any, **settings: Any) -> Genotypes:
    """Read genotypes by the suffix of the file: ``.bed``, ``.npz``, ``.csv``; anything else is a STRUCTURE file.

    Settings go to `read_plink`, `read_genotype_npz`, `read_genotype_csv` or `read_structure`.
    """
    readers = {".bed": read_plink, ".npz": read_genotype_npz, ".csv": read_genotype_csv}
    return readers.get(Path(path).suffix.lower(), read_structure)(path, **settings)


def read_structure(
    path: Any, *, ploidy: int = 2, rows_per_individual: int | None = None, labels: bool = True,
    populations: bool = False, missing: int = -9,
) -> Genotypes:  # fmt: skip
    """Read a STRUCTURE file: columns separated by blanks, one or several rows for each individual.

    A first line that is shorter than the others, or has an allele that is not a number, has the names of the loci.

    Parameters
    ----------
    path : path
    ploidy : int
        Copies of each locus.
    rows_per_individual : int, optional
        `ploidy` rows with one copy each, or a single row with the copies of a locus side by side. By default several,
        if rows with the same label follow each other or there are no labels.
    labels, populations : bool
        Whether each row begins with a label, and then with the population of the individual.
    missing : int
        What stands for a missing call.
    """
    checks.whole("ploidy", ploidy)
    if rows_per_individual not in (None, 1, ploidy):
        raise ValueError(f"rows_per_individual must be 1 or the ploidy {ploidy}; got {rows_per_individual}")
    with _reading(path):
        lines = [line.split() for line in Path(path).read_text().splitlines() if line.strip()]
        if not lines:
            raise FileFormatError("it is empty")
        before = int(labels) + int(populations)
        names, rows = _header(lines, before)
        if not rows:
            raise FileFormatError("it has the names of loci and no individual")
        widths = {len(row) for row in rows}
        if len(widths) != 1:
            raise FileFormatError(f"its rows have different lengths, from {min(widths)} to {max(widths)} columns")
        columns = widths.pop() - before
        together = rows_per_individual
        if together is None:
            same = not labels or (len(rows) > 1 and all(
                rows[i][0] == rows[i - i % ploidy][0] for i in range(len(rows))
            ))  # fmt: skip
            together = ploidy if same else 1
        if len(rows) % together or (together == 1 and columns % ploidy) or columns < 1:
            raise FileFormatError(f"{len(rows)} rows of {columns} alleles are not {ploidy} copies of each individual")
        table = np.array([[int(entry) for entry in row[before:]] for row in rows], dtype=np.int64)
        if ((table < 0) & (table != missing)).any():
            raise FileFormatError(f"an allele is negative and not {missing}, which stands for a missing call")
        table = np.where(table == missing, MISSING, table)
        if together == 1:
            alleles = table.reshape(len(rows), columns // ploidy, ploidy)
        else:
            alleles = table.reshape(-1, ploidy, columns).swapaxes(1, 2)
        first = rows[::together]
        if names is not None and len(names) != alleles.shape[1]:
            raise FileFormatError(f"it names {len(names)} loci and has {alleles.shape[1]}")
        return Genotypes(
            alleles,
            tuple(row[0] for row in first) if labels else None,
            names,
            tuple(row[before - 1] for row in first) if populations else None,
        )


def _header(lines: list[list[str]], before: int) -> tuple[tuple[str, ...] | None, list[list[str]]]:
    """The names of the loci, where the first line has them, and the other lines."""
    shorter = len(lines) > 1 and len(lines[0]) < len(lines[1])
    if shorter or not all(entry.lstrip("-").isdigit() for entry in lines[0][before:]):
        return tuple(lines[0]), lines[1:]
    return None, lines


def read_plink(path: Any) -> Genotypes:
    """Read PLINK's binary genotypes, ``name.bed`` with ``name.bim`` and ``name.fam`` beside it.

    Allele 0 is the first of the .bim file and 1 the second; families are read as populations. The .bed file must be in
    the order of variants (SNP-major), as PLINK has written it since version 1.
    """
    base = str(path).removesuffix(".bed")
    fam, bim, bed = (Path(base + suffix) for suffix in (".fam", ".bim", ".bed"))
    with _reading(fam):
        people = _columns(fam, 6)
    with _reading(bim):
        variants = _columns(bim, 6)
    with _reading(bed):
        data = bed.read_bytes()
        if data[:2] != _BED_MAGIC:
            raise FileFormatError("it does not begin with the bytes 6c 1b of a .bed file")
        if data[2:3] != b"\x01":
            raise FileFormatError("it is not in the order of variants (SNP-major): write it again with PLINK 1.9")
        width = -(-len(people) // 4)
        if len(data) != 3 + width * len(variants):
            raise FileFormatError(
                f"{len(people)} individuals and {len(variants)} variants need {3 + width * len(variants)} bytes; it "
                f"has {len(data)}"
            )
        packed = np.frombuffer(data, np.uint8, offset=3).reshape(len(variants), width)
        bits = (packed[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3  # the first individual in the lowest bits
        codes = bits.reshape(len(variants), 4 * width)[:, : len(people)]
        return Genotypes(
            _PLINK_CODES[codes.T],
            tuple(row[1] for row in people),
            tuple(row[1] for row in variants),
            tuple(row[0] for row in people),
        )


def read_genotype_csv(path: Any, *, ploidy: int = 2, label: bool = True) -> Genotypes:
    """Read a table with a header: the label of the individual (with `label`), a column ``population`` if there is one,
    and the copies of each locus in columns that follow each other. Empty fields, ``NA`` and -1 or -9 are missing calls.
    """
    checks.whole("ploidy", ploidy)
    with _reading(path), Path(path).open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
        if len(rows) < 2:
            raise FileFormatError("it has no rows below its header")
        header, body = rows[0], rows[1:]
        if any(len(row) != len(header) for row in body):
            raise FileFormatError(f"not all of its rows have the {len(header)} columns of the header")
        named = [at for at, name in enumerate(header) if name.strip().lower() == "population"]
        skipped = {*named, *([0] if label else [])}
        columns = [at for at in range(len(header)) if at not in skipped]
        if not columns or len(columns) % ploidy:
            raise FileFormatError(f"it has {len(columns)} columns of alleles, which are not {ploidy} for each locus")
        absent = ("", "NA", "NaN", "nan", "-1", "-9", "?")
        table = [[MISSING if row[at].strip() in absent else int(row[at]) for at in columns] for row in body]
        return Genotypes(
            np.array(table).reshape(len(body), -1, ploidy),
            tuple(row[0] for row in body) if label else None,
            tuple(header[at] for at in columns[::ploidy]),
            tuple(row[named[0]] for row in body) if named else None,
        )


def read_genotype_npz(path: Any, *, population: str = "population") -> Genotypes:
    """Read an .npz file with ``alleles`` (individuals, loci, copies) and, where they are there, ``individuals``,
    ``loci`` and ``population``; the names of populations may be in ``population_levels``, by number.

    `population` names the array of groups, such as ``"region"``, where the file has several. One that is named and is
    not there is an error.
    """
    with _reading(path), np.load(path, allow_pickle=False) as file:
        if "alleles" not in file.files:
            raise FileFormatError(f"it has no array 'alleles'; it has {', '.join(file.files)}")
        if population != "population" and population not in file.files:
            raise FileFormatError(f"it has no array {population!r}; it has {', '.join(file.files)}")
        named = f"{population}_levels"
        levels = file[named] if named in file.files else None
        populations = file[population] if population in file.files else None
        if populations is not None and levels is not None and populations.dtype.kind in "iu":
            if (populations < 0).any():  # which would count from the last one
                raise FileFormatError(f"a number in {population!r} is negative: it names none of {named!r}")
            populations = levels[populations]
        kept = {name: tuple(map(str, file[name])) for name in ("individuals", "loci") if name in file.files}
        shown = None if populations is None else tuple(map(str, populations))
        return Genotypes(file["alleles"], kept.get("individuals"), kept.get("loci"), shown)


def _columns(path: Path, width: int) -> list[list[str]]:
    rows = [line.split() for line in path.read_text().splitlines() if line.strip()]
    if not rows or any(len(row) != width for row in rows):
        raise FileFormatError(f"it must have rows of {width} columns")
    return rows


@contextmanager
def _reading(path: Any) -> Iterator[None]:
    """What goes wrong inside is said of this file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        yield
    except (
        FileFormatError,
        ValueError,
        TypeError,
        OverflowError,
        EOFError,
        IndexError,
        KeyError,
        zipfile.BadZipFile,
        zlib.error,
        csv.Error,
    ) as problem:
        raise FileFormatError(f"{path} cannot be read as genotypes: {problem}") from problem
