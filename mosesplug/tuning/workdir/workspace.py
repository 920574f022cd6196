"""The paths in a working directory, under the names of ``mert-moses.pl``."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import count, takewhile
from pathlib import Path

from mosesplug.decoders.protocol import WEIGHT_FILES
from mosesplug.decoders.run_files import GRAPH_FILE, RunFiles
from mosesplug.errors import DataError, DecoderError, UsageError
from mosesplug.settings.toml import SETTINGS_FILE
from mosesplug.store.files.replacement import remove_discarded, remove_store
from mosesplug.tuning.workdir.lock import lock_directory

# Temporary files of ``formats.text.atomic_write``, left if its process is killed.
_UNFINISHED = re.compile(
    r"\.(run\d+\..+|text\..+|(forced|domain)\..+|((shard|worker)\d+\.)?server\d+\.moses\.ini"
    r"|features\.list.*|filtered\..+|finished_step\.txt|moses\.ini"
    r"|moses\.sparse-weights|settings\.toml|start\.weights|references\d+|summary\.json|weights\.(dense|json|line))\.\d+\.[0-9a-f]{8}"
)
_RUN_FILE = re.compile(r"run\d+\..+")
# Input and output of decoders of mini-batches and of the held-out set.
_ASKED_TEXT = re.compile(r"text\.[0-9a-f]{16}\..+")
_SCRATCH = re.compile(
    rf"{_ASKED_TEXT.pattern}|domain\..+|forced\.(moses\.ini|references\d+)"
    r"|((batch|compared|heldout|(shard|worker)\d+)\.(in|nbest|out)"
    r"|(batch|compared|heldout|(shard|worker)\d+|((shard|worker)\d+\.)?server\d+)"
    r"\.(err|sparse-weights)|((shard|worker)\d+\.)?server\d+\.moses\.ini)"
)
# Files that exist before the first iteration.
_BEFORE = re.compile(
    r"(features\.list|cache-model)(\..+)?|tuning\.lock|settings\.toml|start\.weights|references\d+"
)
_SEVERAL = re.compile(r"runs\.json")
_SHARD = re.compile(r"shard\.\d+")


class Workspace(RunFiles):
    """Paths in a working directory; decoders know those of ``RunFiles``."""

    @property
    def store(self) -> Path:
        """The n-best store."""
        return self.directory / "nbests.lmdb"

    def remove_asked_texts(self) -> None:
        """Remove the files of texts that ask and tell have translated."""
        for path in self.directory.glob("text.*"):
            if _ASKED_TEXT.fullmatch(path.name):
                path.unlink()

    def shard(self, number: int) -> Path:
        """Return the directory of an online shard, counted from 1."""
        return self.directory / f"shard.{number}"

    @property
    def shard_stores(self) -> Iterator[Path]:
        """The stores of online shards, which have the lists of a run in shards."""
        paths = (self.shard(number) / self.store.name for number in count(1))
        return takewhile(Path.is_dir, paths)

    @property
    def finished_step(self) -> Path:
        """The number of the last finished iteration."""
        return self.directory / "finished_step.txt"

    @property
    def tuned_config(self) -> Path:
        """The configuration with the resulting weights."""
        return self.directory / "moses.ini"

    @property
    def results(self) -> tuple[Path, ...]:
        """The file with the resulting weights, in all formats that it may have."""
        return tuple(self.directory / name for name in WEIGHT_FILES.values())

    @property
    def tuned_sparse(self) -> Path:
        """Sparse weights of the result, if no iteration was decoded with them."""
        return self.directory / "moses.sparse-weights"

    @property
    def summary(self) -> Path:
        """The figures of the run, for programs."""
        return self.directory / "summary.json"

    @property
    def start_weights(self) -> Path:
        """Features and starting weights, if they were given as values."""
        return self.directory / "start.weights"

    def references(self, number: int) -> Path:
        """Return a file of references that were given as texts, counted from 0."""
        return self.directory / f"references{number}"

    @property
    def settings(self) -> Path:
        """The complete settings of the run, from which it can be repeated."""
        return self.directory / SETTINGS_FILE

    @property
    def scores(self) -> Path:
        """The scores of commands, which outlive the run."""
        return self.directory / "scores"

    @property
    def templates(self) -> Path:
        """Copies of the ``moses.ini`` with templates, each in a directory of its own."""
        return self.directory / "templates"

    def replaces(self, path: Path) -> bool:
        """Return whether a run in this directory would overwrite or remove a file."""
        places = (path.parent.resolve() / path.name, path.resolve())
        results = {self.features_list.name, *(result.name for result in self._results)}
        graphs = self.graphs.resolve()
        return any(
            (place.parent == graphs and GRAPH_FILE.fullmatch(place.name) is not None)
            or (
                place.parent == self.directory.resolve()
                and (
                    place.name in results
                    or _RUN_FILE.fullmatch(place.name) is not None
                    or _SCRATCH.fullmatch(place.name) is not None
                )
            )
            for place in places
        )

    @property
    def _results(self) -> tuple[Path, ...]:
        """Files of the run as a whole."""
        return (
            self.finished_step,
            *self.results,
            self.tuned_sparse,
            self.summary,
            self.settings,
        )

    def reject_links(self, *, replacing: bool) -> None:
        """Reject links in the place of files that a run writes.

        A list or search graphs of the first iteration may be links, since a run may begin with
        those that are there.

        Args:
            replacing: whether ``clear`` is called next, which removes links of its own accord.

        Raises:
            DataError: there is such a link.
        """
        allowed = {self.packed_nbest(1), self.run(1, "out")}
        for path in self._own_files():
            is_cleared = path in self._results or _RUN_FILE.fullmatch(path.name) is not None
            if path.is_symlink() and path not in allowed and not (replacing and is_cleared):
                raise DataError(
                    f"{path} is a link, and a run in this directory would change the file that it"
                    " leads to. Put a copy of that file in its place, or choose another"
                    " {--working-dir}"
                )

    def _reject_pipes(self) -> None:
        """Reject pipes and devices in the place of files that a run reads or writes."""
        for path in self._own_files():
            if path.exists() and not path.is_file() and not path.is_dir():
                raise DataError(
                    f"{path} is not a regular file, and a run in this directory would read or"
                    " write it. Remove it, or choose another {--working-dir}"
                )

    def _own_files(self) -> Iterator[Path]:
        """Yield the paths in the directory that have names of files of a run."""
        results = {path.name for path in self._results}
        for path in sorted(self.directory.iterdir()):
            patterns = (_RUN_FILE, _SCRATCH, _BEFORE, _SEVERAL)
            if path.name in results or any(pattern.fullmatch(path.name) for pattern in patterns):
                yield path

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Create and lock the directory, and remove temporary files of a killed run.

        If the block raises an error before the first iteration, a directory that was empty or
        missing is so again; but the messages of a decoder that failed stay.

        Raises:
            DataError: another run has locked it, or a pipe is in the place of a file.
            UsageError: the path is a file.
        """
        made = [path for path in (self.directory, *self.directory.parents) if not path.exists()]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(
                f"{self.directory} is a file, not a directory. Choose another {{--working-dir}}"
            ) from error
        was_empty = not any(self.directory.iterdir())
        with lock_directory(self.directory / "tuning.lock"):
            remove_discarded(self.store)
            for path in self.directory.glob(".*"):
                if _UNFINISHED.fullmatch(path.name):
                    path.unlink()
            try:
                self._reject_pipes()
                yield
            except Exception as error:
                begun = any(self.directory.glob("run*")) or self.filtered_model.exists()
                if was_empty and not begun and not isinstance(error, DecoderError):
                    self._withdraw(made)
                raise

    def _withdraw(self, made: Sequence[Path]) -> None:
        """Remove files from before the first iteration, and new directories ``made``."""
        remove_store(self.store)
        shutil.rmtree(self.templates, ignore_errors=True)
        for path in self.directory.iterdir():
            if _BEFORE.fullmatch(path.name) or _SCRATCH.fullmatch(path.name):
                path.unlink()
        with contextlib.suppress(OSError):  # files of others stay
            for path in made:
                path.rmdir()

    def clear(self, *, keep_list: bool) -> None:
        """Remove the results of an earlier run; cached features and filtered models stay.

        If this is killed, the earlier run can still be continued, or is gone for the next call.

        Args:
            keep_list: keep the n-best list or search graphs of the first iteration, too.
        """
        # Remove links, but never their targets, which belong to somebody else.
        kept = {self.packed_nbest(1), self.run(1, "out")} if keep_list else set()
        for path in self.directory.iterdir():
            if not _SHARD.fullmatch(path.name):
                continue
            if path.is_symlink():
                path.unlink()
            elif path.is_dir():
                remove_store(path / self.store.name)
                with contextlib.suppress(OSError):  # files of others stay
                    path.rmdir()
        self.finished_step.unlink(missing_ok=True)
        remove_store(self.store)
        if not keep_list:
            self.remove_graphs()
        for path in self.directory.iterdir():
            if _RUN_FILE.fullmatch(path.name) and path not in kept:
                path.unlink()
        for path in self._results:
            path.unlink(missing_ok=True)
