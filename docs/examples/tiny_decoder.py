"""A decoder in 50 lines: tiny_decoder.py WEIGHTS INPUT NBEST [SIZE]

It translates word by word with the phrases in phrase-table.gz, and keeps the best hypotheses after
each word. WEIGHTS is a file of `--weights-format json`.
"""

import gzip
import json
import math
import sys
from pathlib import Path

TRANSLATIONS = 8


def read_phrases(path):
    """Return the most probable translations of each word, with the logs of their four scores."""
    phrases = {}
    with gzip.open(path, "rt", encoding="utf-8") as table:
        for line in table:
            source, target, scores = line.split(" ||| ")[:3]
            if " " not in source:
                logs = [math.log(float(score)) for score in scores.split()]
                phrases.setdefault(source, []).append((target, logs))
    best = {word: sorted(found, key=lambda each: -sum(each[1])) for word, found in phrases.items()}
    return {word: found[:TRANSLATIONS] for word, found in best.items()}


def decode(sentence, phrases, weights, size):
    """Return the best hypotheses as (model score, text, values of Lexicon, value of Words)."""
    beam = [(0.0, "", [0.0] * 4, 0)]
    for word in sentence.split():
        longer = []
        for _, text, lexicon, words in beam:
            for target, logs in phrases.get(word, [(word, [-5.0] * 4)]):
                values = [a + b for a, b in zip(lexicon, logs, strict=True)]
                length = words + len(target.split())
                score = sum(w * v for w, v in zip(weights["Lexicon"], values, strict=True))
                score += weights["Words"] * length
                longer.append((score, f"{text} {target}".strip(), values, length))
        beam = sorted(longer, reverse=True)[:size]
    return beam


def main(weights_path, input_path, nbest_path, size="50"):
    weights = json.loads(Path(weights_path).read_text())["dense"]
    phrases = read_phrases("phrase-table.gz")
    with Path(nbest_path).open("w", encoding="utf-8") as nbest:
        for number, sentence in enumerate(Path(input_path).read_text("utf-8").splitlines()):
            for score, text, lexicon, words in decode(sentence, phrases, weights, int(size)):
                values = " ".join(f"{value:.6g}" for value in lexicon)
                features = f"Lexicon= {values} Words= {words}"
                nbest.write(f"{number} ||| {text} ||| {features} ||| {score:.6g}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
