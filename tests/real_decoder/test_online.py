"""Servers of the real decoder: exact, closed to others, and the same weights as by processes."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from formats.weights.files import read_show_weights
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.batch_tables import BatchTables
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.moses import parse_flags
from mosesplug.decoders.protocol import BatchTask
from mosesplug.decoders.servers.exactness import (
    change_weights,
    count_differing_lists,
    require_exact,
)
from mosesplug.decoders.servers.folded_tables import FoldedTables
from mosesplug.decoders.servers.own_network import explain_unavailable
from mosesplug.decoders.servers.server import ServerDecoder
from tests.real_decoder import inputs
from tests.real_decoder.programs import FLAGS, NBEST, Programs

CUBE = FLAGS
STACKS = "-threads 1 -v 0 -s 20"


@pytest.fixture
def weights(programs: Programs) -> ModelWeights:
    shown = programs.decode("-config", programs.system.config, "-show-weights")
    return ModelWeights(read_show_weights(shown).groups)


def sentences(programs: Programs) -> list[tuple[int, bytes]]:
    lines = programs.system.source.read_bytes().splitlines()
    return [*enumerate(lines), (50, b"qqqqq"), (51, b"ein  qqqqq "), (52, lines[0])]


@pytest.fixture
def on_disk(programs: Programs, tmp_path: Path) -> Path:
    """A configuration with the same phrase table on disk."""
    table = tmp_path / "table"
    command = [programs.home / "bin" / "CreateOnDiskPt", "1", "1", "4", "100", "2"]
    subprocess.run([*command, programs.system.phrase_table, table], check=True, capture_output=True)
    changes = (
        ("PhraseDictionaryMemory", "PhraseDictionaryOnDisk cache-size=0"),
        (str(programs.system.phrase_table), str(table)),
    )
    return programs.system.rewrite("on-disk.ini", *changes)


@pytest.mark.parametrize("flags", [CUBE, STACKS])
def test_text_tables_are_exact(
    programs: Programs, weights: ModelWeights, tmp_path: Path, flags: str
) -> None:
    decoder, config = MosesDecoder(programs.moses, parse_flags(flags)), programs.system.config
    notes: list[str] = []
    fresh = ProcessDecoder(decoder, BatchTask(config, tmp_path, NBEST))
    batch = sentences(programs)
    with ServerDecoder(
        decoder, config, tmp_path, NBEST, workers=2, network="auto", note=notes.append
    ) as online:
        found = require_exact(
            online, fresh, batch[:5], weights, config=config, flags=decoder.flags, strict=True
        )
        assert found.note is not None
        assert found.note.startswith("PhraseDictionaryMemory keeps the scores and the pruning")
        assert not found.is_warning
        other = change_weights(weights)
        for now in (weights, other, change_weights(other), weights):
            lists = online.decode(batch, now)
            assert count_differing_lists(lists, fresh.decode(batch, now)) == 0
    assert not list(tmp_path.glob("*.tables"))
    # Only where it cannot be kept to itself does anybody hear of interfaces.
    assert bool(notes) == (explain_unavailable() is not None)


@pytest.mark.parametrize(
    ("flags", "functions"),
    [
        (CUBE, inputs.FUNCTIONS),
        (STACKS, inputs.FUNCTIONS),
        (CUBE, inputs.CONTEXTS),
        (STACKS, inputs.CONTEXTS),
        # Moses computes phrase pairs without target words from memory that is not theirs.
        (f"{CUBE} -drop-unknown true", inputs.FUNCTIONS.replace("PhrasePairFeature", "#")),
    ],
)
def test_sums_of_sparse_weights_are_exact(
    programs: Programs, tmp_path: Path, flags: str, functions: str
) -> None:
    """Same hypotheses, order, values and scores as of a process with the decoder's own functions.

    Among the sentences are unknown words, and repeated words, whose orders tie.
    """
    decoder = MosesDecoder(programs.moses, parse_flags(flags))
    config = programs.system.rewrite(
        "functions.ini",
        ("Distortion\n", functions),
        ("num-features=4", "num-features=4 table-limit=3"),
    )
    shown = programs.decode("-config", config, "-show-weights")
    weights = ModelWeights(read_show_weights(shown).groups)
    fresh = ProcessDecoder(decoder, BatchTask(config, tmp_path, NBEST))
    batch = sentences(programs)[:-5:-1]
    batch.append((60, b"ein mann qqqqq ein mann ein mann - qqqq1 ."))
    notes: list[str] = []
    with ServerDecoder(
        decoder, config, tmp_path, NBEST, network="auto", note=notes.append
    ) as online:
        found = require_exact(online, fresh, batch, weights, config=config, flags=decoder.flags)
        assert found.note is not None
        assert "with the sums of the weights of" in found.note
        tables = online.tables
        assert isinstance(tables, FoldedTables)
        names = sorted(tables.sample_weights([text for _, text in batch], tmp_path))
        assert len(names) > 100
        rng = np.random.default_rng(1)
        for spread in (0.0, 0.3, 3.0):
            sparse = dict(zip(names, rng.normal(0.0, spread, len(names)).tolist(), strict=True))
            now = replace(change_weights(weights), sparse=sparse)
            lists, expected = online.decode(batch, now), fresh.decode(batch, now)
            assert count_differing_lists(lists, expected) == 0
            for own, other in zip(lists, expected, strict=True):
                np.testing.assert_allclose(own.scores, other.scores, rtol=2e-5)
    assert not any("is started again" in note for note in notes)


@pytest.mark.parametrize(
    ("flags", "across"),
    # With stacks, two runs of Moses with functions across phrases differ from each other.
    [
        (CUBE, "TargetBigramFeature name=TB factor=0 path=*\n"),
        (f"{STACKS} -max-phrase-length 2", ""),
    ],
)
def test_tables_cut_down_to_a_batch_are_exact(
    programs: Programs, tmp_path: Path, flags: str, across: str
) -> None:
    """Same lists as with whole tables, also without any phrase."""
    decoder = MosesDecoder(programs.moses, parse_flags(flags))
    config = programs.system.rewrite(
        "cut.ini",
        ("Distortion\n", f"{inputs.FUNCTIONS}{across}"),
        ("num-features=4", "num-features=4 table-limit=3"),
    )
    shown = programs.decode("-config", config, "-show-weights")
    weights = ModelWeights(read_show_weights(shown).groups)
    batch = sentences(programs)
    tables = BatchTables.of(config, decoder.flags, [text for _, text in batch], tmp_path)
    assert tables is not None
    assert tables.names == ("TranslationModel0", "LexicalReordering0")
    assert tables.loads_little
    whole = ProcessDecoder(decoder, BatchTask(config, tmp_path, NBEST, "whole"))
    cut = ProcessDecoder(decoder, BatchTask(config, tmp_path, NBEST, "cut"), tables)
    names = sorted({name for own in whole.decode(batch, weights) for name in own.sparse_names})
    values = np.random.default_rng(1).normal(0.0, 0.3, len(names)).tolist()
    now = replace(change_weights(weights), sparse=dict(zip(names, values, strict=True)))
    for part in (batch[:9], batch[9:], [(50, b"qqqqq")]):
        lists, expected = cut.decode(part, now), whole.decode(part, now)
        assert count_differing_lists(lists, expected) == 0
        for own, other in zip(lists, expected, strict=True):
            # Moses adds sparse features up in the order of a hash table.
            np.testing.assert_allclose(own.scores, other.scores, rtol=2e-5)


def test_functions_across_phrases_restart_the_server(programs: Programs, tmp_path: Path) -> None:
    config = programs.system.rewrite(
        "bigrams.ini", ("Distortion\n", "Distortion\nTargetBigramFeature name=TB factor=0 path=*\n")
    )
    decoder, batch = MosesDecoder(programs.moses, parse_flags(FLAGS)), sentences(programs)[:3]
    shown = programs.decode("-config", config, "-show-weights")
    weights = ModelWeights(read_show_weights(shown).groups)
    fresh = ProcessDecoder(decoder, BatchTask(config, tmp_path, NBEST))
    notes: list[str] = []
    with ServerDecoder(
        decoder, config, tmp_path, NBEST, network="auto", note=notes.append
    ) as online:
        require_exact(online, fresh, batch, weights, config=config, flags=decoder.flags)
        assert not notes
        now = replace(weights, sparse={"TB_ein:mann": 0.5, "TB_a:man": 2.0})
        assert count_differing_lists(online.decode(batch, now), fresh.decode(batch, now)) == 0
    assert re.fullmatch(
        "the decoder's server takes no sparse weights in a request, and sums of them cannot be"
        r" folded into its phrase table \(TB \(TargetBigramFeature\) depends on more than one"
        r" phrase pair and the source sentence\): it is started again whenever they change, in"
        r" \d+\.\d s",
        notes[-1],
    )


def test_tables_on_disk_keep_scores(
    programs: Programs, weights: ModelWeights, tmp_path: Path, on_disk: Path
) -> None:
    decoder = MosesDecoder(programs.moses, parse_flags(FLAGS))
    fresh = ProcessDecoder(decoder, BatchTask(on_disk, tmp_path, NBEST))
    batch = sentences(programs)[:10]
    with ServerDecoder(decoder, on_disk, tmp_path, NBEST, network="auto") as online:
        found = require_exact(online, fresh, batch, weights, config=on_disk)
        assert found.is_warning
        assert found.note is not None
        assert "PhraseDictionaryOnDisk keeps the scores of entries" in found.note
        assert online.restart_each_batch
        changed = change_weights(weights)
        expected = fresh.decode(batch, changed)
        assert count_differing_lists(online.decode(batch, changed), expected) == 0


def test_weights_of_servers_and_processes(programs: Programs) -> None:
    online = ("--online", "--algorithm", "mira", "--epochs", "1", "--option", "batch=6")
    regimes = {
        "server": ("--online-decoder", "server", "--strict-online"),
        "process": ("--online-decoder", "process"),
    }
    works = [programs.tune(name, *online, *more) for name, more in regimes.items()]
    texts = [(work / "run1.weights.txt").read_bytes() for work in works]
    assert texts[0] == texts[1]
    assert json.loads((works[0] / "summary.json").read_text())["warnings"] == []


@pytest.mark.parametrize(
    "more",
    [
        ("--shards", "2", "--online-decoder", "server"),
        ("--shards", "2", "--async", "--async-order", "fixed"),
    ],
)
def test_several_decoders(programs: Programs, more: tuple[str, ...]) -> None:
    work = programs.tune(
        "work", "--online", "--algorithm", "mira", "--epochs", "1", "--option", "batch=4", *more
    )
    assert programs.decode("-config", work / "moses.ini", "-show-weights")
    assert not list(work.glob("*.tables"))


def test_new_sparse_weights(programs: Programs) -> None:
    work = programs.tune(
        "work",
        *("--online", "--algorithm", "adagrad", "--epochs", "1", "--option", "batch=8"),
        *("--online-decoder", "server"),
        config=inputs.sparse(programs.system),
    )
    assert (work / "run2.sparse-weights").stat().st_size
