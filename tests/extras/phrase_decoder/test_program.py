"""mosesplug-decoder as a program, on the demo system."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from formats.nbest.files import read_nbest
from tests.waiting import LIMIT, wait_until

REPOSITORY = Path(__file__).parents[3]
DEMO = REPOSITORY / "moses-config" / "demo"
INI = str(DEMO / "moses.ini")
PROGRAM = [sys.executable, "-c", "from mosesplug.extras.phrase_decoder.program import main; main()"]


Result = subprocess.CompletedProcess[bytes]
Decode = Callable[..., Result]


def run_program(*arguments: str, text: bytes = b"", cwd: Path | None = None) -> Result:
    """Run the decoder as a program."""
    return subprocess.run(
        [*PROGRAM, *arguments], input=text, capture_output=True, cwd=cwd, check=False
    )


def demo_lines(name: str, count: int) -> bytes:
    lines = (DEMO / name).read_bytes().splitlines(keepends=True)
    return b"".join(lines[:count])


def test_show_weights(decode: Decode) -> None:
    result = decode("-config", INI, "-show-weights")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.splitlines() == [
        b"LexicalReordering0= 0.300000 0.300000 0.300000 0.300000 0.300000 0.300000",
        b"Distortion0= 0.300000",
        b"LM0= 0.500000",
        b"UnknownWordPenalty0 UNTUNEABLE",
        b"WordPenalty0= -1.000000",
        b"PhrasePenalty0= 0.200000",
        b"TranslationModel0= 0.200000 0.200000 0.200000 0.200000",
    ]


def test_the_output_is_the_same_for_any_number_of_threads_and_any_input(
    decode: Decode, tmp_path: Path
) -> None:
    text = demo_lines("test.tarvian", 6)
    source = tmp_path / "input"
    source.write_bytes(text)
    outputs = []
    for run, threads in ((decode, "1"), (run_program, "2"), (run_program, "3")):
        n_best = tmp_path / f"list{threads}"
        result = run(
            *("-f", INI, "-input-file", str(source), "--threads", threads),
            *("-n-best-list", str(n_best), "20", "distinct"),
        )
        assert (result.returncode, result.stderr) == (0, b"")
        outputs.append((result.stdout, n_best.read_bytes()))
    assert outputs[0] == outputs[1] == outputs[2]
    from_stdin = decode("-f", INI, "-n-best-list", "-", "20", "distinct", text=text.rstrip(b"\n"))
    assert from_stdin.stdout == outputs[0][1]
    assert all(line.endswith(b" ") for line in outputs[0][0].splitlines())


def test_lists_of_the_demo(decode: Decode, tmp_path: Path) -> None:
    n_best = tmp_path / "list.gz"
    result = decode(
        *("-f", INI, "-n-best-list", str(n_best), "50", "distinct", "-v", "1"),
        text=demo_lines("tune.tarvian", 10),
    )
    assert b"10 sentences" in result.stderr
    assert gzip.decompress(n_best.read_bytes()).count(b"\n") > 300
    found = read_nbest(n_best)
    texts = [
        bytes(found.buffer[start:end])
        for start, end in zip(found.text_starts, found.text_ends, strict=True)
    ]
    keys = set(zip(found.sentence_ids.tolist(), texts, strict=True))
    assert len(keys) == len(texts)
    first = [texts[found.sentence_ids.tolist().index(number)] for number in range(10)]
    assert [line.strip() for line in result.stdout.splitlines()] == first


def test_better_weights_translate_the_demo_better(decode: Decode) -> None:
    """Weights that a tuning run found are worth several points on text it has not seen."""
    tuned = (
        "LexicalReordering0= 0.09 0.05 0.13 0.05 0.02 0.12 Distortion0= 0.04 LM0= 0.06 "
        "WordPenalty0= -0.04 PhrasePenalty0= -0.03 TranslationModel0= 0.14 0.08 0.11 0.02"
    )
    references = [
        demo_lines(f"test.english{number}", 20).decode().splitlines() for number in (0, 1)
    ]
    scores = []
    for change in ((), ("-weight-overwrite", tuned)):
        text = demo_lines("test.tarvian", 20)
        output = decode("-f", INI, *change, text=text).stdout.decode()
        metric = BLEU(tokenize="none", force=True)
        scores.append(metric.corpus_score(output.splitlines(), references).score)
    assert scores[1] > scores[0] + 3.0


def test_search_graphs(tmp_path: Path) -> None:
    result = run_program(
        *("-f", INI, "-threads", "2", "-output-search-graph-hypergraph", "true", "gz"),
        text=demo_lines("tune.tarvian", 4),
        cwd=tmp_path,
    )
    assert result.returncode == 0
    names = {path.name for path in (tmp_path / "hypergraph").iterdir()}
    assert names == {"weights", "0.gz", "1.gz", "2.gz", "3.gz"}


def test_empty_input(decode: Decode) -> None:
    assert decode("-f", INI).stdout == b""
    result = decode("-f", INI, "-n-best-list", "-", "5", text=b"\n")
    assert result.returncode == 0
    assert result.stdout.startswith(b"0 |||  ||| ")


def test_help_and_version(decode: Decode) -> None:
    result = decode("--help")
    assert result.returncode == 0
    assert b"-weight-overwrite" in result.stdout
    assert b"for teaching" in result.stdout
    assert decode("-version").stdout.startswith(b"mosesplug-decoder ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "no -config given"),
        (["-threads", "2"], 2, "give one -config FILE"),
        (["-f", INI, "-daemon"], 2, "does not support option -daemon"),
        (["-f", INI, "-server", "-input-file", "x"], 2, "a server gets its input"),
        (["-f", INI, "-server", "-server-port", "high"], 2, "server-port: a number expected"),
        (["-f", INI, "-server", "-server-port", "65536"], 2, "at most 65535 expected"),
        (["-f", INI, "-weight-overwrite", "LM0= much"], 2, "weight-overwrite"),
        (["-f", "nowhere.ini"], 1, "nowhere.ini"),
        (["-f", INI, "-input-file", "nowhere.txt"], 1, "nowhere.txt"),
        (["-f", INI, "-weight-file", "nowhere.sparse"], 1, "nowhere.sparse"),
        (["-f", INI, "-n-best-list", "no/such/directory/list", "5"], 1, "no/such/directory/list"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(
    arguments: list[str], code: int, message: str, decode: Decode
) -> None:
    result = decode(*arguments, text=b"a\n")
    assert result.returncode == code
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith("mosesplug-decoder: ")
    assert message in line


def test_a_port_in_use_is_named(decode: Decode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = decode("-f", INI, "--server", "--serial", "--server-port", port)
    assert result.returncode == 1
    (line,) = result.stderr.decode().splitlines()
    assert f"127.0.0.1:{port}: Address already in use" in line


def test_model_errors_have_file_and_line(decode: Decode, tmp_path: Path) -> None:
    for name in ("moses.ini", "reordering-table.gz", "lm.arpa.gz"):
        (tmp_path / name).write_bytes((DEMO / name).read_bytes())
    (tmp_path / "phrase-table").write_bytes(b"vcera ||| yesterday ||| 1 1 1\n")
    ini = tmp_path / "moses.ini"
    ini.write_text(ini.read_text().replace("path=phrase-table.gz", "path=phrase-table"))
    result = decode("-f", str(ini), text=b"vcera\n")
    assert result.returncode == 1
    assert b"phrase-table:1: 4 scores expected, 3 found" in result.stderr
    (tmp_path / "phrase-table").unlink()
    result = decode("-f", str(ini), text=b"vcera\n")
    assert result.returncode == 1
    assert b"TranslationModel0: no file phrase-table" in result.stderr


def test_sparse_weights_are_ignored_aloud(decode: Decode, tmp_path: Path) -> None:
    (tmp_path / "sparse").write_text("pp_a~b 0.5\nwt_a~b 0\n")
    result = decode("-f", INI, "-weight-file", str(tmp_path / "sparse"), "-show-weights")
    assert result.returncode == 0
    assert b"1 weights ignored" in result.stderr


def running(group: int) -> list[str]:
    """State of each process of a session."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == group and fields[0] != "Z":
                found.append(directory.name)
    return found


def long_run(*arguments: str) -> subprocess.Popen[bytes]:
    """The decoder at work for long, with two processes in a session of their own."""
    text = (DEMO / "tune.tarvian").read_bytes() * 20
    process = subprocess.Popen(
        [*PROGRAM, "-f", INI, "-threads", "2", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    return process


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_leaves_no_process(number: signal.Signals) -> None:
    with long_run() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        os.kill(process.pid, number)
        process.stdout.close()
        errors = process.stderr.read()
        code = process.wait(LIMIT)
    assert code == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert b"Traceback" not in errors
    wait_until(lambda: not running(process.pid))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_closed_pipe_ends_it_quietly() -> None:
    with long_run() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(LIMIT) != 0
    assert errors == b""
    wait_until(lambda: not running(process.pid))


def test_the_demo_files_match_the_output_of_their_script(tmp_path: Path) -> None:
    script = DEMO / "making" / "make_demo.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    made = [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*")) if p.is_file()]
    assert len(made) == 8 + 6
    for name in made:
        ours, theirs = (tmp_path / name).read_bytes(), (DEMO / name).read_bytes()
        if name.endswith(".gz"):
            ours, theirs = gzip.decompress(ours), gzip.decompress(theirs)
        assert ours == theirs, name
