"""Test the figures of learned weights."""

from __future__ import annotations

import numpy as np
import pytest

import mosesplug
from mosesplug.results.report.fit_figures import FIT_FIGURES

pytest.importorskip("matplotlib")

FEATURES = np.array([[-1.0, 2.0], [-2.0, 1.0], [-1.5, 1.0], [-1.0, 3.0], [-4.0, 2.0]])
IDS = [0, 0, 1, 1, 1]
SCORES = [0.2, 0.9, 0.4, 0.1, 0.8]


def fit(**changes: object) -> mosesplug.Fit:
    """Learn two weights from scores of five hypotheses."""
    settings = {"names": ["LM", "Words"], "initial": {"LM": 0.5, "Words": 0.5}, "seed": 1}
    return mosesplug.optimize(
        features=FEATURES, sentence_ids=IDS, scores=SCORES, **{**settings, **changes}
    )


@pytest.mark.parametrize("name", FIT_FIGURES)
def test_figure_has_labels(name: str) -> None:
    figure = fit().plot(name)
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    labels = [each.get_xlabel() or each.get_title() for each in figure.axes]
    assert all(labels)


def test_weights_are_drawn_over_their_norm() -> None:
    learned = fit()
    axes = learned.plot().axes[0]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx(learned.vector / np.abs(learned.vector).sum())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["LM", "Words"]


def test_history_is_that_of_the_algorithm() -> None:
    learned = fit(algorithm="kbmira", options={"epochs": 4})
    axes = learned.plot("history").axes[0]
    assert axes.lines[0].get_ydata() == pytest.approx([each["score"] for each in learned.history])


def test_surfaces_peak_at_the_score_of_the_fit() -> None:
    learned = fit()
    figure = learned.plot("surfaces")
    assert [axes.get_title() for axes in figure.axes] == ["LM", "Words"]
    best = max(np.asarray(axes.lines[0].get_ydata(), dtype=float).max() for axes in figure.axes)
    assert best == pytest.approx(learned.score)


def test_invalid_figures_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = fit()
    with pytest.raises(mosesplug.UsageError, match="there is no figure 'scores'"):
        learned.plot("scores")
    monkeypatch.setattr("mosesplug.results.report.figures.has_matplotlib", lambda: False)
    with pytest.raises(mosesplug.UsageError, match=r"mosesplug\[report\]"):
        learned.plot()
