"""Write odd_text.json: what jiwer 4.0 and Moses' extractor count in text with odd characters.

usage: MOSES_HOME=DIR python record.py    (needs jiwer)
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from pathlib import Path

import jiwer

WORDS = ("a", "b", "B", "äß", "漢字", "🙂", "e\u0301", "it's", "&amp;", ".", "x\u200by")
BLANKS = (" ", " ", " ", "  ", "\t", "\r", "\u00a0", "\u2009 ", " \u3000", "\u0085", "\x1c", "\v ")


def draw(rng: random.Random) -> str:
    """Return a line; Moses' lists cannot begin or end with a blank."""
    words = rng.choices(WORDS, k=rng.randrange(1, 9))
    text = words[0] + "".join(rng.choice(BLANKS) + word for word in words[1:])
    return text if rng.random() < 0.7 else f"\u00a0{text}\u2028"


def count_with_moses(metric: str, reference: str, hypothesis: str) -> list[int]:
    with tempfile.TemporaryDirectory() as place:
        for name, line in (("ref", reference), ("list", f"0 ||| {hypothesis} ||| F= 1 ||| 1")):
            (Path(place) / name).write_bytes(f"{line}\n".encode())
        command = [f"{os.environ['MOSES_HOME']}/bin/extractor", "--sctype", metric]
        command += ["--reference", "ref", "--nbest", "list", "--scfile", "scores"]
        subprocess.run(
            [*command, "--ffile", "features"], cwd=place, check=True, capture_output=True
        )
        return [*map(int, (Path(place) / "scores").read_text().splitlines()[1].split())]


def main() -> None:
    rng = random.Random(1)
    records = []
    for _ in range(60):
        reference = draw(rng)
        hypothesis = reference if rng.random() < 0.2 else draw(rng)
        words = jiwer.process_words([reference], [hypothesis])
        letters = jiwer.process_characters([reference], [hypothesis])
        records.append(
            {
                "reference": reference,
                "hypothesis": hypothesis,
                "jiwer": {
                    "MER": [words.hits, words.substitutions, words.deletions, words.insertions],
                    "CER": [
                        letters.substitutions + letters.deletions + letters.insertions,
                        letters.hits + letters.substitutions + letters.deletions,
                    ],
                },
                "moses": {
                    metric: count_with_moses(metric, reference, hypothesis)
                    for metric in ("BLEU", "PER", "WER", "CDER", "TER")
                },
            }
        )
    lines = ",\n".join(json.dumps(record) for record in records)
    Path(__file__).with_name("odd_text.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
