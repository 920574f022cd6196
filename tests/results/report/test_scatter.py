"""Tests of scatter plots."""

import re
from itertools import combinations

from mosesplug.results.report.scatter import Axis, Mark, render_scatter


def draw_labels(*marks: Mark) -> dict[str, tuple[float, float]]:
    """Return where the plot has the labels of marks, in pixels."""
    svg = render_scatter(marks, Axis("seconds"), Axis("BLEU"))
    texts = re.findall(r'<text x="([^"]*)" y="([^"]*)"[^>]*>([^<]*)<', svg)
    wanted = {mark.label for mark in marks}
    return {text: (float(x), float(y)) for x, y, text in texts if text in wanted}


def test_labels_are_next_to_their_marks() -> None:
    places = draw_labels(
        Mark(0, 0, "learned", "", label="low"), Mark(1, 1, "learned", "", label="high")
    )
    (low, below), (high, above) = places["low"], places["high"]
    assert low < high
    assert above < below  # pixels are counted from above


def test_labels_without_room_are_left_out_those_of_the_front_last() -> None:
    """Nine marks are at one point, which has room for fewer labels around it."""
    marks = [Mark(1, 1, "learned", "", label=f"system-{number}") for number in range(8)]
    best = Mark(1, 1, "learned", "", is_optimal=True, label="best-one")
    places = draw_labels(*marks, best)
    assert "best-one" in places
    assert 1 < len(places) < 9
    for (left, bottom), (other, level) in combinations(places.values(), 2):
        assert abs(other - left) > 40 or abs(level - bottom) >= 12
