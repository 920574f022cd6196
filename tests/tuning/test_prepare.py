"""Filters, caches, queues and wrappers: Moses' helper scripts, played by small ones."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mosesplug.decoders.wrappers import PostEditing, Queue
from mosesplug.errors import DecoderError
from mosesplug.events import CommandStarted, Note
from mosesplug.tuning import Configuration, ModelFilter, tune

Toy = Any
Log = Any


def script(path: Path, text: str, shell: str = "/bin/sh") -> Path:
    path.write_text(f"#!{shell}\n{text}")
    path.chmod(0o755)
    return path


FILTER = """
echo "$@" >> filter.calls
[ -d "$2" ] && exit 9
mkdir "$2" && cp "$3" "$2/moses.ini"
"""


def filtered(toy: Toy, **more: Any) -> Configuration:
    program = script(toy.directory / "filter", FILTER)
    filtering = ModelFilter((str(program), "-v"), toy.directory / "input")
    settings = {"maximum_iterations": 1, "existing": "overwrite"} | more
    return toy.configuration(decoding={"filtering": filtering}, **settings)


def calls(toy: Toy) -> list[str]:
    return (toy.directory / "work" / "filter.calls").read_text().splitlines()


def test_filtered_model_is_decoded_with_and_kept(toy: Toy, log: Log) -> None:
    table = toy.directory / "table.gz"
    table.write_text("x")
    config = toy.directory / "moses.ini"
    text = config.read_text().replace("[feature]", f"[feature]\nTable name=T path={table}")
    config.write_text(text)
    tune(filtered(toy), log)
    expected = f"-v ./filtered {config} {toy.directory}/input"
    assert calls(toy) == [expected]
    decodings = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    target = toy.directory / "work" / "filtered" / "moses.ini"
    assert all(c[c.index("-config") + 1] == str(target) for c in decodings)
    # The result is made from the whole model, not from the filtered one.
    target.write_text(target.read_text() + "\n[marker]\n1\n")
    tune(filtered(toy), log)
    assert "[marker]" in (toy.directory / "work" / "run1.moses.ini").read_text()
    assert "[marker]" not in (toy.directory / "work" / "moses.ini").read_text()
    assert len(calls(toy)) == 1
    assert any("still valid" in note.text for note in log.of(Note))
    for change in (
        lambda: table.write_text("longer"),
        lambda: config.write_text(text + "\n"),
    ):
        change()
        before = len(calls(toy))
        tune(filtered(toy), log)
        assert len(calls(toy)) == before + 1


def test_interrupted_filter_is_not_trusted(toy: Toy) -> None:
    target = toy.directory / "work" / "filtered"
    target.mkdir(parents=True)
    (target / "moses.ini").write_text("[weight]\n")
    tune(filtered(toy))
    assert len(calls(toy)) == 1


@pytest.mark.parametrize(
    ("text", "why"), [("exit 4", "exit code 4"), ("exit 0", "wrote no .*filtered/moses.ini")]
)
def test_failing_filter(toy: Toy, text: str, why: str) -> None:
    configuration = filtered(toy)
    script(toy.directory / "filter", text)
    with pytest.raises(DecoderError, match=why):
        tune(configuration)


def test_model_copied_to_a_local_disk(toy: Toy, log: Log) -> None:
    program = script(
        toy.directory / "cache-model",
        'mkdir -p "$2" && cp "$1" "$2/local.ini" && echo "$2/local.ini"\n',
    )
    local = toy.directory / "local"
    tune(
        toy.configuration(decoding={"cache": (str(program), str(local))}, maximum_iterations=1), log
    )
    decodings = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    assert decodings[0][decodings[0].index("-config") + 1] == str(local / "local.ini")


PARALLEL = """
import shlex, subprocess, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
command = [given["-decoder"], *shlex.split(given["-decoder-parameters"])]
command += ["-n-best-list", *given["-n-best-list"].split(), "-config", given["-config"]]
sys.exit(subprocess.call([*command, "-input-file", given["-input-file"]]))
"""
WRAPPER = """
import subprocess, sys
given = dict(word.split("=", 1) for word in sys.argv[1:])
with open("submitted", "a") as log:
    log.write(given["-queue-parameter"] + " " + given["-command"] + "\\n")
with open(given["-stdout"], "w") as out, open(given["-stderr"], "w") as err:
    sys.exit(subprocess.call(given["-command"], shell=True, stdout=out, stderr=err))
"""


def test_decoding_through_the_queue(toy: Toy) -> None:
    plain = tune(toy.configuration("plain", maximum_iterations=2))
    queue = Queue(
        script(toy.directory / "parallel", PARALLEL, f"{sys.executable} -IS"),
        2,
        "-l x",
        wrapper=script(toy.directory / "wrapper", WRAPPER, f"{sys.executable} -IS"),
    )
    configuration = toy.configuration(maximum_iterations=2)
    decoder = replace(configuration.decoding.decoder, queue=queue)
    decoding = replace(configuration.decoding, decoder=decoder)
    assert tune(replace(configuration, decoding=decoding)).weights == plain.weights
    submitted = (toy.directory / "work" / "submitted").read_text().splitlines()
    assert len(submitted) == 1
    assert submitted[0].startswith("-l x ")
    assert submitted[0].endswith("-show-weights")


def test_decoding_through_wrappers(toy: Toy) -> None:
    plain = tune(toy.configuration("plain", maximum_iterations=1))
    several = script(toy.directory / "several", 'echo several >> wrapped; exec "$@"\n')
    editing = script(
        toy.directory / "editing",
        'echo editing >> wrapped\nn=$#\nwhile [ $n -gt 6 ]; do set -- "$@" "$1"; shift;'
        ' n=$((n-1)); done\nshift 6\nexec "$@"\n',
    )
    configuration = toy.configuration(maximum_iterations=1)
    post_editing = PostEditing(
        editing, toy.directory / "reference0", toy.directory / "symal", toy.directory / "work"
    )
    decoder = replace(configuration.decoding.decoder, several=several, post_editing=post_editing)
    decoding = replace(configuration.decoding, decoder=decoder)
    assert tune(replace(configuration, decoding=decoding)).weights == plain.weights
    wrapped = (toy.directory / "work" / "wrapped").read_text().split()
    assert wrapped == ["several", "editing", "several"]
