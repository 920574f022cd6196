"""The difference of two weight vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from mosesplug.escapes import mark_invalid_utf8
from mosesplug.results.render.record import Count, Shown, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, list_more
from mosesplug.results.weights.algebra import align, compute_norm, normalize
from mosesplug.results.weights.sources import ResolvedWeights


@dataclass(frozen=True)
class WeightDifference:
    """One feature of two weight vectors.

    Attributes:
        a, b: its weights; None if missing.
    """

    JSON_KEYS: ClassVar = "feature a b difference change"

    feature: Annotated[str, Shown(mark_invalid_utf8, is_text=True)]
    a: Annotated[float | None, Shown(".6g", "A", "-")]
    b: Annotated[float | None, Shown(".6g", "B", "-")]

    @property
    def difference(self) -> Annotated[float, Shown("+.6g")]:
        """B minus A; a missing weight counts as 0."""
        return (self.b or 0.0) - (self.a or 0.0)

    @property
    def change(self) -> float | None:
        """The difference over the absolute weight of A; None if that is 0 or missing."""
        return self.difference / abs(self.a) if self.a else None

    @property
    def remark(self) -> Annotated[str, Shown(label="change")]:
        """The relative change, or which side has the feature."""
        if self.a is None or self.b is None:
            return "only in B" if self.a is None else "only in A"
        return "" if self.change is None else f"{self.change:+.1%}"


@dataclass(frozen=True)
class FeatureOverlap:
    """Numbers of features whose weight is not 0 (Green et al. 2013, Table 6).

    Attributes:
        features: ``dense`` or ``sparse``.
        a, b: number of features that are not 0 in A, and in B.
        both: number of features that are not 0 in both vectors.
    """

    features: Annotated[str, Shown(label="non-zero weights", is_text=True)]
    a: Annotated[int, Shown(label="A")]
    b: Annotated[int, Shown(label="B")]
    both: Count


@dataclass(frozen=True)
class FixedDifference:
    """A weight that is not tuned and differs."""

    feature: str
    a: float
    b: float


@dataclass(frozen=True)
class WeightComparison:
    """Two weight vectors, A and B.

    Attributes:
        a, b: the names that the user gave, of files or runs.
        formats: their formats.
        l1_norms: the norms of the dense weights, before they were normalized.
        cosine: cosine of the angle between them; None if one is 0.
        features: the features, the largest difference first.
        not_tuned: weights that are not tuned and differ.
        nonzero: how many weights are not 0: of dense features, and of sparse ones if there are any.
        top: the number of differences that blocks show; 0 for all.
    """

    JSON_KEYS: ClassVar = "a b l1_norms normalized cosine nonzero features not_tuned"

    a: str
    b: str
    formats: tuple[str, str]
    l1_norms: tuple[float, float]
    normalized: bool
    cosine: float | None
    features: tuple[WeightDifference, ...]
    not_tuned: tuple[FixedDifference, ...]
    nonzero: tuple[FeatureOverlap, ...]
    top: int = 0

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield both names, the features that differ, and how many do not."""
        sides = zip("AB", (self.a, self.b), self.formats, self.l1_norms, strict=True)
        for letter, source, name, norm in sides:
            yield f"{letter}: {mark_invalid_utf8(source)}, {name}, L1 norm {norm:.6g}"
        yield f"cosine {'undefined' if self.cosine is None else f'{self.cosine:.6f}'}"
        one, other = self.l1_norms
        if not self.normalized and min(one, other) > 0.0 and abs(other / one - 1.0) > 0.01:
            yield "the norms differ: use --normalize to compare directions"
        changed = [row for row in self.features if row.difference or None in (row.a, row.b)]
        if changed:
            yield ""
            yield tabulate(WeightDifference, changed[: self.top or None])
            yield from list_more(len(changed), self.top)
        equal = len(self.features) - len(changed)
        yield f"\n{equal} of {len(self.features)} features have equal weights"
        for fixed in self.not_tuned:
            name = mark_invalid_utf8(fixed.feature)
            yield f"not tuned, and different: {name} {fixed.a:g} {fixed.b:g}"
        yield ""
        yield tabulate(FeatureOverlap, self.nonzero)


def compare_weights(
    a: ResolvedWeights, b: ResolvedWeights, *, normalized: bool = False, top: int = 0
) -> WeightComparison:
    """Compare two weight vectors.

    Args:
        normalized: divide each by the L1 norm of its dense weights first.
        top: the number of differences that are shown; 0 for all.

    Raises:
        DataError: only one has names, and the numbers of dense weights differ; or weights are to be
            normalized, and all dense ones are 0.
    """
    fixed = [
        FixedDifference(name, value, theirs)
        for name, value in a.fixed_weights.items()
        if (theirs := b.fixed_weights.get(name, value)) != value
    ]
    norms = compute_norm(a), compute_norm(b)
    if normalized:
        a, b = normalize(a), normalize(b)
    one, other = align([a, b]) if a.is_named != b.is_named else (a, b)
    names = dict.fromkeys([*one.by_name, *other.by_name])
    rows = [WeightDifference(n, one.by_name.get(n), other.by_name.get(n)) for n in names]
    rows.sort(key=lambda row: -abs(row.difference))
    dense = {*one.names, *other.names}
    kinds = {
        "dense": [row for row in rows if row.feature in dense],
        "sparse": [row for row in rows if row.feature not in dense],
    }
    return WeightComparison(
        a.source,
        b.source,
        (a.format, b.format),
        norms,
        normalized,
        compute_cosine(rows),
        tuple(rows),
        tuple(fixed),
        tuple(_count_nonzero(kind, members) for kind, members in kinds.items() if members),
        top,
    )


def _count_nonzero(kind: str, rows: Sequence[WeightDifference]) -> FeatureOverlap:
    return FeatureOverlap(
        kind,
        sum(bool(row.a) for row in rows),
        sum(bool(row.b) for row in rows),
        sum(bool(row.a and row.b) for row in rows),
    )


def compute_cosine(rows: Sequence[WeightDifference]) -> float | None:
    """Return the cosine of the angle between two weight vectors; None if one is 0."""
    one = [row.a or 0.0 for row in rows]
    other = [row.b or 0.0 for row in rows]
    sizes = math.hypot(*one), math.hypot(*other)
    if 0.0 in sizes:
        return None
    # Divided first, since products of very large or very small numbers overflow or vanish.
    return math.fsum((a / sizes[0]) * (b / sizes[1]) for a, b in zip(one, other, strict=True))
