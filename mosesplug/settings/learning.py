"""The settings of learning weights without a decoder, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from formats.weights.named import find_weight_files
from mosesplug.cores import usable_cores
from mosesplug.errors import UsageError
from mosesplug.options import Opt, Parts, list_options, same_as
from mosesplug.settings.checks import check_fields, check_settings, make_settings
from mosesplug.settings.configuration import RunPlan, SelectRun
from mosesplug.settings.features import AddedFeature, parse_added_features
from mosesplug.settings.intervals import Bound, StartRange, parse_bounds
from mosesplug.settings.lengths import WORDS, LengthRange, parse_length_range
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.online import Monitor, parse_monitors
from mosesplug.settings.scores.files import ScoreSource, parse_score_sources
from mosesplug.settings.sentences.weights import SentenceWeights
from mosesplug.settings.sharding import Sharding

if TYPE_CHECKING:
    from mosesplug.optimizers.selection import FeatureSelection


@dataclass(frozen=True)
class LearningSettings:
    """The settings of learning: input, metric, algorithm, and held-out data.

    Settings that a run also has are declared with those of the run.

    Raises:
        UsageError: a value is out of range.
    """

    nbest: Annotated[
        tuple[Path, ...],
        Opt(
            "n-best lists to merge",
            "Data",
            keyword="lists",
            metavar="FILE...",
            exists="path",
            excludes=("graphs", "from"),
        ),
    ] = ()
    graphs: Annotated[
        tuple[Path, ...],
        Opt(
            "Search graphs: a directory or file for each decoding",
            "Data",
            metavar="DIR...",
            exists="path",
            excludes=("from",),
            details="A directory holds 0.gz, 1.gz, ..., as Moses writes it. mosesplug algorithms "
            "lists the algorithms that learn from graphs.",
        ),
    ] = ()
    store: Annotated[
        Path | None,
        Opt(
            "Stored lists of a run: its working directory",
            "Data",
            name="from",
            keyword="store",
            metavar="STORE",
            exists="path",
            details="Or the store in it, which is not changed. The stored statistics are used; "
            "another --metric needs --refs.",
        ),
    ] = None
    iterations: Annotated[
        str | None,
        Opt(
            "Iterations of --from; -N: the newest N",
            "Data",
            metavar="A:B|N|-N",
            default_text="all",
            requires=("from",),
        ),
    ] = None
    references: Annotated[Path | None, same_as(RunPlan, "refs", is_argument=False)] = None
    lists: ListSettings = field(default_factory=ListSettings)
    hg_prune: Annotated[
        int,
        Opt(
            "Edges to keep a word of the reference; 0: all",
            "Data",
            minimum=0,
            requires=("graphs",),
            details="Keeps the edges of the best derivations at the starting weights, N for each "
            "word of the shortest reference.",
        ),
    ] = 0
    init: Annotated[
        str | None,
        Opt(
            "Starting weights: a file, a run, or 'NAME=W NAME=W'",
            "Data",
            keyword="initial",
            metavar="FILE",
            exists="weights",
            default_text="those of the data, or equal",
            details="A file of any format, such as moses.ini or runN.dense, or FILE+SPARSE; or a "
            "working directory, whose result is meant. Without it, those that made the graphs, or "
            "the lists of the first iteration of --from; else equal weights.",
        ),
    ] = None
    sparse_init: Annotated[
        Path | None,
        Opt(
            "Starting weights of sparse features",
            "Data",
            keyword="sparse_initial",
            exists="path",
            requires=("init or graphs",),
            details="A name and a value a line.",
        ),
    ] = None
    metric: Annotated[
        str | None,
        same_as(
            RunPlan,
            "metric",
            help="BLEU, CDER, CER, CHRF, GLEU, MER, METEOR, PER, TER, TER-SACREBLEU, WER, or a sum",
            default_text="BLEU, or that of the run",
        ),
    ] = None
    report_metric: Annotated[
        tuple[str, ...],
        same_as(
            RunPlan,
            "report-metric",
            excludes=("graphs",),
            details="Scores of --scores that the metric does not use are reported, too. The "
            "report has the scores at the start and at the end, with tests of the difference.",
        ),
    ] = ()
    metric_settings: Annotated[str, same_as(RunPlan, "metric-settings")] = ""
    algorithm: Annotated[str, same_as(RunPlan, "algorithm", tune_default=None, details="")] = "mert"
    options: Annotated[Mapping[str, object], same_as(RunPlan, "option")] = field(
        default_factory=dict
    )
    active: Annotated[tuple[str, ...] | None, same_as(RunPlan, "active")] = None
    sparse_min_count: Annotated[int, same_as(RunPlan, "sparse-min-count")] = 0
    sparse_max: Annotated[int, same_as(RunPlan, "sparse-max")] = 0
    ranges: Annotated[tuple[StartRange, ...], same_as(RunPlan, "range", keyword="ranges")] = ()
    bounds: Annotated[
        tuple[Bound, ...],
        Opt(
            "Bounds of weights: LM:0..1, LM:>0, LM:=1",
            "Learning",
            name="bound",
            keyword="bounds",
            parse=parse_bounds,
            metavar="NAME:BOUND",
            details="MIN..MAX, MIN.., ..MAX, >X, >=X, <X, <=X or =X, of a feature or of all "
            "values of a group; or one bound for each value, with commas. The learned weights are "
            "inside. =X fixes a weight. mosesplug algorithms lists the algorithms that keep "
            "bounds.",
        ),
    ] = ()
    domains: Annotated[
        Path | None,
        same_as(
            RunPlan,
            "domains",
            excludes=("graphs", "bound", "length-exponent", "heldout-nbest"),
            details="A line for each source sentence. Each domain gets the shared weights plus "
            "its own deviations (feature augmentation, Daume 2007). OUTPUT has the shared "
            "weights, OUTPUT.LABEL those of a domain.",
        ),
    ] = None
    sentence_weights: Annotated[
        Path | SentenceWeights | None,
        same_as(RunPlan, "sentence-weights"),
    ] = None
    length_exponent: Annotated[
        LengthRange | None,
        Opt(
            "Divide scores by length**X; learn X of MIN:MAX",
            "Learning",
            parse=parse_length_range,
            metavar="[NAME,...:]MIN:MAX",
            excludes=("graphs", "shards"),
            details="The score is w.h / length**X, with the X of the best score on the lists. "
            "With names of features or groups, only these are divided; one number is a known X. "
            "The X is printed, and written to OUTPUT.length, which rerank reads.",
        ),
    ] = None
    length_by: Annotated[
        str,
        Opt(
            "Length of --length-exponent: words or a feature",
            "Learning",
            metavar="NAME",
            requires=("length-exponent",),
            details="A dense feature, such as the number of characters, whose values are above 0. "
            "It is not divided itself; --bound NAME:=0 keeps it out of the score.",
        ),
    ] = "words"
    score_budget: Annotated[
        int | None,
        same_as(
            RunPlan,
            "score-budget",
            help="Score at most N texts of a sentence",
            excludes=(
                *("graphs", "domains", "length-exponent", "scores", "monitor-nbest", "folds"),
            ),
            excludes_because="The budget scores what the learned weights choose from the lists to "
            "learn from. With the weights of a fold or a domain, or with divided scores, "
            "hypotheses without a score would be chosen; lists of monitors take no commands",
            details="For a --score-command that is too slow for all hypotheses: it scores at most "
            "N texts of each sentence. Half of them are chosen first: the 1-best of the starting "
            "weights, then those that win along an axis, then by rank. If the learned weights "
            "choose a hypothesis that is not scored, the command scores more of its sentence, and "
            "the weights are learned again. Hypotheses that are not scored do not take part. Of "
            "--heldout-nbest, what the starting and the learned weights choose is scored. The "
            "output says how many are scored.",
        ),
    ] = None
    seed: Annotated[int, same_as(RunPlan, "seed", default_text="", minimum=0, excludes=())] = 1
    held_out: Annotated[
        float | None,
        Opt(
            "Share of the sentences to hold out, as 0.2",
            "Held-out",
            metavar="SHARE",
            above=0.0,
            maximum=1.0,
            excludes=("heldout-nbest", "folds"),
        ),
    ] = None
    heldout_nbest: Annotated[
        tuple[Path, ...],
        Opt(
            "n-best lists of a held-out set; repeatable",
            "Held-out",
            keyword="heldout_lists",
            metavar="FILE",
            exists="path",
            requires=("heldout-refs or heldout-scores or score-command",),
            excludes=("graphs", "folds"),
        ),
    ] = ()
    monitor_nbest: Annotated[
        tuple[Monitor, ...],
        Opt(
            "Score n-best lists of another text, without selecting by them; repeatable",
            "Held-out",
            parse=partial(parse_monitors, option="monitor-nbest"),
            metavar="NAME=LIST,REFS",
            exists="monitor",
            excludes=("graphs", "domains", "scores", "add-feature", "templates", "score-command"),
            details="Reports the scores of LIST with the starting weights and with the result. It "
            "must have the features of the lists that weights are learned from.",
        ),
    ] = ()
    heldout_refs: Annotated[
        Path | None,
        Opt(
            "References of --heldout-nbest",
            "Held-out",
            keyword="heldout_references",
            exists="references",
            requires=("heldout-nbest",),
        ),
    ] = None
    heldout_scores: Annotated[
        tuple[ScoreSource, ...],
        Opt(
            "Scores of --heldout-nbest, as --scores",
            "Held-out",
            parse=partial(parse_score_sources, option="heldout-scores"),
            metavar="NAME=FILE",
            exists="scores",
            requires=("heldout-nbest",),
            details="The names of --scores; :error and formulas are those of --scores.",
        ),
    ] = ()
    heldout_add_feature: Annotated[
        tuple[AddedFeature, ...],
        Opt(
            "Values of --add-feature for --heldout-nbest",
            "Held-out",
            keyword="heldout_add_features",
            parse=partial(parse_added_features, option="heldout-add-feature"),
            metavar="NAME=FILE",
            exists="features",
            requires=("heldout-nbest",),
        ),
    ] = ()
    heldout_source: Annotated[
        Path | None,
        Opt(
            "Source sentences of --heldout-nbest, as --source",
            "Held-out",
            exists="path",
            requires=("heldout-nbest",),
        ),
    ] = None
    folds: Annotated[
        int | None,
        Opt(
            "Report a K-fold cross-validation first",
            "Held-out",
            metavar="K",
            minimum=2,
            details="It does not change the weights, which are learned from all sentences. With "
            "--runs, each fold is decided with weights selected from N runs on the other folds.",
        ),
    ] = None
    runs: Annotated[
        int | None,
        Opt(
            "Learn N times, with seeds S, S+1, ...",
            "Repeats",
            minimum=2,
            details="Prints how much the scores differ (Clark et al. 2011).",
        ),
    ] = None
    select: Annotated[
        SelectRun,
        Opt(
            "Weights: median, best-heldout or average",
            "Repeats",
            metavar="HOW",
            requires=("runs",),
            details="Those of the median run (of an even number the lower of the two in the "
            "middle), of the best run on held-out data, or the average of all runs. Runs are "
            "compared on held-out data if there is any.",
        ),
    ] = "median"
    threads: Annotated[
        int, same_as(RunPlan, "threads", default_text="all cores that the process may use")
    ] = usable_cores()
    sharding: Annotated[Sharding | None, Parts(Sharding)] = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.length_exponent is not None and self.select == "average":
            raise UsageError("{--select average} has no length exponent: use {--select median}")
        lengths = self.length_range
        if lengths is not None and lengths.by == WORDS and self.lists.transform is not None:
            raise UsageError(
                "{--length-exponent} divides by the words of the lists, which {--transform} "
                "changes: use {--derive} len=words {--length-by} len"
            )
        if self.graphs and self.lists.score_commands.commands:
            raise UsageError("{--score-command} scores texts, which {--graphs} does not have")
        if self.held_out == 1.0:
            raise UsageError("{--held-out} must be less than 1")

    @property
    def selection(self) -> FeatureSelection:
        """Which features are learned; those of ``drop_feature`` are not in the lists."""
        # Here and not above: it brings NumPy, which --help does not need.
        from mosesplug.optimizers.selection import FeatureSelection

        active = None if self.active is None else tuple(self.active)
        return FeatureSelection(active, (), self.sparse_min_count, self.sparse_max)

    @property
    def length_range(self) -> LengthRange | None:
        """The exponents of the length; None: scores are not divided."""
        if self.length_exponent is None:
            return None
        return replace(self.length_exponent, by=self.length_by)

    def check_data(self) -> None:
        """Check that the settings name data.

        Raises:
            UsageError: there is nothing to learn from, no reference, or nothing held out.
        """
        if self.select == "best-heldout" and not (self.held_out or self.heldout_nbest):
            raise UsageError("{--select best-heldout} requires {--held-out} or {--heldout-nbest}")
        if self.store is None and not (self.nbest or self.graphs):
            raise UsageError(
                "nothing to learn from: use {--nbest} FILE..., {--graphs} DIR... or {--from} STORE"
            )
        if self.store is None and self.references is None and self.needs_references:
            known = self.lists.score_names
            other = f" for {self.metric}, or a metric of {{--scores}}: {', '.join(known)}"
            raise UsageError(f"no reference is given: use {{--refs}} FILE{other if known else ''}")

    @property
    def needs_references(self) -> bool:
        """Whether the metric, or one of a sum of metrics, needs references.

        Metrics that other programs compute need none.

        Raises:
            UsageError: an unknown metric.
        """
        known = self.lists.score_names
        if self.metric is None:
            return not known
        # Here and not above: they load every metric, which --help does not need.
        from mosesplug.metrics import metric
        from mosesplug.metrics.outside import OutsideMetric
        from mosesplug.metrics.protocol import needs_references

        return needs_references(
            metric(self.metric, outside=[OutsideMetric(name) for name in known])
        )

    @property
    def init_file(self) -> Path | None:
        """The file of the starting weights; None without one, or if written out."""
        return next(iter(self.init_files), None)

    @property
    def init_files(self) -> tuple[Path, ...]:
        """The files of the starting weights, ``FILE`` or ``FILE+SPARSE``."""
        return () if self.init is None else find_weight_files(self.init)

    @property
    def input_paths(self) -> list[Path]:
        """The files and directories that are read, except references."""
        single = [self.store, *self.init_files, self.sparse_init, self.domains]
        single += [self.heldout_source]
        if isinstance(self.sentence_weights, Path):
            single.append(self.sentence_weights)
        if self.sharding is not None and self.sharding.directory is not None:
            single.append(Path(self.sharding.directory))
        files = [path for path in single if path is not None]
        values = [path for feature in self.heldout_add_feature for path in feature.paths]
        values += [path for source in self.heldout_scores for path in source.paths]
        own = [*self.lists.input_paths]
        own += [file for one in self.monitor_nbest for file in (one.input, one.references)]
        return [*self.nbest, *self.graphs, *self.heldout_nbest, *files, *own, *values]


def make_learning_settings(
    values: Mapping[str, Any],
    *,
    has_data: bool = True,
) -> LearningSettings:
    """Return the settings with the given values.

    Args:
        values: the values by name; those that are missing have their defaults.
        has_data: whether the settings must name the data; else the caller has them.

    Raises:
        UsageError: a value cannot be used, or settings exclude or require each other.
    """
    # Here and not above: it brings the metrics, which --help does not need.
    from mosesplug.settings.build import make_sharding

    check_settings(list_options(LearningSettings), values)
    sharding = make_sharding(values.get("algorithm", "mert"), values)
    settings = make_settings(LearningSettings, values, {("sharding",): sharding})
    if has_data:
        settings.check_data()
    return settings
