"""Topics of news: `python examples/topics.py`.

395 items of Reuters, from the file text/reuters.npz in the folder that the environment variable CUMULANT_DATA names.
"""

import os
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array

from cumulant.admixture import LDA


def main() -> None:
    """Run the example."""
    path = Path(os.environ.get("CUMULANT_DATA", "data")) / "text" / "reuters.npz"
    if not path.exists():
        print(f"left out: there is no file {path}; set CUMULANT_DATA to the folder of the data")
        return
    with np.load(path) as data:
        counts = coo_array((data["count"], (data["doc"], data["word"])), (395, 4258)).tocsr()
        words, titles = data["vocab"], data["titles"]
    train, test = counts[np.arange(395) % 10 != 0], counts[np.arange(395) % 10 == 0]
    for k in (5, 20):
        model = LDA(k, n_sweeps=300, burn_in=300, n_chains=2, optimise_priors=True, random_state=0).fit(train)
        held = model.log_likelihood(test)
        error, r_hat = held.standard_error, model.result_.r_hat
        print(f"K = {k}: {held.per_word:.4f} +- {error:.4f} for a held-out word, R-hat {r_hat:.2f}")
    for k, top in enumerate(model.top_words(8, words)):
        print(f"topic {k:2d}: {' '.join(top)}")
    mean, sd = model.memberships(test)
    for d in range(3):
        k = mean[d].argmax()
        print(f"{titles[10 * d][:60]}: topic {k}, {mean[d, k]:.2f} +- {sd[d, k]:.2f}")


if __name__ == "__main__":
    main()
