"""A decoder with Moses' command line that has no model and misbehaves on demand.

    stand_in.py -config INI [-weight-overwrite W] [-weight-file F] [-behave HOW [FILE]]
        [-pids FILE]
        -show-weights
        -n-best-list LIST N distinct -input-file INPUT
        --server --serial --server-port PORT

It needs the standard library only and starts fast. A sentence is translated by its words in each
rotation. Its features are LM0 (one), TM0 (two, the second not tuned) and, for one word, W_<word>.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

Weights = dict[str, list[float]]


def arguments() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for word in sys.argv[1:]:
        if word.startswith("-") and not word[1:2].isdigit():
            values = found.setdefault(word.lstrip("-"), [])
        else:
            values.append(word)
    return found


def weights_of(text: str, groups: Weights) -> Weights:
    """``Name= v x Name= v`` on top of others."""
    new = dict(groups)
    name = ""
    for word in text.split():
        if word.endswith("="):
            name = word[:-1]
            new[name] = []
        else:
            place = len(new[name])
            new[name].append(groups[name][place] if word == "x" else float(word))
    return new


class Decoder:
    def __init__(self, given: dict[str, list[str]]) -> None:
        self.weights = weights_of(
            "".join(given.get("weight-overwrite", [])), {"LM0": [1.0], "TM0": [0.5, 2.0]}
        )
        self.loaded = self.weights
        self.behavior, *self.files = given.get("behave", [""])
        self.sparse: dict[str, float] = {}
        if "weight-file" in given:
            lines = Path(given["weight-file"][0]).read_text().splitlines()
            self.sparse = {line.split()[0]: float(line.split()[1]) for line in lines}

    def n_best(self, text: str, size: int) -> list[tuple[str, list[str], float]]:
        """Translation, features as they are printed, and score of each hypothesis, ranked."""
        words = text.split()
        found = []
        for turn in range(max(1, len(words))):
            turned = words[turn:] + words[:turn]
            lm, tm = -0.5 * turn - len(words), ((turn * 7) % 5 - 2.0, 1.0)
            features = [f"LM0= {lm:g} TM0= {tm[0]:g}"]
            sparse = 0.0
            if turned:
                features.append(f"W_{turned[0]}= 1")
                sparse = self.sparse.get(f"W_{turned[0]}", 0.0)

            def score(w: Weights, lm=lm, tm=tm, sparse=sparse) -> float:
                return w["LM0"][0] * lm + w["TM0"][0] * tm[0] + w["TM0"][1] * tm[1] + sparse

            rank = score(self.loaded if self.behavior == "memory" else self.weights)
            found.append((rank, " ".join(turned), features, score(self.weights)))
        found.sort(key=lambda entry: -entry[0])
        return [(words, features, score) for _, words, features, score in found[:size]]


def batch(decoder: Decoder, given: dict[str, list[str]]) -> None:
    path, size, *_ = given["n-best-list"]
    with Path(path).open("w") as out:
        for number, line in enumerate(Path(given["input-file"][0]).read_text().splitlines()):
            for words, features, score in decoder.n_best(line, int(size)):
                out.write(f"{number} ||| {words} ||| {' '.join(features)} ||| {score:g}\n")


def main() -> None:
    given = arguments()
    if "show-weights" in given:
        print("LM0= 1\nTM0= 0.5 UNTUNEABLECOMPONENT")
        return
    for path in given.get("pids", []):
        with Path(path).open("a") as pids:
            pids.write(f"{os.getpid()}\n")
    decoder = Decoder(given)
    if "server" in given:
        # Only servers need HTTP, which takes longer to import than a list to write.
        sys.path.insert(0, str(Path(__file__).parent))
        from stand_in_server import serve

        serve(decoder, int(given["server-port"][0]))
    else:
        batch(decoder, given)


if __name__ == "__main__":
    main()
