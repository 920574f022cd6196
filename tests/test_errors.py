"""Test messages about names of features."""

from __future__ import annotations

import pytest

from mosesplug.errors import explain_unknown_feature

MANY = ["LM0", "TM0", "TM0", *(f"WT_{i}" for i in range(40))]


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("LM1", ["LM0", "WT_a"], "LM1; known: LM0, WT_a. Did you mean LM0?"),
        ("XX", ["LM0"], "XX; known: LM0. Correct the name, or leave it out"),
        ("XX", [], "XX; known: none. Correct the name, or leave it out"),
        ("XX_*", MANY, "XX_*; known: LM0, TM0, WT_*. Correct the name, or leave it out"),
        ("WX_*", ["WT_a"], "WX_*; known: WT_*. Did you mean WT_*?"),
        ("WT_99", MANY, "WT_99; known: LM0, TM0, WT_*. Did you mean WT_9?"),
        (
            "a",
            [f"{i}" for i in range(32)],
            f"a; known: {', '.join(map(str, range(30)))}, and 2 more. C",
        ),
    ],
)
def test_unknown_features(name: str, known: list[str], message: str) -> None:
    assert explain_unknown_feature(name, known).startswith(f"there is no feature {message}")
