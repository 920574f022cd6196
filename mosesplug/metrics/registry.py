"""Metrics by the names and settings that Moses' programs give them.

``--sctype BLEU --scconfig case:false,reflen:shortest`` is ``metric("BLEU",
"case:false,reflen:shortest")``. ``metric("BLEU,TER", "weights:0.6+0.4")`` is a weighted sum, and so
is ``metric("BLEU:0.6+TER:0.4")``. Scores from outside are metrics of the names that a caller gives.
The conformance tests cover every metric registered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from mosesplug.errors import UsageError, suggest
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.bleu.gleu import Gleu
from mosesplug.metrics.chrf import Chrf
from mosesplug.metrics.edit.cer import Cer
from mosesplug.metrics.edit.mer import Mer
from mosesplug.metrics.edit.wer import Cder, Wer
from mosesplug.metrics.interpolated import InterpolatedMetric, list_parts
from mosesplug.metrics.meteor import Meteor
from mosesplug.metrics.normalization import parse_normalization
from mosesplug.metrics.outside import MEAN, RATIO, Formula, OutsideMetric
from mosesplug.metrics.per import Per
from mosesplug.metrics.plugin import find_metric_plugin, metric_plugin_names
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.ter.moses import Ter
from mosesplug.metrics.ter.sacrebleu import TerSacrebleu
from mosesplug.metrics.tokenizers import TOKENIZERS, tokenizer_of_signature


def metric(name: str, settings: str = "", outside: Sequence[OutsideMetric] = ()) -> Metric:
    """Return the metric that ``--sctype name --scconfig settings`` asks for.

    Args:
        name: in Moses' spelling, such as ``BLEU``, or several, comma-separated, or a weighted sum
            as ``BLEU:0.6+TER:0.4``.
        settings: ``name:value`` pairs separated by commas or blanks, as in ``--scconfig``. With
            several metrics, each uses the settings that it knows, and ``weights:0.6+0.4`` sets
            their weights.
        outside: metrics of scores from outside, whose names come before those of this package.

    Raises:
        UsageError: an unknown metric, setting or value; the message lists the known ones.
    """
    parsed = parse_settings(settings)
    names, weights = split_sum(name)
    own = {metric.name: metric for metric in outside}
    entries = [_outside_entry(own[name]) if name in own else _entry(name, own) for name in names]
    if len(entries) == 1:
        _refuse_others(name, parsed, entries[0].settings)
        return entries[0].build(parsed)
    known = {setting for entry in entries for setting in entry.settings}
    _refuse_others(name, parsed, (*sorted(known), "weights"))
    if "weights" in parsed:
        if weights:
            raise UsageError(f"{name} has weights already: leave out weights:{parsed['weights']}")
        weights = _weights(parsed["weights"])
    return InterpolatedMetric(tuple(entry.build(parsed) for entry in entries), weights)


def metric_of_text(text: str, outside: Sequence[OutsideMetric] = ()) -> Metric:
    """Return the metric of a name with settings, such as ``CHRF beta:2``.

    Args:
        text: name and settings, as for ``metric``, separated by a blank; or the settings in
            brackets, ``CHRF[beta:2]``.
        outside: as for ``metric``.

    Raises:
        UsageError: the text is empty, or as for ``metric``.
    """
    name, settings = split_text(text)
    if not name:
        raise UsageError("a metric needs a name, such as BLEU or 'CHRF beta:2'")
    return metric(name, settings, outside)


def names_of_text(text: str) -> list[str]:
    """Return the names of the metrics that ``metric_of_text`` combines.

    Raises:
        UsageError: the text is not a weighted sum.
    """
    return split_sum(split_text(text)[0])[0]


def split_text(text: str) -> tuple[str, str]:
    """Return name and settings of ``CHRF beta:2`` or ``CHRF[beta:2]``."""
    text = text.strip()
    name, mark, settings = text.removesuffix("]").partition("[")
    if mark and text.endswith("]") and " " not in name:
        return name, settings
    name, _, settings = text.partition(" ")
    return name, settings.strip()


def split_sum(name: str) -> tuple[list[str], tuple[float, ...]]:
    """Split ``A,B``, ``A+B`` or ``A:0.7+B:0.3`` into names and weights, if any."""
    alone, _, settings = name.partition(" ")
    if ":" in settings and ":" not in alone:
        raise UsageError(
            f"the metric {alone} has settings here: give them as {{--metric-settings}} {settings!r}"
        )
    if "+" not in name and ":" not in name:
        return name.split(","), ()
    pieces = [piece.partition(":") for piece in name.split("+")]
    weighted = [bool(colon) for _, colon, _ in pieces]
    is_sum = len(pieces) > 1 and "," not in name and all(piece for piece, _, _ in pieces)
    if not is_sum or len(set(weighted)) > 1:
        raise UsageError(
            f"the metric {name!r} is not a weighted sum: write NAME:WEIGHT+NAME:WEIGHT, as "
            "BLEU:0.6+TER:0.4"
        )
    weights = tuple(
        _number(f"the weight of {piece}", text) for piece, colon, text in pieces if colon
    )
    return [piece for piece, _, _ in pieces], weights


def metric_of_signature(signature: str) -> Metric:
    """Return the metric with this signature.

    It is that of ``Metric`` or of ``PreparedReferences``.

    Raises:
        UsageError: no metric of this version has that signature.
    """
    return metric(*settings_of_signature(signature), outside=outside_of_signature(signature))


def outside_of_signature(signature: str) -> list[OutsideMetric]:
    """Return the metrics of scores from outside that a signature names."""
    first, *fields = signature.split("|")
    names, owner = first.split(","), first
    metrics: list[OutsideMetric] = []
    for place, field in enumerate(fields):
        if field in names:
            owner = field
        key, _, value = field.partition(":")
        if key == "outside":
            is_rate = fields[place + 1 : place + 2] == ["rate:yes"]
            formula = find_formula(value)
            metrics.append(OutsideMetric(owner, formula, is_rate, tuple(range(formula.width))))
        elif key == "version" and metrics and metrics[-1].name == owner:
            metrics[-1] = replace(metrics[-1], version=value)
    return metrics


def settings_of_signature(signature: str) -> tuple[str, str]:
    """Return name and settings, as for ``metric``, of the metric with this signature.

    Raises:
        UsageError: no metric of this version has that signature.
    """
    name, *fields = signature.split("|")
    outside = {metric.name for metric in outside_of_signature(signature)}
    own = [_entry_of_signature(part, signature) for part in name.split(",") if part not in outside]
    known = {"weights"} | {setting for entry in own for setting in entry.settings}
    settings = {}
    for field in fields:
        setting, _, value = field.partition(":")
        if setting == "tok":
            setting, value = "tokenize", tokenizer_of_signature(field)
        setting = "words" if setting == "nw" else setting
        # BLEU has ``smooth:none``; CHRF has a number under the same key.
        if setting in known and f"{setting}:{value}" not in ("smooth:none", "tokenize:none"):
            settings[setting] = _SPELLED.get(field, value)
    return name, ",".join(f"{setting}:{value}" for setting, value in settings.items())


def _entry_of_signature(name: str, signature: str) -> _Entry:
    """Return the metric of that name, which computed statistics with this signature."""
    try:
        return _entry(name)
    except UsageError as error:
        raise UsageError(
            f"{error}. The statistics are those of {name} ({signature}): install the package whose"
            " plug-in it is, or name another metric"
        ) from error


def sign_parts(metric: Metric, signature: str) -> str:
    """Return the signature of a metric from one that has those of its parts.

    Args:
        signature: that of statistics in which ``interpolated.find_columns`` finds the metric's.
    """
    names, *fields = signature.split("|")
    parts = {names: [names]}
    if "," in names:
        parts = {name: [] for name in names.split(",")}
        owner: list[str] = []
        for field in fields:  # before the first part are the weights
            owner = parts.get(field, owner)
            owner.append(field)
    else:
        parts[names] += fields
    signatures = ["|".join(parts[part.name]) for part in list_parts(metric)]
    return metric.sign(signatures) if isinstance(metric, InterpolatedMetric) else signatures[0]


_FORMULA_SETTINGS = {"alpha", "beta", "exact", "gamma", "smooth", "stem", "words"}
"""Settings that change a metric's function of sums, or its number of statistics."""


def find_formula(name: str) -> Formula:
    """Return the formula ``mean``, ``ratio`` or of a metric, as ``CHRF[words:2]``.

    Raises:
        UsageError: an unknown metric or setting, or a setting of how statistics are counted.
    """
    for formula in (MEAN, RATIO):
        if formula.name == name:
            return formula
    counted, _, text = name.removesuffix("]").partition("[")
    if counted in _ENTRIES:
        settings, known = parse_settings(text), _ENTRIES[counted].settings
        usable = tuple(setting for setting in known if setting in _FORMULA_SETTINGS)
        if idle := settings.keys() & (set(known) - set(usable)):
            raise UsageError(
                f"{name}: {min(idle)} does not change the formula of {counted}; it says what is "
                "counted, which is up to the program that counts"
            )
        _refuse_others(f"the formula of {counted}", settings, usable)
    measure = metric(counted, text)
    return Formula(name, measure.n_statistics, measure)


def built_in_names() -> tuple[str, ...]:
    """Return the names of single metrics without those of plug-ins, sorted."""
    return tuple(sorted(_ENTRIES))


def metric_names() -> tuple[str, ...]:
    """Return the sorted names of single metrics, with those of plug-ins."""
    return tuple(sorted({*_ENTRIES, *metric_plugin_names()}))


@dataclass(frozen=True)
class MetricFacts:
    """A metric as a list of metrics shows it.

    Attributes:
        settings: the names of its settings, as in ``--metric-settings NAME:VALUE``.
    """

    name: str
    settings: tuple[str, ...]
    summary: str


def list_metrics() -> tuple[MetricFacts, ...]:
    """Return the single metrics, with those of plug-ins that can be used."""
    facts = []
    for name in metric_names():
        try:
            entry = _entry(name)
        except UsageError:
            continue  # mosesplug plugins says why
        facts.append(MetricFacts(name, entry.settings, entry.summary))
    return tuple(facts)


def list_absent_metrics() -> Mapping[str, str]:
    """Return why metrics that users look for are not included, by their names."""
    return _REFUSED


def parse_settings(settings: str) -> dict[str, str]:
    """Parse settings such as ``case:false,reflen:shortest`` to values by name.

    Raises:
        UsageError: a piece is not ``name:value``, or a name has two values.
    """
    parsed: dict[str, str] = {}
    for piece in settings.replace(",", " ").split():
        name, colon, value = piece.partition(":")
        if not (name and colon and value):
            raise UsageError(f"metric setting {piece!r} is not of the form name:value")
        if parsed.setdefault(name, value) != value:
            raise UsageError(
                f"metric setting {name} is given twice: {name}:{parsed[name]} and {name}:{value}"
            )
    return parsed


class _Entry(NamedTuple):
    """A constructor of a metric, names of its settings, and a summary."""

    settings: tuple[str, ...]
    build: Callable[[Mapping[str, str]], Metric]
    summary: str = ""


def _outside_entry(metric: OutsideMetric) -> _Entry:
    return _Entry((), lambda settings: metric)


def _entry(name: str, outside: Iterable[str] = ()) -> _Entry:
    """Return the metric of that name."""
    if name in _ENTRIES:
        return _ENTRIES[name]
    if (plugin := find_metric_plugin(name)) is not None:
        return _Entry(plugin.settings, plugin.make, plugin.summary)
    known = f"known metrics: {', '.join((*outside, *metric_names()))}"
    other = ""
    if name:
        other = (
            f"; if another program computes it, use mosesplug optimize --score-command "
            f"{name}=COMMAND or --scores {name}=FILE; oracle, score and compare take both options, "
            "tune, mbr and report the first"
        )
    if name in _REFUSED:
        raise UsageError(f"the metric {name} is not supported: {_REFUSED[name]}; {known}{other}")
    hint = suggest(name.upper().replace("_", "-"), (*outside, *metric_names()))
    raise UsageError(f"unknown metric {name!r}; {known}{other}{hint}")


def _refuse_others(metric: str, settings: Mapping[str, str], known: tuple[str, ...]) -> None:
    for name in settings:
        if name in ("regtype", "regwin"):
            raise UsageError(
                f"{name} regularizes the line search and is not a setting of {metric}: "
                "give it to the optimizer"
            )
        if name not in known:
            raise UsageError(
                f"unknown setting {name!r} of {metric}; known settings: "
                f"{', '.join(known) or 'none'}{suggest(name, known)}"
            )


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{what} is not a number: {text!r}") from None


def _weights(text: str) -> tuple[float, ...]:
    """Parse ``"0.6+0.4"`` to ``(0.6, 0.4)``."""
    return tuple(_number(f"a weight of weights:{text}", piece) for piece in text.split("+"))


class _Setting(NamedTuple):
    """A setting: its name, the metric's argument, and how text becomes its value.

    ``read`` takes the name of the metric, that of the setting, and the text.
    """

    name: str
    argument: str
    read: Callable[[str, str, str], object]


def _choice(name: str, argument: str, values: Mapping[str, object]) -> _Setting:
    """Return a setting with one of some values."""

    def read(metric: str, name: str, text: str) -> object:
        if text not in values:
            raise UsageError(
                f"{name}:{text} is invalid for {metric}: {name} must be one of {', '.join(values)}"
            )
        return values[text]

    return _Setting(name, argument, read)


def _words(*values: str) -> dict[str, object]:
    return {value: value for value in values}


def _real(name: str) -> _Setting:
    return _Setting(name, name, lambda metric, name, text: _number(f"{name} of {metric}", text))


def _entry_of(kind: Callable[..., Metric], name: str, summary: str, *settings: _Setting) -> _Entry:
    """Return the entry of a metric that is built from these settings."""

    def build(values: Mapping[str, str]) -> Metric:
        used = [setting for setting in settings if setting.name in values]
        return kind(
            **{
                setting.argument: setting.read(name, setting.name, values[setting.name])
                for setting in used
            }
        )

    return _Entry(tuple(sorted(setting.name for setting in settings)), build, summary)


_CASE = _choice("case", "lowercase", {"true": False, "false": True})
_TOKENIZE = _choice("tokenize", "tokenizer", _words(*TOKENIZERS))
_NORMALIZE = _Setting(
    "normalize", "normalization", lambda metric, name, text: parse_normalization(text)
)
_REFLEN = _choice("reflen", "reference_length", _words("closest", "shortest", "average"))
_REFS = _choice("refs", "reference_choice", _words("moses", "best"))
_WORDS = _choice("words", "word_order", {str(order): order for order in range(5)})
_BLANKS = _choice("blanks", "blanks", _words("keep", "remove"))

_ENTRIES: Mapping[str, _Entry] = MappingProxyType(
    {
        "BLEU": _entry_of(
            Bleu,
            "BLEU",
            "Matched n-grams with a brevity penalty (Papineni et al. 2002).",
            _REFLEN,
            _CASE,
            _TOKENIZE,
        ),
        "CDER": _entry_of(
            Cder,
            "CDER",
            "Word errors, with jumps over blocks (Leusch et al. 2006).",
            _CASE,
            _REFS,
            _TOKENIZE,
            _NORMALIZE,
        ),
        "CER": _entry_of(
            Cer, "CER", "Edit distance of characters, as in jiwer.", _CASE, _BLANKS, _NORMALIZE
        ),
        "CHRF": _entry_of(
            Chrf,
            "CHRF",
            "F-score of character n-grams (Popovic 2015); words:2 is chrF++.",
            _CASE,
            _real("beta"),
            _real("smooth"),
            _WORDS,
        ),
        "GLEU": _entry_of(
            Gleu,
            "GLEU",
            "The smaller of n-gram precision and recall (Wu et al. 2016).",
            _CASE,
            _TOKENIZE,
        ),
        "MER": _entry_of(
            Mer,
            "MER",
            "Share of wrong pairs in the alignment (Morris et al. 2004).",
            _CASE,
            _TOKENIZE,
            _NORMALIZE,
        ),
        "METEOR": _entry_of(
            Meteor,
            "METEOR",
            "Aligned words and chunks (Banerjee & Lavie 2005), with stems.",
            _CASE,
            _TOKENIZE,
            _NORMALIZE,
            *(_real(name) for name in ("alpha", "beta", "gamma", "exact", "stem")),
            _Setting("stems", "stems", lambda metric, name, text: text),
        ),
        "PER": _entry_of(
            Per,
            "PER",
            "Word errors in any order (Tillmann et al. 1997).",
            _CASE,
            _TOKENIZE,
            _NORMALIZE,
        ),
        "TER": _entry_of(
            Ter,
            "TER",
            "Edits and shifts, counted as in Moses (Snover et al. 2006).",
            _CASE,
            _TOKENIZE,
            _NORMALIZE,
        ),
        "TER-SACREBLEU": _entry_of(
            TerSacrebleu,
            "TER-SACREBLEU",
            "Edits and shifts, counted as in sacrebleu.",
            _CASE,
            _TOKENIZE,
            _NORMALIZE,
        ),
        "WER": _entry_of(
            Wer, "WER", "Edit distance of words.", _CASE, _REFS, _TOKENIZE, _NORMALIZE
        ),
    }
)

_SPELLED: Mapping[str, str] = MappingProxyType(
    {"case:mixed": "true", "case:lc": "false", "case:lc-ascii": "false"}
)
"""Settings values for those signature values that differ from them."""

_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "BEER": "it needs models that are trained on human rankings",
        "BLEUDOC": "it needs XML documents, not sentences",
        "BLEURT": "it needs a neural model",
        "COMET": "it needs a neural model",
        "HAMMING": "it compares word alignments with those of the references",
        "HWCM": "it needs parse trees of hypotheses and references",
        "KENDALL": "it compares word alignments with those of the references",
        "LRSCORE": "it compares word alignments with those of the references",
        "M2": "it needs references with annotated corrections",
        "M2SCORER": "it needs references with annotated corrections",
        "MEANT": "it needs semantic role labels of hypotheses and references",
        "MERGE": "no program of Moses supports it either",
        "METRICX": "it needs a neural model",
        "SEMPOS": "it needs deep syntactic analyses of hypotheses and references",
        "TESLA": "it needs a linear program over bags of n-grams, and WordNet",
    }
)
