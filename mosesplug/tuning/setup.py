"""Prepare a run: check settings and data; collect what iterations share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from formats.errors import FormatError, quote
from formats.moses.ini import read_moses_ini
from formats.nbest.block import NBestList
from formats.references import reference_files
from formats.text import read_lines, require_regular_file
from formats.weights.any_format import read_weights
from formats.weights.files import ShowWeights, read_sparse
from formats.weights.named import read_named_weights
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.prepare import prepare_config
from mosesplug.decoders.protocol import Decoder, DecodingTask
from mosesplug.errors import OptionName, UsageError
from mosesplug.events import Note, Watcher, watch_scoring
from mosesplug.features import FeatureSpace
from mosesplug.learning.lengths import require_undivided
from mosesplug.metrics.scored import require_scorer
from mosesplug.optimizers import Algorithm, Optimizer, algorithms
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.optimizers.recommended import ONLINE
from mosesplug.settings.algorithm_options import find_idle_options, make_options
from mosesplug.settings.build import collect_values
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.optimizer import OptimizerSettings
from mosesplug.settings.sentences.domains import read_domains
from mosesplug.settings.sentences.weights import describe_weights, read_sentence_weights
from mosesplug.settings.toml import write_settings
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.tuning.context import Context, learns_from_graphs
from mosesplug.tuning.domains import DomainDecoder, DomainLearning
from mosesplug.tuning.graphs.forest import open_graph_decoder, use_own_graphs
from mosesplug.tuning.graphs.learning import check_graphs, read_fixed_weights
from mosesplug.tuning.guarding import guard_input
from mosesplug.tuning.heldout import open_held_out_scorer
from mosesplug.tuning.online.decoder import check_online
from mosesplug.tuning.online.discarding import discard_lists
from mosesplug.tuning.online.state import forget_earlier_states
from mosesplug.tuning.parallel.shards import split_into_shards
from mosesplug.tuning.references import read_run_references
from mosesplug.tuning.reporting import Reporter
from mosesplug.tuning.resume import (
    EarlierRun,
    adopt_files,
    choose_seed,
    drop_unrecorded_epoch,
    find_unstored_iterations,
    report_changed_settings,
)
from mosesplug.tuning.scoring_ahead import AheadScorer
from mosesplug.tuning.selection import check_patterns, check_selection
from mosesplug.tuning.templates import check_functions
from mosesplug.tuning.weights import Weights, arrange_ranges
from mosesplug.tuning.workdir.iteration_files import result_path, writes_moses_ini
from mosesplug.tuning.workdir.records import REPORTED
from mosesplug.tuning.workdir.workspace import Workspace

_CONFUSION_NETWORK = 1
"""The input type that takes many lines a sentence."""


def _find_starting_weights(show: ShowWeights, configuration: Configuration) -> Weights:
    """Return the starting weights.

    Dense ones are the decoder's, or those of a former run. Sparse weights come from the
    ``weight-file`` in the configuration, or in the former run's result, and on top of them those of
    the file that is given.

    Args:
        configuration: names the files. Relative names in a ``moses.ini`` count from the decoder's
            current directory.

    Raises:
        FormatError: a file cannot be read.
        UsageError: all weights are 0, which ranks nothing; or the former run is not finished, or
            had other features.
    """
    config, dense = configuration.config, show.values
    if configuration.start_from is not None:
        config = result_path(configuration, Workspace(configuration.start_from, 0))
        dense = _read_former_weights(show, config)
    sparse: dict[str, float] = {}
    if writes_moses_ini(configuration):
        _reject_sparse_weights(configuration.config, show)
        for value in read_moses_ini(config).section("weight-file"):
            sparse |= read_sparse(
                require_regular_file(configuration.working_directory / value.text)
            )
    else:
        sparse |= read_named_weights(config).all_sparse
    if configuration.sparse_weights is not None:
        sparse |= read_sparse(configuration.sparse_weights)
    if not any(dense):
        raise UsageError(f"all weights in {config} are 0: give starting weights in [weight]")
    return Weights(dense, sparse)


def _reject_sparse_weights(config: Path, show: ShowWeights) -> None:
    """Reject sparse weights in ``[weight]``.

    Moses prefers them to those of ``-weight-file``.

    Raises:
        FormatError: there is one.
    """
    for value in read_moses_ini(config).section("weight"):
        name = value.text.split()[0].removesuffix("=")
        if name.partition("_")[0] in show.sparse and "_" in name:
            raise FormatError(
                f"the sparse weight {quote(name)} in [weight] would stay in force while the run"
                " learns another",
                path=config,
                line=value.line,
                remedy=f"Move it as `{name} VALUE` to a file that [weight-file] names",
            )


def _read_former_weights(show: ShowWeights, config: Path) -> tuple[float, ...]:
    if not config.is_file():
        raise UsageError(f"there is no finished run to start from: {config} is missing")
    file = None if config.suffix == ".ini" else read_weights(config)
    weights = read_moses_ini(config).weights if file is None else file.groups
    former: list[float] = []
    for group in show.groups:
        values = weights.get(group.name, ())
        if group.is_tuneable and len(values) != len(group.values):
            raise UsageError(
                f"{config} has {len(values)} weights of {group.name}, the decoder has"
                f" {len(group.values)}: a run can only start from one with the same features"
            )
        pairs = zip(group.values, values, strict=False)
        former += [value for announced, value in pairs if announced is not None]
    return tuple(former)


def check_names(optimization: OptimizerSettings, show: ShowWeights) -> None:
    """Check the names of features in the settings, before hours of decoding.

    Raises:
        UsageError: a setting names an unknown feature.
    """
    space = FeatureSpace.of_names(show.names)
    arrange_ranges(optimization.ranges, space.group_names)
    check_selection(optimization.selection, show)


def check_outputs(configuration: Configuration, workspace: Workspace) -> None:
    """Check that the run does not overwrite its input.

    Raises:
        UsageError: a file is both input and output.
    """
    files = [configuration.config]
    if configuration.input is not None:
        files.append(configuration.input)
    files += reference_files(configuration.references)
    if configuration.sparse_weights is not None:
        files.append(configuration.sparse_weights)
    held_out = configuration.held_out
    for scored in (*((held_out,) if held_out else ()), *configuration.monitors):
        files += [scored.input, *reference_files(scored.references)]
    for path in files:
        if workspace.replaces(path):
            raise UsageError(
                f"{path} is both an input and an output of the run in {workspace.directory}."
                " Choose another {--working-dir}, or copy that file elsewhere"
            )


def check_run(configuration: Configuration) -> tuple[Algorithm, Optimizer]:
    """Check what settings alone tell, without reading data or calling the decoder.

    Returns:
        The algorithm, and the algorithm with its settings.

    Raises:
        UsageError: settings exclude each other, or the algorithm or the decoder does not support
            them.
    """
    optimization = configuration.optimization
    if optimization.seed is not None and optimization.seed < 0:
        raise UsageError(f"the seed must not be negative, as {optimization.seed} is")
    algorithm = find_algorithm(optimization.algorithm)
    optimizer = algorithm.bind(make_options(algorithm, optimization.options))
    _check_regime(configuration, algorithm)
    check_functions(configuration)
    if not learns_from_graphs(configuration, algorithm):
        optimizer.require_lists()
    optimizer.require_source(is_known=configuration.source_text is not None)
    if configuration.sentence_weights is not None:
        optimizer.require_sentence_weights()
    if (selection := optimization.selection).counts:
        algorithm.require_sparse(selection.count_options, selection)
    require_scorer(configuration.metric, configuration.score_budget)
    return algorithm, optimizer


@contextmanager
def prepare_run(
    configuration: Configuration, workspace: Workspace, earlier: EarlierRun, watch: Watcher
) -> Iterator[Context]:
    """Check settings and data, replace an earlier run, and open the store.

    Args:
        earlier: whether an earlier run there is continued or replaced.

    Raises:
        UsageError, DataError, DecoderError, StoreMismatch, FormatError: as ``tune``.
    """
    optimization = configuration.optimization
    algorithm, optimizer = check_run(configuration)
    _report_idle_settings(optimization, optimizer, watch)
    prefix = configuration.references
    lines = read_run_references(configuration, _input_lines(configuration))
    guard_input(configuration, lines, watch)
    references = configuration.metric.prepare(lines)
    sentence_weights, n_learned = None, references.n_sentences
    if configuration.sentence_weights is not None:
        sentence_weights = read_sentence_weights(configuration.sentence_weights)
        sentence_weights.check_count(references.n_sentences)
        n_learned = len(sentence_weights.positive)
        watch(Note(f"the tuning set has {describe_weights(sentence_weights.values)}"))
    # Reject unusable settings and too many shards before anything is decoded or replaced.
    if optimizer.is_online:
        optimizer.learner()
    if optimization.sharding is not None and not optimization.sharding.asynchronous:
        split_into_shards(np.arange(n_learned), optimization.sharding.shards, 0)
    decoding, description = configuration.decoding, configuration.decoding.decoder
    config = prepare_config(
        configuration.config,
        workspace,
        watch,
        filtering=decoding.filtering,
        cache=decoding.cache,
        queue=description.work_queue,
    )
    reporter = Reporter.prepare(
        configuration.report_metrics,
        lines,
        sentence_weights=None if sentence_weights is None else sentence_weights.values,
        threads=optimization.threads,
    )
    reported = [metric for metric, _ in reporter.metrics.values()]
    ahead = AheadScorer(configuration.metric, references, reported)
    task = make_task(
        configuration,
        workspace,
        config,
        references.n_sentences,
        watch,
        lines,
        ahead.add if ahead.is_needed else None,
    )
    decoder: Decoder
    if description.stored_graphs is not None:
        decoder = open_graph_decoder(description.stored_graphs, task, configuration, references)
    else:
        if description.reads_weight_file:
            require_undivided(read_weights(config), "a decoder")
        decoder = description.open(task)
    domains = None
    if configuration.domains is not None:
        labels = read_domains(configuration.domains)
        labels.check_count(references.n_sentences)
        decoder = DomainDecoder(decoder.features, task, decoder, labels)
        domains = DomainLearning(labels, algorithm.tunes_sparse)
    show = decoder.features
    check_names(optimization, show)
    if isinstance(description, MosesDecoder) and (text := configuration.source_text) is not None:
        check_patterns(
            optimization.selection,
            show,
            config,
            description.flags,
            workspace.directory,
            read_lines(text),
        )
    start = _find_starting_weights(show, configuration)
    held_out = open_held_out_scorer(configuration, config, show, watch)
    if earlier == "replaced":
        watch(
            Note(
                f"replacing the earlier run in {workspace.directory} ({{--continue}} resumes"
                " it instead)",
                is_warning=True,
            )
        )
    # Only now, when nothing else can be wrong with the call, the earlier run goes.
    if earlier != "continued":
        workspace.clear(keep_list=configuration.skip_decoder)
    source = configuration.input
    with NBestStore.open(workspace.store, writable=True) as store, watch_scoring(watch):
        store.require(
            {
                **({} if source is None else {"input": fingerprint_files([source])}),
                "references": fingerprint_files(reference_files(prefix)),
                "configuration": fingerprint_files([configuration.config]),
                # The best is selected among scores of one metric.
                "metric": references.signature,
                # Scores under one name belong to one text.
                **{
                    f"monitor {monitor.name}": fingerprint_files(
                        [monitor.input, *reference_files(monitor.references)]
                    )
                    for monitor in configuration.monitors
                },
                **{
                    f"{REPORTED}{name}": signature
                    for name, signature in reporter.signatures.items()
                },
            }
        )
        context = Context(
            configuration,
            show,
            start,
            references,
            seed=choose_seed(configuration, store),
            fixed_weights=read_fixed_weights(configuration, config, algorithm),
            domains=domains,
            sentence_weights=sentence_weights,
            workspace=workspace,
            config=config,
            store=store,
            watch=watch,
            decoder=use_own_graphs(decoder, task, configuration, store, workspace.store),
            optimizer=optimizer,
            held_out=held_out,
            ahead=ahead,
            reporter=reporter,
        )
        if unstored := find_unstored_iterations(workspace, store):
            adopt_files(context, unstored)
        report_changed_settings(context)
        if sentence_weights is not None:
            store.keep_sentence_weights(sentence_weights.values)
        # With the seed that was drawn: the file must repeat this very run.
        write_settings(workspace.settings, collect_values(configuration, context.seed))
        drop_unrecorded_epoch(store)
        forget_earlier_states(store)
        discard_lists(context)
        try:
            yield context
        finally:
            context.decoder.close()


def make_task(
    configuration: Configuration,
    workspace: Workspace,
    config: Path,
    n_sentences: int,
    watch: Watcher,
    references: Sequence[Sequence[bytes]] | None = None,
    parsed: Callable[[Sequence[NBestList]], None] | None = None,
) -> DecodingTask:
    """Return what a decoder must know of a run.

    Args:
        config: the ``moses.ini``, or file of weights, to decode with.
        parsed: see ``DecodingTask``.
    """
    decoding = configuration.decoding
    return DecodingTask(
        configuration.input,
        config,
        workspace,
        decoding.nbest,
        n_sentences,
        watch,
        configuration.online or OnlineSettings(),
        transform=decoding.transform,
        samples=decoding.lattice_samples,
        references=references if decoding.forced else None,
        keeps_first_weights=decoding.config_weights_first,
        parsed=parsed,
    )


def _check_regime(configuration: Configuration, algorithm: Algorithm) -> None:
    """Reject settings that exclude each other, or that the algorithm does not support."""
    if configuration.select == "best-heldout" and configuration.held_out is None:
        raise UsageError("the best weights on held-out text need such text: give {--heldout}, too")
    check_graphs(configuration, algorithm)
    decoding = configuration.decoding
    capabilities = decoding.decoder.capabilities
    if decoding.forced and "forced decoding" not in capabilities:
        raise UsageError("{--forced-decoding} requires a decoder that is called as Moses is")
    if configuration.domains is not None:
        if "domains" not in capabilities:
            raise UsageError("{--domains} requires a decoder that is called as Moses is")
        if decoding.decoder.input_type == _CONFUSION_NETWORK:
            raise UsageError(
                "{--domains} cannot split confusion networks: leave one of the two out"
            )
    if configuration.online is None:
        return
    if algorithm.learner is None:
        online_learners = sorted(
            learner.name for learner in algorithms().values() if learner.learner
        )
        raise UsageError(
            f"{algorithm.name} learns from all lists at once, so it cannot learn while decoding:"
            f" leave out {{--online}}, or take {ONLINE} (recommended) or another of"
            f" {', '.join(name for name in online_learners if name != ONLINE)}"
        )
    check_online(configuration, configuration.online)


def _report_idle_settings(
    optimization: OptimizerSettings, optimizer: Optimizer, watch: Watcher
) -> None:
    """Warn of settings that have no effect."""
    for message in find_idle_options(optimizer, optimization.options):
        watch(Note(message, is_warning=True))
    if optimizer.algorithm.restarts:
        return
    idle = {"range": bool(optimization.ranges), "historic-bests": optimization.historic_bests}
    for name in (name for name, is_set in idle.items() if is_set):
        watch(
            Note(
                f"{OptionName(name)} is for algorithms that start from several points;"
                f" {optimizer.name} starts from one",
                is_warning=True,
            )
        )


def _input_lines(configuration: Configuration) -> int | None:
    """Return the number of source sentences; None without one sentence per line."""
    source = configuration.input
    if source is None or configuration.decoding.decoder.input_type == _CONFUSION_NETWORK:
        return None
    return len(read_lines(source))
