"""A run with the real decoder that is killed while it decodes ends with the same bytes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.real_decoder import inputs
from tests.real_decoder.programs import FLAGS, Programs, run_here, start_fork
from tests.real_decoder.system import System
from tests.waiting import alive, wait_until

PLAIN = lambda system: system.config  # noqa: E731
KBMIRA = ("tune", "--algorithm", "kbmira", "--option", "epochs=2")
ONLINE = ("tune", "--online", "--algorithm", "mira", "--option", "batch=2")
# By default, a process decodes each mini-batch of this system.
SERVER = ("--online-decoder", "server")

# The command with its options, and what it reads: a configuration, or also other input.
REGIMES: dict[str, tuple[tuple[str, ...], Callable[[System], Any]]] = {
    "batch": (KBMIRA, PLAIN),
    "sparse": (KBMIRA, inputs.sparse),
    "graphs": ((*KBMIRA, "--forest"), PLAIN),
    "lattice-samples": (("mert-moses", "--lattice-samples", "5", "--random-restarts", "1"), PLAIN),
    "hg-mira": (("mert-moses", "--hg-mira", "--batch-mira-args", "-J 2"), PLAIN),
    "server": ((*ONLINE, *SERVER), PLAIN),
    "process": (ONLINE, PLAIN),
    "shards": ((*ONLINE, "--shards", "2"), PLAIN),
    "async": ((*ONLINE, *SERVER, "--shards", "2", "--async", "--async-order", "fixed"), PLAIN),
}


# Moses draws samples by the time: keep them for runs that decode with the same weights.
DECODER = """\
#!/bin/sh
{moses} "$@" || exit
while [ $# -gt 0 ]; do
    case $1 in
        -weight-overwrite) key=$(echo "$2" | cksum | tr -d " ") ;;
        -lattice-samples) samples=$2 ;;
    esac
    shift
done
[ -z "$samples" ] || cp "{kept}/$key" "$samples" 2>&- || cp "$samples" "{kept}/$key"
"""


@pytest.mark.parametrize("regime", REGIMES)
def test_killed_and_continued(programs: Programs, regime: str) -> None:
    few = programs.shorten(6)
    (command, *more), make = REGIMES[regime]
    made = make(few.system)
    config, source = made if isinstance(made, tuple) else (made, few.system.source)
    few = replace(few, system=replace(few.system, source=source))
    rounds = "--epochs" if "--online" in more else "--max-iterations"

    kept, decoder = few.directory / "kept", few.directory / "decoder"
    kept.mkdir()
    decoder.write_text(DECODER.format(moses=few.moses, kept=kept))
    decoder.chmod(0o755)

    def words(working: str) -> list[str]:
        if command == "tune":
            return few.tune_words(working, rounds, "3", *more, config=config)
        shared = few.arguments(working, config=config, source=source, flags=FLAGS)
        shared[shared.index(str(few.moses))] = str(decoder)
        return [command, *shared, "--maximum-iterations", "3", *more]

    run_here(words("whole"))
    work, whole = programs.directory / "work", programs.directory / "whole"
    child = start_fork(words("work"))
    try:
        wait_until(lambda: (work / "run2.moses.ini").is_file() or not alive(child))
    finally:
        os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    run_here([*words("work"), "--continue"])
    names = ["run2.weights.txt", "run3.weights.txt"]
    names += ["run3.sparse-weights", "run4.sparse-weights"] if regime == "sparse" else []
    for name in names:
        assert (work / name).read_bytes() == (whole / name).read_bytes(), name
    assert (work / "batch.table1").is_file() == (regime == "process")
