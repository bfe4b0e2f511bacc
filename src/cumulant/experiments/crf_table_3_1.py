"""Table 3.1: the four sequence-labelling tasks, the size of their weights, and the memory of dual ascent."""

import numpy as np

from cumulant.experiments._crf import LEFT_OUT, conll, folder
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.plotting import COLOURS, figure, legend

TITLE = "Sizes of four sequence-labelling tasks, their weights, and the memory of each solver"
SOURCE = "Le Priol (2021), thesis, table 3.1 and appendix 3.A"

# n, N, K, A, and as printed: d, memory in GiB
TASKS = {
    "OCR": (6_202, 52_827, 26, 128, 4_082, 0.2),
    "CONLL": (8_936, 2.1e5, 22, 74_658, 1.6e6, 0.7),
    "NER": (15_806, 2.0e5, 9, 3.1e5, 2.8e6, 0.1),
    "POS": (38_219, 9.1e5, 45, 1.9e5, 8.6e6, 13),
}
GIB = 2.0**30


@experiment
def run(quick: bool, rng: int) -> Report:
    """The formulas at the printed sizes, and the sizes of the data at hand."""
    weights = {name: (a + 3) * k + k**2 for name, (_, _, k, a, _, _) in TASKS.items()}
    memory = {name: 8 * k**2 * (nodes - n) / GIB for name, (n, nodes, k, _, _, _) in TASKS.items()}
    stored = {name: 8 * k * (nodes + n * k) / GIB for name, (n, nodes, k, _, _, _) in TASKS.items()}
    first = {name: nodes / n * np.log(k) for name, (n, nodes, k, _, _, _) in TASKS.items()}
    ratio = {name: memory[name] / stored[name] for name in TASKS}
    sizes_agree = all(_agrees(weights[name], TASKS[name][4]) for name in TASKS)
    memory_agrees = all(_agrees(memory[name], TASKS[name][5]) for name in TASKS)
    claims = [
        Claim(
            "the weights number d = (A + 3) K + K^2",
            listed({name: TASKS[name][4] for name in TASKS}, ",.0f"),
            listed(weights, ",.0f"),
            verdict(sizes_agree),
            item="Table 3.1, d",
        ),
        Claim(
            "the marginals of pairs take 8 K^2 (N - n) bytes (GiB)",
            listed({name: TASKS[name][5] for name in TASKS}, "g"),
            listed(memory, ".3g"),
            verdict(memory_agrees),
            item="Table 3.1, memory",
        ),
        Claim(
            "the objective at zero, (N/n) log K, is below 100 on all tasks",
            "below 100",
            listed(first, ".4g"),
            verdict(max(first.values()) < 100),
            item="section 3.A.1",
        ),
        Claim(
            "SAG keeps less than dual ascent by the factor (N - n) K / (N + n K): K only where sequences are much "
            "longer than K",
            "about K times less: " + listed({name: TASKS[name][2] for name in TASKS}, ",.0f"),
            listed(ratio, ".3g"),
            "corrected" if all(ratio[name] < 0.7 * TASKS[name][2] for name in TASKS) else "reproduced",
            item="section 3.A.2",
        ),
        _all_memory(),
    ]
    if folder() is not None:
        claims.append(_ocr())
    sentences = conll()
    if sentences is not None:
        claims.append(_chunking(sentences))
    notes = "" if folder() is not None else LEFT_OUT
    return Report(claims, lambda: _draw(memory, stored, weights), notes)


def _all_memory():
    """Marginals of pairs and nodes, the attributes of every node, and three arrays of the size of the weights."""
    n, nodes, k, _, d, _ = TASKS["POS"]
    most = 13  # attributes at a node, as printed
    total = (8 * k**2 * (nodes - n) + 8 * k * nodes + 12 * most * nodes + 3 * 8 * d) / GIB
    return Claim(
        "POS needs about 15 GiB: marginals, attributes and weights (within 2)",
        "about 15",
        f"{total:.1f} GiB",
        verdict(abs(total - 15) < 2),
        item="section 3.A.2, POS",
    )


def _agrees(ours, printed):
    """To the digits printed."""
    digits = len(f"{printed:g}".split("e")[0].replace(".", "").strip("0"))
    unit = 10.0 ** (np.floor(np.log10(printed)) - digits + 1)
    return abs(ours - printed) <= 0.5 * unit * 1.01


def _ocr():
    where = folder()
    assert where is not None
    with np.load(where / "ocr.npz") as file:
        lengths, fold = np.diff(file["offsets"]), file["fold"]
    n, nodes = int(np.sum(fold != 9)), int(lengths[fold != 9].sum())
    separators = int(lengths.sum()) + len(lengths) - n
    return Claim(
        "OCR: all folds but the last have n = 6,202 words and N = 47,010 letters; N as printed is all letters and "
        "separators less n",
        "n = 6,202, N = 52,827",
        f"n = {n:,}, N = {nodes:,}; {int(lengths.sum()):,} letters + {len(lengths):,} separators - {n:,} = "
        f"{separators:,}",
        verdict((n, nodes, separators) == (6_202, 47_010, 52_827), corrected=True),
        item="Table 3.1, OCR",
    )


def _chunking(data):
    """What can be said from the part of the corpus at hand: attributes at a token, and labels."""
    most, attributes = int(np.diff(data.features.indptr).max()), data.features.shape[1]
    labels, n, nodes = len(np.unique(data.labels)), len(data), len(data.labels)
    return Claim(
        "CONLL: at most 19 attributes at a token. Only the test part is at hand: n and N cannot be checked, A from "
        "below by the largest numbers of attributes in it",
        "a = 19, A = 74,658, K = 22",
        f"a = {most}, A at least {attributes:,}; {n:,} sentences and {nodes:,} tokens with {labels} labels that "
        f"occur, numbered up to {int(data.labels.max())}",
        verdict(most == 19 and 0.99 * 74_658 <= attributes <= 74_658),
        item="Table 3.1, CONLL",
    )


def _draw(memory, stored, weights):
    fig, ax = figure(width=7.2, height=3.6)
    place = np.arange(len(TASKS))
    bars = {
        "dual ascent: marginals of pairs": memory,
        "exponentiated gradient: potentials and marginals, shared": {name: 2 * stored[name] for name in stored},
        "SAG: marginals of nodes, expected transitions": stored,
        "weights": {name: 8 * weights[name] / GIB for name in weights},
    }
    for b, (label, values) in enumerate(bars.items()):
        ax.bar(place + 0.2 * (b - 1.5), list(values.values()), 0.19, color=COLOURS[(0, 2, 1, 6)[b]], label=label)
    ax.set(yscale="log", ylabel="memory (GiB)", ylim=(1e-5, 2e3))
    ax.set_xticks(place, list(TASKS))
    ax.grid(False, axis="x")
    legend(ax, loc="upper left")
    return fig
