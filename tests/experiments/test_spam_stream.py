"""The spam stream: naive Bayes as computed independently, the corrected claims, and a picture."""

import pytest

from cumulant.experiments import spam_stream


def test_the_experiment_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("CUMULANT_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"spambase\.npz"):
        spam_stream.spambase(0)
    report = spam_stream.run(tmp_path, quick=True)
    verdicts = [claim.verdict for claim in report.claims]
    assert verdicts[0] == verdicts[4] == "corrected"
    assert verdicts[3] == "reproduced"  # pruning
    assert spam_stream.LEFT_OUT in report.notes
    assert report.pictures[0].stat().st_size > 5_000


@pytest.mark.slow
def test_naive_bayes_on_the_counts():
    # computed independently for this stream: two ham messages flagged at 0.98, one spam message kept
    table = spam_stream._naive_bayes(spam_stream.small_counts(0), 1)
    assert (table.false_alarms, table.missed) == (2, 1)
