"""``mosesplug nbest diff --iterations``: two iterations side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mosesplug.cli.inspect.inspecting import texts_of

if TYPE_CHECKING:
    from mosesplug.inspection.iterations import Change, IterationDifference
    from mosesplug.inspection.texts import Texts

__all__ = ["diff_iterations"]

_FEATURES = 30


def diff_iterations(
    store: Path,
    iterations: tuple[int, int],
    *,
    top: int,
    source: Path | None,
    refs: Path | None,
    json: bool,
) -> None:
    """Compare two iterations of a store, and print what is found."""
    from mosesplug.cli.shared.output import print_json
    from mosesplug.inspection.iterations import difference
    from mosesplug.inspection.run import opened

    texts = texts_of(source, refs)
    with opened(store, with_lists=True) as run:
        found = difference(run, *iterations, texts)
    if json:
        rows = [{**asdict(each), "overlap": each.overlap} for each in found.sentences]
        print_json({**asdict(found), "sentences": rows})
        return
    _print_overview(found)
    print()
    _print_features(found)
    ordered = sorted(found.changed, key=lambda each: each.gain)
    _print_sentences(
        found, "gained most", [each for each in ordered[::-1] if each.gain > 0.0][:top], texts
    )
    _print_sentences(found, "lost most", [each for each in ordered if each.gain < 0.0][:top], texts)


def _print_overview(found: IterationDifference) -> None:
    changed = found.changed
    other = sum(not (each.changed or each.same_hypothesis) for each in found.sentences)
    print(
        f"iteration {found.a} to {found.b}: {found.metric} {found.score_a:.4f} to "
        f"{found.score_b:.4f} ({found.score_b - found.score_a:+.4f})"
    )
    print(
        f"{len(found.sentences)} sentences with lists in both: the 1-best of {len(changed)} has "
        f"other words, of {other} the same words with other features"
    )
    if changed:
        better = sum(each.gain > 0.0 for each in changed)
        worse = sum(each.gain < 0.0 for each in changed)
        mean = sum(each.gain for each in changed) / len(changed)
        there = sum(each.was_there for each in changed)
        print(
            f"of these {len(changed)}, {better} are better by {found.worth}, {worse} worse, mean "
            f"change {mean:+.4f}; {there} were in the list of iteration {found.a}"
        )
    if found.sentences:
        overlap = sum(each.overlap for each in found.sentences) / len(found.sentences)
        shared = sum(each.shared for each in found.sentences)
        print(
            f"{shared} hypotheses are in both lists of their sentence: {100 * overlap:.1f}% of "
            "those in either, on average"
        )
    if not found.weights_known:
        print("the weights of one of them are not known, and count as 0")


def _print_features(found: IterationDifference) -> None:
    """Those that decided first."""
    from mosesplug.cli.shared.tables import print_table

    ordered = sorted(found.features, key=lambda each: -max(abs(each.lead_a), abs(each.lead_b)))
    print(
        f"features, and what they add to the lead of the new over the old 1-best, summed over "
        f"{len(found.changed)} sentences:"
    )
    rows = [
        (
            each.feature,
            f"{each.weight_a:.4f}",
            f"{each.weight_b:.4f}",
            f"{each.weight_b - each.weight_a:+.4f}",
            f"{each.values:+.4g}",
            f"{each.lead_a:+.4f}",
            f"{each.lead_b:+.4f}",
        )
        for each in ordered[:_FEATURES]
    ]
    lead_a = sum(each.lead_a for each in found.features)
    lead_b = sum(each.lead_b for each in found.features)
    rows.append(("all", "", "", "", "", f"{lead_a:+.4f}", f"{lead_b:+.4f}"))
    head = ("feature", f"weight {found.a}", f"weight {found.b}", "change", "value")
    print_table((*head, f"lead at {found.a}", f"lead at {found.b}"), rows, left=1)
    if len(ordered) > _FEATURES:
        print(f"({len(ordered) - _FEATURES} more)")


def _print_sentences(
    found: IterationDifference, what: str, sentences: Sequence[Change], texts: Texts
) -> None:
    if not sentences:
        return
    print(f"\n{what}:")
    for each in sentences:
        print(
            f"sentence {each.sentence}: {found.worth} {each.metric_a:.4f} to {each.metric_b:.4f} "
            f"({each.gain:+.4f}), model {each.model_a:.4f} to {each.model_b:.4f}, lead "
            f"{each.lead_a:+.4f} and {each.lead_b:+.4f}, {each.shared} hypotheses in both lists of "
            f"{each.hypotheses_a} and {each.hypotheses_b}"
        )
        lines = [
            ("source", texts.source_of(each.sentence)),
            *(("reference", text) for text in texts.references_of(each.sentence)),
            (str(found.a), each.text_a),
            (str(found.b), each.text_b),
        ]
        for name, text in lines:
            if text is not None:
                print(f"  {name:9}  {text}")
