"""The working directory: which file lies where, under the names of ``mert-moses.pl``."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mosesplug.errors import DecoderError, UsageError
from mosesplug.settings.toml import SETTINGS_FILE
from mosesplug.tuning.workdir.lock import lock_directory

__all__ = ["Workspace", "remove_tree"]

# What ``formats.text.atomic_write`` leaves when its process is killed.
_UNFINISHED = re.compile(
    r"\.(run\d+\..+|features\.list.*|filtered\..+|finished_step\.txt|moses\.ini"
    r"|moses\.sparse-weights|settings\.toml|summary\.json)\.\d+\.[0-9a-f]{8}"
)
_RUN_FILE = re.compile(r"run\d+\..+")
# What decoders of batches and of held-out text are given, and write.
_SCRATCH = re.compile(
    r"((batch|compared|heldout|(shard|worker)\d+)\.(in|nbest|out)"
    r"|(batch|compared|heldout|(shard|worker)\d+|((shard|worker)\d+\.)?server\d+)"
    r"\.(err|sparse-weights))"
)
# What there is before the first iteration.
_BEFORE = re.compile(r"(features\.list|cache-model)(\..+)?|tuning\.lock|settings\.toml")
_SHARD = re.compile(r"shard\.\d+")
# What decoders write into a directory of search graphs, and leave unfinished when they are killed.
_GRAPH_FILE = re.compile(r"\d+(\.(txt|gz|bz2))?|weights|\.(\d+\.|weights\.).+")


@dataclass(frozen=True)
class Workspace:
    """Paths in a working directory.

    Attributes:
        directory: absolute path.
        nbest_size: length of the n-best lists, part of their file names.
    """

    directory: Path
    nbest_size: int

    def run(self, iteration: int, what: str) -> Path:
        """A file of one iteration, as ``run3.dense``."""
        return self.directory / f"run{iteration}.{what}"

    def nbest(self, iteration: int) -> Path:
        """The n-best list as the decoder writes it; compressed, it has ``.gz`` behind."""
        return self.run(iteration, f"best{self.nbest_size}.out")

    def nbest_packed(self, iteration: int) -> Path:
        """The n-best list as it is kept."""
        return self.run(iteration, f"best{self.nbest_size}.out.gz")

    @property
    def graphs(self) -> Path:
        """Directory of the search graphs that were decoded last, as ``mert-moses.pl`` has it."""
        return self.directory / "hypergraph"

    def remove_graphs(self) -> None:
        """Remove them; what others put into their directory stays, or what a link leads to."""
        if self.graphs.is_symlink():
            self.graphs.unlink()
        if not self.graphs.is_dir():
            return
        for path in self.graphs.iterdir():
            if _GRAPH_FILE.fullmatch(path.name):
                path.unlink()
        with contextlib.suppress(OSError):
            self.graphs.rmdir()

    def samples(self, iteration: int, size: int) -> Path:
        """Samples of the search lattice, in the format of n-best lists."""
        return self.run(iteration, f"lsamp{size}.out")

    @property
    def features_list(self) -> Path:
        """The decoder's answer to ``-show-weights``."""
        return self.directory / "features.list"

    @property
    def filtered(self) -> Path:
        """Directory of the filtered model."""
        return self.directory / "filtered"

    @property
    def store(self) -> Path:
        """The n-best store."""
        return self.directory / "nbests.lmdb"

    def shard(self, number: int) -> Path:
        """Directory of a shard, counted from 1, that learns while decoding."""
        return self.directory / f"shard.{number}"

    @property
    def finished_step(self) -> Path:
        """Holds the number of the last finished iteration."""
        return self.directory / "finished_step.txt"

    @property
    def tuned_config(self) -> Path:
        """The result."""
        return self.directory / "moses.ini"

    @property
    def tuned_sparse(self) -> Path:
        """Sparse weights of the result, where no iteration was decoded with them."""
        return self.directory / "moses.sparse-weights"

    @property
    def summary(self) -> Path:
        """The table of iterations for programs."""
        return self.directory / "summary.json"

    @property
    def settings(self) -> Path:
        """The complete settings of the run, from which it can be repeated."""
        return self.directory / SETTINGS_FILE

    def replaces(self, path: Path) -> bool:
        """Whether a run here would write over this file, or clear it away."""
        places = (path.parent.resolve() / path.name, path.resolve())
        results = {self.features_list.name, *(result.name for result in self._results)}
        graphs = self.graphs.resolve()
        return any(
            (place.parent == graphs and _GRAPH_FILE.fullmatch(place.name) is not None)
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
            self.tuned_config,
            self.tuned_sparse,
            self.summary,
            self.settings,
        )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory, hold it against a second run, sweep up after one that was killed.

        If what is done in it is refused before the first iteration begins, the directory is as it
        was where it was empty or not there. What a decoder that failed has said stays.

        Raises:
            DataError: another run holds it.
            UsageError: there is a file in its place.
        """
        made = [path for path in (self.directory, *self.directory.parents) if not path.exists()]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(
                f"{self.directory} is no directory, and cannot be made one where a file is: name"
                " another --working-dir"
            ) from error
        was_empty = not any(self.directory.iterdir())
        with lock_directory(self.directory / "tuning.lock"):
            self._remove_discarded()
            for path in self.directory.glob(".*"):
                if _UNFINISHED.fullmatch(path.name):
                    path.unlink()
            try:
                yield
            except Exception as error:
                begun = any(self.directory.glob("run*")) or self.filtered.exists()
                if was_empty and not begun and not isinstance(error, DecoderError):
                    self._withdraw(made)
                raise

    def _withdraw(self, made: Sequence[Path]) -> None:
        """Remove what was written before the first iteration, and directories if they are empty.

        Args:
            made: directories that were made for it, the innermost first.
        """
        if self.store.is_dir():
            shutil.rmtree(self.store)
        for path in self.directory.iterdir():
            if _BEFORE.fullmatch(path.name) or _SCRATCH.fullmatch(path.name):
                path.unlink()
        with contextlib.suppress(OSError):  # what others put there stays
            for path in made:
                path.rmdir()

    def clear(self, *, keep_list: bool) -> None:
        """Remove the results of an earlier run; cached features and filtered models stay.

        A run that is killed here leaves one that can be continued, or none: before what tells of it
        is gone, everything that continuing needs is there; after that, another call does the rest.

        Args:
            keep_list: whether the first iteration's n-best list, or search graphs, stay too.
        """
        # Links go, and never what they lead to: somebody may have put it there to keep it.
        kept = {self.nbest_packed(1), self.run(1, "out")} if keep_list else set()
        for path in self.directory.iterdir():
            if not _SHARD.fullmatch(path.name):
                continue
            if path.is_symlink():
                path.unlink()
            elif (path / self.store.name).is_dir():
                remove_tree(path / self.store.name)
                with contextlib.suppress(OSError):  # what others put there stays
                    path.rmdir()
        self.finished_step.unlink(missing_ok=True)
        if self.store.is_dir():
            self._remove_discarded()
            self.store.rename(self._discarded)  # at once, where to remove it takes many steps
        self.store.unlink(missing_ok=True)
        self._remove_discarded()
        if not keep_list:
            self.remove_graphs()
        for path in self.directory.iterdir():
            if _RUN_FILE.fullmatch(path.name) and path not in kept:
                path.unlink()
        for path in self._results:
            path.unlink(missing_ok=True)

    @property
    def _discarded(self) -> Path:
        """A store that is being removed."""
        return self.directory / f".{self.store.name}.removed"

    def _remove_discarded(self) -> None:
        if self._discarded.is_dir() or self._discarded.is_symlink():
            remove_tree(self._discarded)


def remove_tree(path: Path) -> None:
    """Remove a directory and all that is in it; of a link, nothing but the link."""
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)
