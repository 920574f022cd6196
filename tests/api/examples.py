"""The files that the examples of docstrings use."""

from __future__ import annotations

import gzip
from pathlib import Path

from formats.graphs.hypergraph import Edge, write_hypergraph, write_hypergraph_weights
from tests.results.runs import make_run

REFERENCES = ("the house is small", "yes it is", "we see the old town", "good morning to you")

_HYPOTHESES = (
    ("the house is small", "a house is little", "the small house"),
    ("yes it is", "yes it", "no it is"),
    ("we see the old town", "we see old town", "see we the city"),
    ("good morning to you", "good morning you", "morning good"),
)

_DECODER = """\
import sys

weights_path, input_path, nbest_path = sys.argv[1:]
weights = {}
for line in open(weights_path):
    name, value = line.split()
    weights[name] = float(value)
with open(nbest_path, "w") as nbest:
    for sentence, hypotheses in enumerate(HYPOTHESES):
        scored = []
        for rank, text in enumerate(hypotheses):
            words = len(text.split())
            lm = -0.9 * words - 0.5 * rank
            score = weights["LM0="] * lm - weights["WordPenalty0="] * words
            scored.append((score, lm, -words, text))
        for score, lm, penalty, text in sorted(scored, reverse=True):
            features = f"LM0= {lm:g} WordPenalty0= {penalty}"
            print(sentence, text, features, score, sep=" ||| ", file=nbest)
"""

_EXPERIMENT = """\
baseline = "kbmira"
[settings]
decode-command = "python3 decoder.py {weights} {input} {nbest}"
max-iterations = 1
[features.two]
config = "start.weights"
[tuning.dev]
input = "dev.fr"
refs = "dev.en"
[tests.test]
input = "dev.fr"
refs = "dev.en"
[systems.kbmira]
[systems.untuned]
untuned = true
"""


def write_example_files(directory: Path) -> None:
    """Write ``run1.best100.out.gz``, ``dev.en`` and ``run1.dense`` of a toy system.

    ``dev.fr``, ``start.weights`` and ``decoder.py`` belong to it; ``small.toml`` is an experiment
    with it. ``mert-work`` is the working directory of another one.
    """
    make_run(directory / "mert-work")
    lines = []
    for sentence, hypotheses in enumerate(_HYPOTHESES):
        scored = []
        for rank, text in enumerate(hypotheses):
            words = len(text.split())
            model = -0.9 * words - 0.5 * rank
            scored.append((0.5 * model - 0.5 * words, model, -words, text))
        for score, model, penalty, text in sorted(scored, reverse=True):
            features = f"LM0= {model:g} WordPenalty0= {penalty}"
            lines.append(f"{sentence} ||| {text}  ||| {features} ||| {score:g}\n")
    (directory / "run1.best100.out.gz").write_bytes(gzip.compress("".join(lines).encode()))
    (directory / "dev.en").write_text("\n".join(REFERENCES) + "\n")
    (directory / "run1.dense").write_text("LM0= 0.5\nWordPenalty0= 0.5\n")
    (directory / "start.weights").write_text("LM0= 0.2\nWordPenalty0= 0.8\n")
    (directory / "dev.fr").write_text("\n".join(REFERENCES) + "\n")
    (directory / "decoder.py").write_text(f"HYPOTHESES = {_HYPOTHESES!r}\n{_DECODER}")
    (directory / "small.toml").write_text(_EXPERIMENT)
    for name, size in (("search-graphs", 2), ("wider-graphs", 3)):
        (directory / name).mkdir()
        write_hypergraph_weights(directory / name / "weights", ["LM0"], [1.0])
        for sentence, hypotheses in enumerate(_HYPOTHESES):
            # The reference is best, but in sentence 2 lost, and in sentence 3 worse than another.
            kept = [*hypotheses[1:], hypotheses[0]] if sentence == 2 else [*hypotheses]
            scores = {hypotheses[0]: -3.0 if sentence == 3 else -1.0}
            edges = [
                Edge(tuple(text.encode().split()), 1, (scores.get(text, -2.0),))
                for text in kept[:size]
            ]
            write_hypergraph(directory / name / f"{sentence}.gz", ["LM0"], [edges])
