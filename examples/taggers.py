"""A tagger that finds the code in prose: `python examples/taggers.py`, or with a file of CoNLL columns.

Python's own help pages put code into quotes. Here the quotes are taken away, the words between them are labelled B-CODE
and I-CODE, and all others O. In a file the word is the first column and the label the last one.
"""

import re
import sys
from pydoc_data.topics import topics

from cumulant.sequences import ChainCRF, chunk_scores, read_conll


def help_pages(n):
    """Paragraphs of Python's help as lists of (word, label)."""
    pages = [p for p in "\n\n".join(topics.values()).split("\n\n") if p[:1].isupper() and p.count('"') in (2, 4, 6)]
    parts = [[re.findall(r"\w+|[^\w\s]", part) for part in page.split('"')] for page in pages[:n]]
    labels = ("O", "O"), ("B-CODE", "I-CODE")
    return [[(w, labels[k % 2][i > 0]) for k, ws in enumerate(page) for i, w in enumerate(ws)] for page in parts]


def features(words, t):
    """What the tagger sees of word `t`."""
    word, before, after = words[t], words[t - 1] if t else "(start)", words[t + 1] if t + 1 < len(words) else "(end)"
    shape = re.sub("[a-z]+", "x", re.sub("[A-Z]", "X", word))
    return {"word": word, "shape": shape, "ends": [word[-2:], word[-3:]], "-1": before.lower(), "+1": after.lower()}


sentences = read_conll(sys.argv[1]) if len(sys.argv) > 1 else help_pages(500)
X = [[features([token[0] for token in s], t) for t in range(len(s))] for s in sentences]
y = [[token[-1] for token in s] for s in sentences]
half = len(X) // 2
crf = ChainCRF().fit(X[:half], y[:half])
print(crf.certificate_)
print(chunk_scores(y[half:], crf.predict(X[half:])))
print(crf.transitions()[:3], crf.state_features()[:3], crf.predict_marginals_single(X[-1], as_dicts=True)[0], sep="\n")
