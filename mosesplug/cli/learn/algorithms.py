"""``mosesplug algorithms``: list the algorithms, or explain one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Annotated, Any, ClassVar

from mosesplug.cli.learn.options import AlgorithmsCommand
from mosesplug.cli.shared.tables import print_record
from mosesplug.optimizers import Algorithm, algorithm, algorithms
from mosesplug.optimizers.recommended import RECOMMENDED
from mosesplug.results.render.record import Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable
from mosesplug.settings.algorithm_options import describe_options

_WIDTH = 79
_ABILITIES = ("graphs", "sparse", "online", "bounds")


def _say(is_able: bool) -> str:
    return "yes" if is_able else "no"


_Ability = Annotated[bool, Shown(_say)]


@dataclass(frozen=True)
class AlgorithmFacts:
    """An algorithm as its list and its page show it.

    Attributes:
        recommended: when to use it; None if others are better first choices.
        metrics: the metrics that it can optimize; None for all.
        settings: its settings, as ``describe_options`` returns them; empty in a list.
    """

    JSON_KEYS: ClassVar = (
        "recommended name family summary source graphs sparse online shards bounds metrics "
        "settings?"
    )

    recommended: str | None
    name: Annotated[str, Shown(label="algorithm", is_text=True)]
    family: Text
    graphs: _Ability
    sparse: _Ability
    online: _Ability
    bounds: _Ability
    summary: Text
    source: Text
    shards: bool
    metrics: tuple[str, ...] | None
    settings: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of_algorithm(cls, algorithm: Algorithm) -> AlgorithmFacts:
        """Return the facts of an algorithm, without its settings."""
        return cls(
            recommended=RECOMMENDED.get(algorithm.name),
            name=algorithm.name,
            family=algorithm.family,
            graphs=algorithm.graphs,
            sparse=algorithm.tunes_sparse,
            online=algorithm.learner is not None,
            bounds=algorithm.keeps_bounds,
            summary=algorithm.summary,
            source=algorithm.source,
            shards=algorithm.maps_shards or algorithm.learner is not None,
            metrics=("BLEU",) if algorithm.needs_bleu else None,
        )

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield the explanation of the algorithm."""
        yield "\n".join(_page(self))


@dataclass(frozen=True)
class AlgorithmList:
    """The algorithms; its document is a list of them.

    Attributes:
        shows_all: whether blocks list more than those that are recommended.
    """

    document: tuple[AlgorithmFacts, ...]
    shows_all: bool

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield a table."""
        if not self.shows_all:
            yield TextTable([("algorithm", "when"), *RECOMMENDED.items()], left=1, last=1)
            yield (
                f"\nmosesplug algorithms --all lists all {len(self.document)}; mosesplug "
                "algorithms NAME explains one."
            )
        elif medium.is_text:
            # Extras come last in the registry, but here with their family.
            families = list(dict.fromkeys(row.family for row in self.document))
            rows = sorted(self.document, key=lambda row: families.index(row.family))
            yield "\n".join(_table(rows))
        else:
            yield tabulate(AlgorithmFacts, self.document)


def list_algorithms(options: AlgorithmsCommand) -> None:
    """List the recommended algorithms or all, or explain one and its settings."""
    if options.name is None:
        facts = tuple(map(AlgorithmFacts.of_algorithm, algorithms().values()))
        print_record(AlgorithmList(facts, options.all))
    else:
        chosen = algorithm(options.name)
        page = AlgorithmFacts.of_algorithm(chosen)
        print_record(replace(page, settings=tuple(describe_options(chosen))))


def _table(algorithms: Sequence[AlgorithmFacts]) -> Iterator[str]:
    """Yield the lines of the table, two for each algorithm."""
    width = max(len(row.name) for row in algorithms) + 2
    yield f"{'':{width}}  {' '.join(_ABILITIES)}  summary (paper)"
    family = ""
    for row in algorithms:
        if row.family != family:
            family = row.family
            yield f"{family[0].upper()}{family[1:]}"
        marks = " ".join(f"{'yes' if getattr(row, name) else '-':6}" for name in _ABILITIES)
        head = f"  {row.name:{width - 2}}  {marks}"
        lines = wrap(f"{row.summary} ({row.source})", _WIDTH - len(head) - 2)
        for line in lines:
            yield f"{head}  {line}"
            head = " " * len(head)
    yield ""
    yield "mosesplug algorithms NAME explains one and lists its settings."


def _page(algorithm: AlgorithmFacts) -> Iterator[str]:
    """Yield the explanation of one algorithm."""
    sources = ["n-best lists"]
    if algorithm.graphs:
        sources.append("search graphs")
    if algorithm.online:
        sources.append("decoded mini-batches (--online)")
    features = "dense and sparse" if algorithm.sparse else "dense"
    metrics = "BLEU only" if algorithm.metrics else "any metric"
    yield f"{algorithm.name}: {algorithm.summary}"
    yield ""
    yield f"Source:       {algorithm.source}"
    yield f"Family:       {algorithm.family}"
    yield f"Learns from:  {', '.join(sources)}"
    bounds = "" if algorithm.bounds else "; cannot keep bounds"
    if algorithm.shards:
        yield "In parallel:  --shards"
    yield f"Tunes:        {features} features, by {metrics}{bounds}"
    yield ""
    yield "Settings, given as --option NAME=VALUE:"
    for setting in algorithm.settings:
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
    example = algorithm.settings[0]
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
