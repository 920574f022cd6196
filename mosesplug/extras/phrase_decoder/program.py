"""``mosesplug-decoder``: the bundled phrase-based decoder.

It has Moses' command line.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

# The decoder processes small arrays in separate processes; threads inside NumPy only cost time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from formats.moses.decoder_flags import SHORT_FLAGS
from formats.moses.ini import MosesIni, read_moses_ini
from formats.text import read_lines
from formats.weights.files import read_sparse
from mosesplug.cli.shared.exits import exit_code
from mosesplug.errors import UsageError
from mosesplug.extras.phrase_decoder.model import Model, load_model
from mosesplug.extras.phrase_decoder.model_file import ModelFeatures, read_features, show_weights
from mosesplug.extras.phrase_decoder.search_graph import write_weights
from mosesplug.extras.phrase_decoder.settings import (
    OPTIONS,
    Settings,
    parse_arguments,
    read_settings,
)
from mosesplug.extras.phrase_decoder.translation import Translation, split_sentences, translate
from mosesplug.tuning.parallel.ordered_map import map_in_order
from mosesplug.version import __version__

PROGRAM = "mosesplug-decoder"

INTRODUCTION = f"""\
usage: {PROGRAM} -config moses.ini [-input-file FILE] [options] > translations

A small phrase-based beam decoder that supports the Moses options that tuning uses. It is for
the demo, for tests and for teaching; for real systems use Moses. It reads phrase tables and
reordering tables in text form, and language models in ARPA format. Options start with one dash
or two; most can also be set in moses.ini as a [section].

options:
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the decoder and exit: 0 success; 1 data error; 2 usage error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(exit_code(PROGRAM, partial(_run, words)))


def _run(arguments: list[str]) -> None:
    """Parse the command line and run the decoder or the server."""
    if not arguments or {"-h", "-help", "--help"} & set(arguments):
        sys.stdout.write(_help())
        if not arguments:
            raise UsageError("no -config given")
        return
    if {"-version", "--version"} & set(arguments):
        sys.stdout.write(f"{PROGRAM} {__version__}\n")
        return
    options = parse_arguments(arguments)
    if len(options.get("config", [])) != 1:
        raise UsageError("give one -config FILE")
    ini = read_moses_ini(options["config"][0])
    wanted = read_settings(options, ini)
    sparse_weights = {} if wanted.weight_file is None else read_sparse(wanted.weight_file)
    features = read_features(ini, wanted.weight_overwrite, sparse_weights)
    _check_sparse_weights(features, wanted)
    if wanted.show_weights:
        sys.stdout.buffer.write(show_weights(features))
    elif wanted.server:
        _serve(ini, wanted)
    else:
        _decode(features, wanted)


def _serve(ini: MosesIni, wanted: Settings) -> None:
    """Answer requests until the process is terminated."""
    # Imported here: a decoder that reads a file needs no HTTP.
    from mosesplug.extras.phrase_decoder.serving import TranslationService, make_server

    if wanted.input_file or wanted.n_best_file or wanted.hypergraph_directory:
        raise UsageError(
            "a server gets its input and the sizes of n-best lists from requests: leave out"
            " -input-file, -n-best-list and -output-search-graph-hypergraph"
        )
    started = time.monotonic()
    service = TranslationService(ini, wanted)
    with make_server(wanted.server_port, service) as server:
        _report_done(wanted, f"listening on 127.0.0.1:{wanted.server_port}", started)
        server.serve_forever()


def _help() -> str:
    lines = []
    letters = {name: short for short, name in SHORT_FLAGS.items()}
    for name, option in OPTIONS.items():
        short = f", -{letters[name]}" if name in letters else ""
        lines.append(f"  -{name + short:<38} {option.help}\n")
    return INTRODUCTION + "".join(lines)


def _check_sparse_weights(features: ModelFeatures, wanted: Settings) -> None:
    """Warn of weights without effect; reject search graphs that would lack features."""
    makers = {template.name for template in features.templates}
    unused = [
        name
        for name, value in features.sparse_weights.items()
        if value and name.partition("_")[0] not in makers
    ]
    if unused:
        print(
            f"{PROGRAM}: {wanted.weight_file}: {len(unused)} weights ignored: [feature] has no "
            f"function of {unused[0]}",
            file=sys.stderr,
        )
    if makers and wanted.hypergraph_directory is not None:
        raise UsageError(
            "search graphs of the bundled decoder have no sparse features: leave out "
            f"-output-search-graph-hypergraph, or {' and '.join(sorted(makers))} in [feature]"
        )


def _decode(features: ModelFeatures, wanted: Settings) -> None:
    """Translate the input; write each sentence when all earlier ones are written."""
    started = time.monotonic()
    lines = _stdin_lines() if wanted.input_file is None else read_lines(wanted.input_file)
    sentences = split_sentences(lines)
    model = load_model(
        features,
        sentences,
        longest_phrase=wanted.max_phrase_length,
        table_limit=wanted.table_limit,
        with_alignment=wanted.n_best_alignment,
    )
    _report_done(wanted, f"{len(sentences)} sentences, {len(model.score)} phrase pairs", started)
    if wanted.hypergraph_directory is not None:
        write_weights(wanted.hypergraph_directory, features)
    work = partial(_translate, model, wanted, sentences)
    with (
        _n_best_file(wanted.n_best_file) as n_best,
        closing(map_in_order(work, len(sentences), wanted.threads)) as translations,
    ):
        for translation in translations:
            if n_best is not None:
                n_best.write(translation.n_best)
            if n_best is not sys.stdout.buffer:
                sys.stdout.buffer.write(translation.best)
    sys.stdout.flush()
    _report_done(wanted, "translated", started)


def _translate(
    model: Model, wanted: Settings, sentences: list[list[bytes]], number: int
) -> Translation:
    return translate(model, wanted, number, sentences[number])


def _stdin_lines() -> list[bytes]:
    lines = sys.stdin.buffer.read().split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


@contextlib.contextmanager
def _n_best_file(path: str | None) -> Iterator[BinaryIO | None]:
    """Open the n-best output: stdout, a file or, for ``.gz``, a gzip file; or None."""
    if path is None:
        yield None
    elif path in ("-", "/dev/stdout"):
        yield sys.stdout.buffer
    elif path.endswith(".gz"):
        with Path(path).open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    else:
        with Path(path).open("wb") as file:
            yield file


def _report_done(wanted: Settings, what: str, started: float) -> None:
    if wanted.verbose:
        print(f"{PROGRAM}: {what} [{time.monotonic() - started:.1f} s]", file=sys.stderr)
