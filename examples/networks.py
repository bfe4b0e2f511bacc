"""A Bayesian network of a diagnosis, from data to answers: `python examples/networks.py`.

Tables are estimated from 400 of 569 tumours (Wisconsin breast cancer data of scikit-learn, measurements cut into three
classes), with credible intervals; then questions by name, the diagnosis of the other tumours, and a file for others.
Needs pandas.
"""

import tempfile
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_breast_cancer

from cumulant.graphical import BayesNet, read_bif, write_bif


def main() -> None:
    """Run the example."""
    raw = load_breast_cancer(as_frame=True).frame
    measured = {"radius": "mean radius", "texture": "mean texture", "concavity": "mean concavity"}
    data = pd.DataFrame({v: pd.qcut(raw[c], 3, labels=["low", "middle", "high"]) for v, c in measured.items()})
    data["tumour"] = raw["target"].map({0: "malignant", 1: "benign"})
    seen, others = data[:400], data[400:]
    fit = BayesNet.fit(seen, {"radius": ["tumour"], "texture": ["tumour"], "concavity": ["tumour", "radius"]})
    low, high = fit.interval("tumour")
    print(f"benign: {fit.net.marginal('tumour')[0]:.3f}, between {low[0]:.3f} and {high[0]:.3f} with probability 0.95")
    print(fit.net.query("tumour", {"radius": "high", "concavity": "middle"}))
    print(fit.net.query(["texture", "concavity"], {"tumour": "malignant"}))
    print("most probable:", fit.net.map(given={"tumour": "malignant"}))
    print("independent given the tumour:", fit.net.is_d_separated("texture", ["radius", "concavity"], "tumour"))
    rows = others.drop(columns="tumour").to_dict("records")
    answers = [fit.net.map("tumour", row)[0]["tumour"] for row in rows]
    print(f"right diagnoses: {(others['tumour'] == answers).mean():.3f} of {len(others)}")
    with tempfile.TemporaryDirectory() as folder:
        write_bif(Path(folder) / "tumour.bif", fit.net)
        print("read again:", read_bif(Path(folder) / "tumour.bif").query("tumour"))


if __name__ == "__main__":
    main()
