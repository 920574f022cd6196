"""Find translations of the tuning set in the working directories of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from formats.errors import FormatError
from formats.weights.any_format import read_weights
from mosesplug.arrays import SentenceValues
from mosesplug.errors import DataError
from mosesplug.results.scores.scores import Translation
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.repeats.files import find_run_directories
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import read_decoding_weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.summary import StoredSummary
from mosesplug.tuning.workdir.workspace import Workspace

_SAME = 1e-5
"""Weights that change less count as unchanged where runs stop; files have six digits."""


@dataclass(frozen=True)
class RunDecoding:
    """A translation of the tuning set of one run.

    Attributes:
        note: what a reader of its score must know; empty if it has the weights of the result.
        has_result: whether the run has a result, which ``decode`` decodes with.
        sentence_weights: the weight of each sentence in the run; None: 1 each.
    """

    translation: Translation
    note: str = ""
    has_result: bool = True
    sentence_weights: SentenceValues | None = None


@dataclass(frozen=True)
class _Run:
    """The weights that a run decoded with, and its result.

    Attributes:
        decoded_with: the weights that each iteration was decoded with.
        result: the weights of the result; None if the run is not finished.
        chosen: the iteration that the summary says was decoded with the result; 0 if none.
    """

    workspace: Workspace
    decoded_with: Sequence[Weights]
    result: Weights | None
    chosen: int = 0


def find_decodings(directory: Path, *, decode: bool = False) -> list[RunDecoding]:
    """Return translations of the tuning set, one of each run in a working directory.

    They are those that were decoded with the weights of the result, in whichever iteration. If
    there are none, they are those of the last decoding, with a note.

    Args:
        directory: a working directory, of mosesplug or of mert-moses.pl. It may hold several runs.
        decode: decode the tuning set with the weights of the result where nothing else was.

    Raises:
        DataError: the directory holds no translations of the tuning set.
        UsageError, DecoderError: as for ``decode_tuning_set``.
    """
    return [
        replace(_find_decoding(run, decode), sentence_weights=_read_sentence_weights(run))
        for run in find_run_directories(directory) or (directory,)
    ]


def _read_sentence_weights(directory: Path) -> SentenceValues | None:
    path = Workspace(directory, 0).store
    if not (path / "data.mdb").exists():
        return None
    with NBestStore.open(path) as store:
        return store.sentence_weights


def _find_decoding(directory: Path, decode: bool) -> RunDecoding:
    run = _read_run(directory)
    if (iteration := _find_equal(run)) and (
        translation := _read_output(run, iteration)
    ) is not None:
        return RunDecoding(translation)
    if decode:
        if run.result is None:
            raise DataError(f"{{--decode}}: the run in {directory} has no result yet")
        # The tuning loop, which scores of files do not need, takes a tenth of a second to import.
        from mosesplug.tuning.decode_result import decode_tuning_set

        return RunDecoding(decode_tuning_set(directory, run.result))
    for iteration in range(len(run.decoded_with), 0, -1):
        translation = _read_output(run, iteration)
        if translation is not None:
            why = "is not finished" if run.result is None else "was not decoded with its result"
            which = " with the starting weights" if iteration == 1 else ""
            note = f"the run in {directory} {why}: this compares its iteration {iteration}{which}"
            return RunDecoding(translation, note, run.result is not None)
    raise DataError(
        f"{directory} has no translations of its tuning set, such as run1.out: make them with "
        "{--decode}, or name files of translations"
    )


def _read_run(directory: Path) -> _Run:
    """Read the weights of a run.

    Raises:
        DataError: it is no working directory, or a file in it is damaged.
        FormatError, StoreError: a file or the store cannot be read.
    """
    workspace = Workspace(directory, 0)
    if (workspace.store / "data.mdb").exists():
        with NBestStore.open(workspace.store) as store:
            decoded_with = [read_start(record).weights for record in store.iterations()]
        if not workspace.summary.is_file() or not decoded_with:
            return _Run(workspace, decoded_with, None)
        summary = StoredSummary.read(workspace.summary)
        _, result = summary.weights(len(decoded_with[0].dense))
        return _Run(workspace, decoded_with, result, summary.decoded_in_iteration or 0)
    files: list[Weights] = []
    while (file := read_decoding_weights(workspace, len(files) + 1)) is not None:
        files.append(Weights.of_file(file))
    if not files:
        raise DataError(
            f"{directory} is not the working directory of a run: name files of translations instead"
        )
    return _Run(workspace, files, _read_tuned(workspace, files[0]))


def _read_tuned(workspace: Workspace, like: Weights) -> Weights | None:
    """Return the weights of mert-moses.pl's ``moses.ini`` in the order of its lists."""
    names = read_weights(workspace.run(1, "dense"), ("dense",)).show.names
    if not workspace.tuned_config.is_file():
        return None
    tuned = read_weights(workspace.tuned_config)
    groups = {name: list(values) for name, values in tuned.groups.items()}
    try:
        dense = tuple(groups[name].pop(0) for name in names)
    except (KeyError, IndexError):
        raise FormatError(
            "the features are not those of run1.dense", path=str(workspace.tuned_config)
        ) from None
    return Weights(dense, tuned.all_sparse)


def _find_equal(run: _Run) -> int:
    """Return the last iteration decoded with the weights of the result, or 0."""
    if run.result is None:
        return 0
    places = range(len(run.decoded_with), 0, -1)
    equal = (i for i in places if run.decoded_with[i - 1].has_direction(run.result, _SAME))
    return run.chosen or next(equal, 0)


def _read_output(run: _Run, iteration: int) -> Translation | None:
    """Return ``runN.out``, or the first of each list in the store, or None."""
    path = run.workspace.run(iteration, "out")
    if path.is_file():
        return path
    if not (run.workspace.store / "data.mdb").exists():
        return None
    with NBestStore.open(run.workspace.store) as store:
        record = store.iterations()[iteration - 1]
        if not record.n_lists:
            return None
        return _read_first_best(store, record)


def _read_first_best(store: NBestStore, record: IterationRecord) -> list[bytes]:
    lines = []
    for sentence in range(record.n_sentences):
        texts = store.hypotheses(sentence, record.iteration)
        lines.append(texts[0] if texts else b"")
    return lines
