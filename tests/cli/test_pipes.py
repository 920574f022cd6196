"""Test that every command reads a list from a pipe as it reads a file."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from mosesplug.cli.main import main

FORMATS = {
    "jsonl": "".join(
        f'{{"id": "utt-{n}", "hyp": "{word}{n} a b", "scores": {{"lm": {score}}}}}\n'
        for n in range(6)
        for word, score in (("v", -2), ("w", -1))
    ),
    "moses": "".join(
        f"utt-{n} ||| {word}{n} a b ||| lm= {score} ||| {score}\n"
        for n in range(6)
        for word, score in (("v", -2), ("w", -1))
    ),
    "cdec": "".join(
        f"{n} ||| {word}{n} a b ||| lm={score} ||| {score}\n"
        for n in range(6)
        for word, score in (("v", -2), ("w", -1))
    ),
}

COMMANDS = {
    "optimize": "optimize --nbest LIST --refs REFS --metric WER --option restarts=1",
    "score": "score --nbest LIST REFS --metric WER --samples 0",
    "oracle": "oracle LIST --refs REFS --metric WER",
    "rerank": "rerank --nbest LIST --weights WEIGHTS --ids",
    "mbr": "mbr --nbest LIST --weights WEIGHTS --metric WER --quiet",
    "bench": "bench-optimizers LIST --refs REFS --metric WER --algorithms mert --seeds 1 --json",
    "import": "nbest import LIST STORE --refs REFS --metric WER",
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_gives_what_a_file_gives(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FORMATS[name]
    prefix = "" if name == "cdec" else "utt-"
    refs = tmp_path / "refs"
    refs.write_text("".join(f"{prefix}{n} w{n} a b\n" for n in (3, 1, 5, 0, 2, 4)))
    (tmp_path / "WEIGHTS").write_text("lm= 1\n")
    outputs = []
    for kind in ("file", "pipe"):
        path = tmp_path / kind
        writer = threading.Thread(target=path.write_text, args=(text,), daemon=True)
        if kind == "pipe":
            os.mkfifo(path)
        writer.start()
        if kind == "file":
            writer.join()
        words = {
            "LIST": path,
            "REFS": refs,
            "WEIGHTS": tmp_path / "WEIGHTS",
            "STORE": tmp_path / f"store of {kind}",
        }
        with pytest.raises(SystemExit) as end:
            main([str(words.get(word, word)) for word in COMMANDS[command].split()])
        found = capsys.readouterr()
        assert not end.value.code, found.err
        error = re.sub(r"\d+\.\d+ s\b", "", found.err)
        output = found.out.partition('"cpu_seconds"')[0]
        outputs.append((output, error.replace(str(path), "LIST")))
    assert outputs[0] == outputs[1]
