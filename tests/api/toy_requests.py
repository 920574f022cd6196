"""Decode the requests of a tuner with the toy system, and compare the runs."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mosesplug
from mosesplug import Request, Tuner

COMMAND = Path(__file__).parents[1] / "data" / "toy" / "command.py"
FEATURES = {
    "Distortion0": 0.3,
    "LM0": 0.5,
    "WordPenalty0": -1.0,
    "TranslationModel0": (0.2, 0.2, 0.2),
}
SETTINGS: dict[str, Any] = {
    "features": FEATURES,
    "metric_settings": "case:true",
    "algorithm": "mert",
    "options": {"restarts": 1},
    "nbest": 15,
    "seed": 5,
    "max_iterations": 3,
}


@cache
def load_command() -> ModuleType:
    """Return the decoder of the toy system, to run it in this process."""
    spec = importlib.util.spec_from_file_location("toy_command", COMMAND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(COMMAND.parent)  # and take back what the module adds
        patch.delitem(sys.modules, "decoder", raising=False)
        spec.loader.exec_module(module)
        sys.modules.pop("decoder")
    return module


def run_command(*words: object) -> None:
    """Run the toy decoder: weights, input, n-best file, and number of hypotheses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(COMMAND), *map(str, words)])
        load_command().main()


def decode(request: Request) -> Path:
    """Decode the toy system's input with the weights of a request."""
    nbest = Path(f"lists.{request.iteration}")
    run_command(request.weights_path, "input", nbest, request.nbest_size)
    return nbest


def decode_batch(request: Request) -> Path:
    """Decode a mini-batch, and number its lists as the tuning set."""
    assert request.sentences_path is not None
    ids = request.sentences_path.read_text().split()
    lines = Path("input").read_text().splitlines(keepends=True)
    Path("part").write_text("".join(lines[int(number)] for number in ids))
    run_command(request.weights_path, "part", "lists", request.nbest_size)
    told = Path("told.nbest")
    parts = (line.partition(" ") for line in Path("lists").read_text().splitlines(keepends=True))
    told.write_text("".join(f"{ids[int(place)]} {rest}" for place, _, rest in parts))
    return told


def decode_any(request: Request) -> Path:
    """Decode what a request asks for: the tuning set, a mini-batch, or a held-out text."""
    if request.source_path is None:
        return decode(request) if request.sentences is None else decode_batch(request)
    run_command(request.weights_path, request.source_path, "text.lists", 1)
    return Path("text.lists")


def open_tuner(name: str = "work", **more: Any) -> Tuner:
    return Tuner.open(name, references="reference", **(SETTINGS | more))


def run_to_end(name: str, **more: Any) -> mosesplug.Run:
    with open_tuner(name, **more) as tuner:
        while (request := tuner.ask()) is not None:
            tuner.tell(request, decode(request))
        return tuner.result


def left_by(name: str) -> dict[str, Any]:
    """Return the files of a run; times and the name of the directory are taken out."""
    directory = Path(name).absolute()
    files: dict[str, Any] = {
        path.name: path.read_bytes().replace(str(directory).encode(), b"WORK")
        for path in directory.iterdir()
        if path.is_file()
    }
    summary = json.loads(files["summary.json"])
    del summary["finished"]
    for iteration in summary["iterations"]:
        del iteration["seconds"]
    return {**files, "summary.json": summary}


def figures(name: str) -> Any:
    summary = json.loads((Path(name) / "summary.json").read_text())
    for iteration in summary["iterations"]:
        del iteration["seconds"]
    return summary["iterations"], summary["result"]["weights"], summary["signature"]
