"""The search of the manual finds the words that people use."""

from __future__ import annotations

import pytest

from tests.docs.running import PAGES, ROOT

TERMS = (
    "approximate randomization",
    "checkpoint",
    "confidence interval",
    "convergence",
    "cross-validation",
    "development set",
    "early stopping",
    "held-out set",
    "hyperparameter",
    "Jupyter",
    "lattice",
    "learning curve",
    "learning rate",
    "length normalization",
    "length penalty",
    "lowercase",
    "minimum Bayes risk",
    "minimum error rate training",
    "multiple references",
    "overfitting",
    "p-value",
    "paired bootstrap",
    "sparse feature",
    "statistical significance",
    "truecasing",
    "validation set",
    "word error rate",
)


@pytest.fixture(scope="module")
def manual() -> list[str]:
    """Pages that explain; benchmarks and generated pages are left out."""
    folders = ("docs", "docs/howto", "docs/concepts", "docs/algorithms")
    pages = [page for page in PAGES if str(page.parent) in folders]
    return [" ".join((ROOT / page).read_text("utf-8").lower().split()) for page in pages]


@pytest.mark.parametrize("term", TERMS)
def test_a_term_of_the_field_is_explained(term: str, manual: list[str]) -> None:
    assert any(term.lower() in page for page in manual)
