"""Readers of genotypes on files written here, and on corrupt ones; simulated microsatellites; real data."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cumulant.admixture import (
    Genotypes,
    read_genotype_csv,
    read_genotype_npz,
    read_genotypes,
    read_plink,
    read_structure,
    simulate_microsatellites,
)
from cumulant.errors import FileFormatError

ALLELES = np.array([[[142, 146], [10, 12]], [[146, -1], [12, 12]], [[150, 150], [-1, -1]]])
NAMES = ("felix", "tom", "puss")


def write_structure(path, *, rows, labels=True, populations=False, header=True):
    lines = ["mic1 mic2"] if header else []
    for i, genotype in enumerate(ALLELES):
        before = ([NAMES[i]] if labels else []) + ([str(i // 2)] if populations else [])
        values = [genotype.reshape(-1)] if rows == 1 else list(genotype.T)
        for row in values:
            lines.append(" ".join([*before, *(str(-9 if a == -1 else a) for a in row)]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("labels", "populations"), [(True, False), (True, True), (False, True), (False, False)])
@pytest.mark.parametrize("header", [True, False])
def test_structure_files(tmp_path, rows, labels, populations, header):
    path = write_structure(tmp_path / "cats.str", rows=rows, labels=labels, populations=populations, header=header)
    found = read_structure(path, rows_per_individual=rows, labels=labels, populations=populations)
    np.testing.assert_array_equal(found.alleles, ALLELES)
    assert found.individuals == (NAMES if labels else None)
    assert found.populations == (("0", "0", "1") if populations else None)
    assert found.loci == (("mic1", "mic2") if header else None)
    if labels:  # whether rows belong together is seen from the labels
        np.testing.assert_array_equal(read_genotypes(path, populations=populations).alleles, ALLELES)


def write_plink(folder, codes, magic=b"\x6c\x1b\x01"):
    """`codes`: (variants, individuals) of two bits, the first individual in the lowest ones."""
    data = bytearray(magic)
    for row in codes:
        for first in range(0, len(row), 4):
            data.append(sum(code << (2 * i) for i, code in enumerate(row[first : first + 4])))
    n = len(codes[0])
    (folder / "a.bed").write_bytes(bytes(data))
    (folder / "a.fam").write_text("".join(f"pop{i % 2} id{i} 0 0 0 -9\n" for i in range(n)))
    (folder / "a.bim").write_text("".join(f"1 rs{v} 0 {v + 1} A G\n" for v in range(len(codes))))
    return folder / "a.bed"


def test_plink_files(tmp_path):
    codes = [[0b00, 0b01, 0b10, 0b11, 0b10], [0b11, 0b11, 0b00, 0b01, 0b00], [0b10, 0b00, 0b11, 0b10, 0b01]]
    found = read_plink(write_plink(tmp_path, codes))
    meaning = {0b00: (0, 0), 0b01: (-1, -1), 0b10: (0, 1), 0b11: (1, 1)}
    for v, row in enumerate(codes):
        for i, code in enumerate(row):
            assert tuple(found.alleles[i, v]) == meaning[code]
    assert found.individuals == ("id0", "id1", "id2", "id3", "id4")
    assert found.populations[:2] == ("pop0", "pop1")
    assert found.loci == ("rs0", "rs1", "rs2")


def test_plink_files_that_are_not(tmp_path):
    codes = [[0, 1, 2, 3, 0]] * 3
    path = write_plink(tmp_path, codes, magic=b"PK\x01")
    with pytest.raises(FileFormatError, match="6c 1b"):
        read_plink(path)
    write_plink(tmp_path, codes, magic=b"\x6c\x1b\x00")
    with pytest.raises(FileFormatError, match="SNP-major"):
        read_plink(path)
    write_plink(tmp_path, codes)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileFormatError, match="need 9 bytes; it has 8"):
        read_plink(path)
    (tmp_path / "a.bim").write_text("1 rs0 0\n")
    with pytest.raises(FileFormatError, match=r"a\.bim .* rows of 6 columns"):
        read_plink(path)
    (tmp_path / "a.fam").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.fam"):
        read_plink(path)


def test_tables(tmp_path):
    csv = tmp_path / "cats.csv"
    csv.write_text(
        "cat,population,mic1,mic1.2,mic2,mic2.2\nfelix,N,142,146,10,12\ntom,N,146,NA,12,12\npuss,S,150,150,,\n"
    )
    table = read_genotype_csv(csv)
    np.savez(
        tmp_path / "cats.npz", alleles=ALLELES, individuals=NAMES, population=[0, 0, 1], population_levels=["N", "S"]
    )
    archive = read_genotype_npz(tmp_path / "cats.npz")
    for found in (table, archive):
        np.testing.assert_array_equal(found.alleles, ALLELES)
        assert found.individuals == NAMES
        assert found.populations == ("N", "N", "S")
    assert table.loci == ("mic1", "mic2")
    assert str(table) == "3 individuals, 2 loci, 2 copies of each, 25.0% of the calls missing"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.str", "", "it is empty"),
        ("a.str", "mic1 mic2\n", "names of loci and no individual"),
        ("a.str", "x 1 2\ny 1\n", "different lengths"),
        ("a.str", "x 1 2 3\ny 1 2 3\n", "not 2 copies"),
        ("a.str", "x 1 2\nx 1 two\n", "cannot be read as genotypes"),
        ("a.str", "x 1 2\nx 1 -5\n", "negative"),
        ("a.csv", "cat,a,b\n", "no rows"),
        ("a.csv", "cat,a,b\nx,1\n", "3 columns of the header"),
        ("a.csv", "cat,a,b,c\nx,1,2,3\n", "3 columns of alleles"),
        ("a.csv", "cat,a,b\nx,1,A\n", "cannot be read as genotypes"),
        ("a.npz", "no archive", "cannot be read as genotypes"),
    ],
)
def test_files_that_are_no_genotypes_are_refused(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileFormatError, match=words):
        read_genotypes(tmp_path / name)


def test_archives_without_alleles_and_missing_files(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    with pytest.raises(FileFormatError, match="no array 'alleles'; it has x"):
        read_genotypes(tmp_path / "a.npz")
    for number, words in ((-1, "negative"), (2, "out of bounds")):
        np.savez(tmp_path / "a.npz", alleles=ALLELES, population=[0, 1, number], population_levels=["N", "S"])
        with pytest.raises(FileFormatError, match=words):
            read_genotypes(tmp_path / "a.npz")
    with pytest.raises(FileNotFoundError):
        read_genotypes(tmp_path / "none.str")
    with pytest.raises(ValueError, match="individuals must have 3 names; got 1"):
        Genotypes(ALLELES, individuals=["tom"])


def test_what_has_no_data_is_named():
    alleles = np.array([[[1, 2], [3, -1]], [[-1, -1], [-1, -1]], [[-1, -1], [-1, -1]]])
    with pytest.raises(ValueError, match=r"individual tom \(number 1\) has no data: leave it out, and 1 more"):
        Genotypes(alleles, individuals=["ann", "tom", "sue"]).corpus()
    with pytest.raises(ValueError, match=r"locus fca8 \(number 1\) has no data: leave it out$"):
        Genotypes(np.array([[[1, 2], [-1, -1]]]), loci=["fca7", "fca8"]).corpus()


def test_real_genotypes():
    folder = os.environ.get("CUMULANT_DATA")
    if folder is None:
        pytest.skip("CUMULANT_DATA is not set")
    cats = read_genotypes(Path(folder) / "genetics" / "nancycats.npz")
    assert cats.alleles.shape == (237, 9, 2)
    assert len(set(cats.populations)) == 17
    assert cats.corpus().n_tokens == int((cats.alleles >= 0).sum())


def test_simulated_microsatellites_have_populations_that_differ():
    pytest.importorskip("msprime")
    data = simulate_microsatellites(2.0, rng=1)
    assert data.alleles.shape == (60, 10, 2)
    assert data.populations[::15] == ("A", "B", "C", "D")
    sizes = [np.unique(data.alleles[:, at]).size for at in range(10)]
    assert 8 <= min(sizes) <= max(sizes) <= 30
    again = simulate_microsatellites(2.0, rng=1)
    np.testing.assert_array_equal(data.alleles, again.alleles)

    many = simulate_microsatellites(0.5, n_loci=200, n_individuals=5, rng=2).alleles.reshape(4, 5, 200, 2)

    def alike(first, second):  # how often alleles of two populations are the same: mean and standard error over loci
        same = many[first, :, None, :, :, None] == many[second, None, :, :, None, :]
        by_locus = same.mean(axis=(0, 1, 3, 4))
        return by_locus.mean(), by_locus.std() / np.sqrt(200)

    (late, late_error), (early, early_error) = alike(2, 3), alike(0, 3)
    assert late > early + 3 * np.hypot(late_error, early_error)  # C and D split last
    shared = simulate_microsatellites(0.5, n_loci=3, shared_tree=True, splits=(1.0,), n_individuals=5, rng=0)
    assert shared.alleles.shape == (10, 3, 2)


@pytest.mark.parametrize("splits", [(), (1.0, 0.5), (-1.0,)])
def test_splits_are_checked(splits):
    with pytest.raises(ValueError, match="splits must be increasing"):
        simulate_microsatellites(splits=splits)


def test_without_msprime_the_simulator_says_what_to_install():
    code = (
        "import sys; sys.modules['msprime'] = None\nfrom cumulant.admixture import simulate_microsatellites as s\ns()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install cumulant[genetics]" in found.stderr
