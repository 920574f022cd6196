"""What a mini-batch costs with the real Moses: server, server restarted for each batch, process.

    python -m tests.benchmarks.bench_servers --batches 8 --size 16 DIR

DIR is for scratch files. The system is the recorded one, with its text phrase table and with the
same table on disk. Every batch has new weights. CPU seconds are those of the decoder.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from formats.nbest.block import NBestList
from formats.weights.files import read_show_weights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.moses import parse_flags
from mosesplug.decoders.protocol import BatchTask
from mosesplug.decoders.servers.exactness import change_weights, count_differing_lists
from mosesplug.decoders.servers.sentence_tables import SentenceTables
from mosesplug.decoders.servers.server import ServerDecoder

_FLAGS = "-v 0 -search-algorithm 1 -cube-pruning-pop-limit 400 -s 100"
_NBEST = 100


@dataclass(frozen=True)
class _Measured:
    lists: Sequence[Sequence[NBestList]]
    wall: float
    cpu: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--size", type=int, default=16)
    given = parser.parse_args()
    beside = Path(__file__).parents[3] / "shared"
    home = Path(os.environ.get("MOSES_HOME", beside / "moses")).absolute()
    data = Path(os.environ.get("MOSES_RECORDINGS", beside / "data")).absolute() / "multi30k-de-en"
    work = given.directory.absolute()
    work.mkdir(parents=True, exist_ok=True)
    texts = (data / "text" / "dev.de").read_bytes().splitlines()[: given.batches * given.size]
    batches = [list(enumerate(texts))[i :: given.batches] for i in range(given.batches)]
    configs = _configs(home, data / "model", work)
    decoder = MosesDecoder(home / "bin" / "moses", parse_flags(_FLAGS))
    shown = subprocess.run(
        decoder.show_weights(configs["text table"]), check=True, capture_output=True
    ).stdout
    weights = ModelWeights(read_show_weights(shown).groups)
    print("| table | decoder | lists that differ | wall s a batch | CPU s a batch |")
    print("|---|---|---|---|---|")
    for table, config in configs.items():
        expected = _measure(
            ProcessDecoder(decoder, BatchTask(config, work, _NBEST)), batches, weights
        )
        _print(table, "a process for each batch", expected, expected)
        for name, tables, restarts in (
            ("server as it is", None, False),
            ("server restarted for each batch", None, True),
            ("server that gets tables by sentence", SentenceTables.of(config), False),
        ):
            if tables is None and name.endswith("sentence"):
                continue
            server = ServerDecoder(
                decoder, config, work, _NBEST, tables=tables, restart_each_batch=restarts
            )
            _print(table, name, _measure(server, batches, weights), expected)


def _print(table: str, name: str, found: _Measured, expected: _Measured) -> None:
    pairs = zip(found.lists, expected.lists, strict=True)
    differing = sum(count_differing_lists(*pair) for pair in pairs)
    total = sum(map(len, expected.lists))
    figures = f"{differing} of {total} | {found.wall:.2f} | {found.cpu:.2f}"
    print(f"| {table} | {name} | {figures} |", flush=True)


def _configs(home: Path, model: Path, work: Path) -> dict[str, Path]:
    text = re.sub(r"path=(?=\S)", f"path={model}/", (model / "moses.ini").read_text())
    plain, on_disk = work / "text.ini", work / "on-disk.ini"
    plain.write_text(text)
    table = work / "table"
    if not table.exists():
        command = [home / "bin" / "CreateOnDiskPt", "1", "1", "4", "100", "2"]
        source = model / "phrase-table.gz"
        subprocess.run([*command, source, table], check=True, capture_output=True)
    text = text.replace("PhraseDictionaryMemory", "PhraseDictionaryOnDisk")
    on_disk.write_text(text.replace(f"{model}/phrase-table.gz", str(table)))
    return {"text table": plain, "table on disk": on_disk}


def _measure(
    decoder: BatchDecoder, batches: Sequence[Sequence[tuple[int, bytes]]], weights: ModelWeights
) -> _Measured:
    start, cpu, lists = time.monotonic(), _children(), []
    now = weights
    with decoder if isinstance(decoder, ServerDecoder) else nullcontext(decoder) as running:
        for batch in batches:
            now = change_weights(now) if now is weights else weights
            lists.append(running.decode(batch, now))
    seconds = time.monotonic() - start
    return _Measured(lists, seconds / len(batches), (_children() - cpu) / len(batches))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
