"""The command lines of Moses and programs like it.

Nothing here starts a process or touches a file. File names in the commands are relative to the
working directory, which is the decoder's current directory.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from formats.moses.decoder_flags import WEIGHT_FLAGS, flag_name
from mosesplug.decoders.wrappers import PostEditing, Queue
from mosesplug.errors import UsageError

_MODEL_FLAGS = (
    *("config", "ttable-file", "distortion-file", "generation-file", "lmodel-file"),
    "global-lexical-file",
)
_OWN_FLAGS = {
    "input-file": "give the file as INPUT",
    "lattice-samples": "give the number of samples with {--lattice-samples}",
    "n-best-list": "give the size of the lists with {--nbest}; they are always distinct",
    "server": "keep the decoder running by {--online} and {--online-decoder server}",
    "show-weights": "leave it out",
}
"""Flags that the commands here have already, and what to do instead."""


@dataclass(frozen=True)
class MosesCommands:
    """Command lines of a decoder; each names the configuration of the model.

    Attributes:
        program: path of the decoder.
        flags: further arguments.
        input_type: Moses' ``-inputtype`` (0 text, 1 confusion network, 2 lattice, 3 tree), or
            None to leave it to the configuration.
        queue: decode through ``moses-parallel.pl``, or None.
        several: path of ``multi_moses.py`` (several decoder processes side by side), or None.
        post_editing: or None.
        timeout: seconds without output after which it is ended; of a server, seconds that it may
            take for one sentence, or to start. None for no limit, and for the default of servers.
    """

    program: Path
    flags: tuple[str, ...] = ()
    input_type: int | None = None
    queue: Queue | None = None
    several: Path | None = None
    post_editing: PostEditing | None = None
    timeout: float | None = None

    def show_weights(self, config: Path) -> tuple[str, ...]:
        """Return the command that prints features and weights."""
        command = [str(self.program), *self.flags, "-config", str(config), *self._input_type()]
        return (*self._several(), *command, "-show-weights")

    def translate(self, config: Path, input_file: Path) -> tuple[str, ...]:
        """Return the command that prints the translation of each sentence.

        Args:
            config: the model's ``moses.ini``, with the weights to decode with.
            input_file: one sentence a line.
        """
        command = [str(self.program), *self.flags, "-config", str(config), *self._input_type()]
        return (*self._several(), *command, "-input-file", str(input_file))

    def nbest(
        self,
        config: Path,
        input_file: Path,
        *,
        run: int,
        nbest_file: str,
        nbest: int,
        weights: str | None,
        sparse_weights: str | None = None,
        samples_file: str | None = None,
        samples: int = 0,
    ) -> tuple[str, ...]:
        """Return the command that decodes the whole input into distinct n-best lists.

        Args:
            config: the model's ``moses.ini``.
            input_file: one sentence a line, or as the input type says.
            run: number of the iteration, from 1.
            nbest_file, nbest: file and length of the n-best lists.
            weights: Moses' ``-weight-overwrite``, or None to keep the configuration's.
            sparse_weights: name of a file with sparse weights, or None.
            samples_file, samples: file of samples of the search lattice, and how many per sentence;
                0 for none.
        """
        model = _model(weights, sparse_weights)
        lists = ["-lattice-samples", samples_file or "", str(samples)] if samples else []
        if self.queue is not None:
            return self._queued(self.queue, config, input_file, run, model, nbest_file, nbest)
        command = [str(self.program), *self.flags, "-config", str(config), *self._input_type()]
        command += [*model, *lists, "-n-best-list", nbest_file, str(nbest), "distinct"]
        command += ["-input-file", str(input_file)]
        return self._post_editing((*self._several(), *command))

    def graphs(
        self,
        config: Path,
        input_file: Path,
        *,
        directory: str,
        weights: str | None,
        sparse_weights: str | None = None,
    ) -> tuple[str, ...]:
        """Return the command that decodes the whole input into search graphs only.

        Args:
            config, input_file, weights, sparse_weights: as for ``nbest``.
            directory: the directory of the graphs, one gzipped file per sentence.

        Raises:
            UsageError: the decoder is called through a wrapper that does not join graphs.
        """
        if self.queue or self.several:
            raise UsageError(
                "search graphs are not joined by moses-parallel.pl and multi_moses.py: decode on"
                " this machine, without {--jobs} and {--multi-moses}"
            )
        command = [str(self.program), *self.flags, "-config", str(config), *self._input_type()]
        command += _model(weights, sparse_weights)
        command += ["-output-search-graph-hypergraph", "true", "gz", directory]
        return self._post_editing((*command, "-input-file", str(input_file)))

    def server(
        self, config: Path, port: int, *, weights: str, sparse_weights: str | None = None
    ) -> tuple[str, ...]:
        """Return the command that serves translations, one request at a time.

        Args:
            config: the model's ``moses.ini``.
            port: that it listens on.
            weights, sparse_weights: as for ``nbest``.

        Raises:
            UsageError: the decoder is called through a wrapper, or its input is not text, which
                servers cannot decode.
        """
        if self.queue or self.several or self.post_editing:
            raise UsageError(
                "a decoder that is kept running as a server cannot be called through"
                " moses-parallel.pl, multi_moses.py or moses_sim_pe.py"
            )
        if self.input_type:
            raise UsageError(
                f"Moses' server translates text only, not input of type {self.input_type}: decode"
                " by a process for each batch"
            )
        command = [str(self.program), *_without_threads(self.flags), "-config", str(config)]
        # A serial server uses one thread, and rejects "-threads all".
        command += [*self._input_type(), "-threads", "1", "-weight-overwrite", weights]
        if sparse_weights is not None:
            command += ["-weight-file", sparse_weights]
        return (*command, "--server", "--serial", "--server-port", str(port))

    def _queued(
        self,
        queue: Queue,
        config: Path,
        input_file: Path,
        run: int,
        model: Sequence[str],
        nbest_file: str,
        nbest: int,
    ) -> tuple[str, ...]:
        """Return the ``moses-parallel.pl`` command, which takes word lists as one word."""
        command = [str(queue.command), *(["-old-sge"] if queue.old_sge else [])]
        command += ["-config", str(config), *self._input_type()]
        if queue.cache is not None:
            command += ["-cache-model", queue.cache]
        command += ["-qsub-prefix", f"mert{run}", "-queue-parameters", queue.flags]
        command += ["-decoder-parameters", shlex.join([*self.flags, *model])]
        command += ["-n-best-list", f"{nbest_file} {nbest} distinct"]
        command += ["-input-file", str(input_file), "-jobs", str(queue.jobs)]
        return (*command, "-decoder", str(self.program))

    def _input_type(self) -> list[str]:
        return [] if self.input_type is None else ["-inputtype", str(self.input_type)]

    def _several(self) -> tuple[str, ...]:
        return () if self.several is None else (str(self.several),)

    def _post_editing(self, command: tuple[str, ...]) -> tuple[str, ...]:
        editing = self.post_editing
        if editing is None:
            return command
        reference = ("-ref", str(editing.reference), "-symal", str(editing.alignment))
        return (str(editing.command), *command, *reference, "-tmp", str(editing.scratch))


def _model(weights: str | None, sparse_weights: str | None) -> list[str]:
    model = [] if weights is None else ["-weight-overwrite", weights]
    return model if sparse_weights is None else [*model, "-weight-file", sparse_weights]


def parse_flags(text: str) -> tuple[str, ...]:
    """Split ``--decoder-flags`` into words, as a shell does.

    Raises:
        UsageError: a quote is not closed, a value comes before any flag, a flag names a part of
            the model or its weights, which belong into the configuration file, or a flag is one
            that the run itself gives to the decoder.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{{--decoder-flags}}={text!r}: {error}") from error
    if words and not _is_flag(words[0]):
        raise UsageError(
            f"{{--decoder-flags}}={text!r}: found the value {words[0]!r} before any flag"
        )
    for word in filter(_is_flag, words):
        name = flag_name(word)
        if name in _MODEL_FLAGS:
            raise UsageError(
                f"{{--decoder-flags}} must not hold {word}: the model is named by the configuration"
                " file alone"
            )
        if name in WEIGHT_FLAGS:
            raise UsageError(
                f"{{--decoder-flags}} must not hold {word}: it would overrule the weights that are"
                " tuned; give starting weights in the configuration's [weight]"
            )
        if name in _OWN_FLAGS:
            raise UsageError(
                f"{{--decoder-flags}} must not hold {word}, which the run itself gives to the"
                f" decoder: {_OWN_FLAGS[name]}"
            )
    return words


def _without_threads(flags: tuple[str, ...]) -> list[str]:
    """Return the words without ``-threads N``."""
    kept = []
    dropping = False
    for word in flags:
        if _is_flag(word):
            dropping = flag_name(word) == "threads"
        if not dropping:
            kept.append(word)
    return kept


def _is_flag(word: str) -> bool:
    """``-v`` and ``--v`` are flags, ``-3`` is a number."""
    return word.startswith("-") and not word.lstrip("-")[:1].isdigit() and word != "-"
