"""``mosesplug algorithms``: list the algorithms, or explain one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any

from mosesplug.cli.learn.options import AlgorithmsCommand
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.tables import print_table
from mosesplug.optimizers import Algorithm, algorithm, algorithms
from mosesplug.optimizers.recommended import RECOMMENDED
from mosesplug.settings.algorithm_options import describe_options

_WIDTH = 79
_ABILITIES = ("graphs", "sparse", "online", "bounds")


def list_algorithms(options: AlgorithmsCommand) -> None:
    """List the recommended algorithms or all, or explain one and its settings."""
    if options.name is None:
        known = algorithms()
        if options.json:
            print_json([_describe(each) for each in known.values()])
        elif not options.all:
            _print_recommended(len(known))
        elif current_layout() is TableLayout.TEXT:
            # Extras come last in the registry, but here with their family.
            families = list(dict.fromkeys(each.family for each in known.values()))
            rows = sorted(known.values(), key=lambda row: families.index(row.family))
            print("\n".join(_table(rows)))
        else:
            _print_all(known.values())
        return
    chosen = algorithm(options.name)
    if options.json:
        print_json(_describe(chosen) | {"settings": describe_options(chosen)})
    else:
        print("\n".join(_page(chosen, describe_options(chosen))))


def _print_recommended(count: int) -> None:
    print_table(("algorithm", "when"), list(RECOMMENDED.items()), left=1, last=1)
    print(
        f"\nmosesplug algorithms --all lists all {count}; mosesplug algorithms NAME explains one."
    )


def _print_all(algorithms: Iterable[Algorithm]) -> None:
    """Print the abilities of all algorithms as a table with a row for each."""
    rows = [
        (
            each.name,
            each.family,
            *("yes" if able else "no" for able in _list_abilities(each)),
            each.summary,
            each.source,
        )
        for each in algorithms
    ]
    head = ("algorithm", "family", *_ABILITIES, "summary", "source")
    print_table(head, rows, left=2, last=2)


def _list_abilities(algorithm: Algorithm) -> tuple[bool, ...]:
    """Return whether an algorithm has each of ``_ABILITIES``."""
    return (
        algorithm.graphs,
        algorithm.tunes_sparse,
        algorithm.learner is not None,
        algorithm.keeps_bounds,
    )


def _describe(algorithm: Algorithm) -> dict[str, Any]:
    return {
        "recommended": RECOMMENDED.get(algorithm.name),
        "name": algorithm.name,
        "family": algorithm.family,
        "summary": algorithm.summary,
        "source": algorithm.source,
        "graphs": algorithm.graphs,
        "sparse": algorithm.tunes_sparse,
        "online": algorithm.learner is not None,
        "shards": algorithm.maps_shards or algorithm.learner is not None,
        "bounds": algorithm.keeps_bounds,
        "metrics": ["BLEU"] if algorithm.needs_bleu else None,
    }


def _table(algorithms: list[Algorithm]) -> Iterator[str]:
    """Yield the lines of the table, two for each algorithm."""
    width = max(len(each.name) for each in algorithms) + 2
    yield f"{'':{width}}  {' '.join(_ABILITIES)}  summary (paper)"
    family = ""
    for each in algorithms:
        if each.family != family:
            family = each.family
            yield f"{family[0].upper()}{family[1:]}"
        marks = " ".join(f"{'yes' if able else '-':6}" for able in _list_abilities(each))
        head = f"  {each.name:{width - 2}}  {marks}"
        lines = wrap(f"{each.summary} ({each.source})", _WIDTH - len(head) - 2)
        for line in lines:
            yield f"{head}  {line}"
            head = " " * len(head)
    yield ""
    yield "mosesplug algorithms NAME explains one and lists its settings."


def _page(algorithm: Algorithm, settings: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the explanation of one algorithm."""
    sources = ["n-best lists"]
    if algorithm.graphs:
        sources.append("search graphs")
    if algorithm.learner is not None:
        sources.append("decoded mini-batches (--online)")
    features = "dense and sparse" if algorithm.tunes_sparse else "dense"
    metrics = "BLEU only" if algorithm.needs_bleu else "any metric"
    yield f"{algorithm.name}: {algorithm.summary}"
    yield ""
    yield f"Source:       {algorithm.source}"
    yield f"Family:       {algorithm.family}"
    yield f"Learns from:  {', '.join(sources)}"
    bounds = "" if algorithm.keeps_bounds else "; cannot keep bounds"
    if algorithm.maps_shards or algorithm.learner is not None:
        yield "In parallel:  --shards"
    yield f"Tunes:        {features} features, by {metrics}{bounds}"
    yield ""
    yield "Settings, given as --option NAME=VALUE:"
    for setting in settings:
        head, default = f"  {setting['name']}  {_kind(setting)}", f"[{_spell(setting['default'])}]"
        if setting["tune_default"] != setting["default"]:
            default = f"{default[:-1]}; of tune: {_spell(setting['tune_default'])}]"
        if len(head) + 2 + len(default) <= _WIDTH:
            yield f"{head}  {default}"
        else:
            yield from (head, f"      {default}")
        condition = setting["only_with"]
        sentences = (
            f"{setting['help']}.",
            setting["details"],
            f"Only with {condition}." if condition else "",
            f"({setting['source']})",
        )
        yield from wrap(
            " ".join(filter(None, sentences)),
            _WIDTH,
            initial_indent=" " * 6,
            subsequent_indent=" " * 6,
            break_on_hyphens=False,
        )
    example = settings[0]
    yield ""
    yield f"Example: mosesplug optimize --from tuning --algorithm {algorithm.name} \\"
    yield f"    --option {example['name']}={_spell(example['default'])} -o tuned"


def _kind(setting: dict[str, Any]) -> str:
    if setting["choices"]:
        return "|".join(setting["choices"])
    bounds = ((" >= ", setting["minimum"]), (" <= ", setting["maximum"]))
    shown = "".join(f"{sign}{bound:g}" for sign, bound in bounds if bound is not None)
    return f"{setting['type']}{shown}"


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
