"""Which distribution do data have? `python examples/distributions.py`: the areas of malignant tumours."""

from sklearn.datasets import load_breast_cancer

from cumulant import families as fam


def main() -> None:
    """Run the example."""
    table = load_breast_cancer(as_frame=True)
    area = table.data["mean area"][table.target == 0].to_numpy()
    found = fam.compare(area, [fam.Gamma(), fam.LogNormal(), fam.Normal(), fam.WeibullKnownShape, fam.Exponential()])
    print(found)
    best = found[0].estimate
    print(best)
    print(fam.goodness_of_fit(best.family, area, simulations=99))
    print(f"above 1500: {best.family.survival(1500.0, best.theta):.3f} by the fit, {(area > 1500).mean():.3f} seen")
    print("central 95%:", best.family.quantile([0.025, 0.975], best.theta).round())


if __name__ == "__main__":
    main()
