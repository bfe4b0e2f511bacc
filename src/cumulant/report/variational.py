"""A page about one Gaussian fit: the verdict, the certificate, convergence, marginals against check draws."""

from pathlib import Path
from typing import Any

from cumulant import plotting
from cumulant.plotting import variational as pictures
from cumulant.report.page import save_page
from cumulant.report.section import Section, Table


def write(fit: Any, check: Any, output: Path) -> Path:
    """Write ``index.html`` and its pictures into a folder; `check` is an `AnnealingCheck` of the fit, or None."""
    output = Path(output)
    return save_page(output / "index.html", "A Gaussian approximation", [section(fit, check, output)])


def section(fit: Any, check: Any, output: Path) -> Section:
    """What there is to say about a fit."""
    found = fit.diagnostics
    deviations = fit.deviations
    rows = [(i, f"{fit.mean[i]:.5g}", f"{deviations[i]:.3g}", *_moved(check, i)) for i in range(min(len(fit.mean), 30))]
    headings = ("coordinate", "mean", "s.d.", *(("annealing moves it by", "and scales by") if check else ()))
    words = [
        f"Verdict: {fit.verdict}. " + " ".join(f"{reason}." for reason in fit.reasons),
        f"The evidence lower bound is {fit.elbo:.6g}, in {fit.elbo_interval}. Importance weights have a Pareto k of "
        f"{found.pareto_k:.2f} and an effective share of {found.weighted_share:.0%}.",
        f"{fit.method.capitalize()}: {fit.status} after {fit.work} steps, {fit.seconds:.2f} s.",
    ]
    if fit.certificate is None:
        words.append(fit.refusal)
    if check is not None:
        words.append(str(check).replace("\n", ";"))
    path = pictures.convergence(fit)
    axes = pictures.marginals(fit, check)
    shown = "Single coordinates of the fit (line)" + (
        " over draws that annealing moved to the target." if check else "."
    )
    return Section(
        f"{len(fit.mean)} coordinates",
        words,
        [Table(headings, rows)],
        [] if fit.certificate is None else [fit.certificate],
        [
            (plotting.save(path.figure, output / "convergence.png"), "The objective as the steps went on."),
            (plotting.save(axes[0, 0].figure, output / "marginals.png"), shown),
        ],
    )


def _moved(check: Any, i: int) -> tuple[str, ...]:
    if check is None:
        return ()
    return (
        f"{check.mean_shift[i]:.2f} ± {check.mean_error[i]:.2f} s.d.",
        f"{check.scale_ratio[i]:.2f} ± {check.scale_error[i]:.2f}",
    )
