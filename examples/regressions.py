"""Logistic regression from data to a table: `python examples/regressions.py`. Tumours that come with scikit-learn."""

import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split

from cumulant.glm import GLM


def main() -> None:
    """Run the example."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    train, test, y_train, y_test = train_test_split((X - X.mean()) / X.std(), y, random_state=0)
    search = GridSearchCV(GLM("bernoulli"), {"l2": [1e-3, 1e-2, 1e-1]}).fit(train, y_train)
    model = search.best_estimator_
    print(f"l2 = {model.l2}: {search.score(test, y_test):.3f} of {len(test)} tumours are classified correctly")
    print(model.certificate_, model.certify_distance(train, y_train), sep="\n")
    few = train[["mean radius", "mean texture", "mean smoothness"]]
    print(GLM("bernoulli", l2=0.0).fit(few, y_train).summary(few, y_train))
    with tempfile.TemporaryDirectory() as folder:
        again = GLM.load(model.save(Path(folder) / "tumours"))
    print(f"verified again after loading: P(w) - P* <= {again.verify(train, y_train).upper:.2g}")


if __name__ == "__main__":
    main()
