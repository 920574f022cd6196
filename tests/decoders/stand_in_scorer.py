"""A command that scores, for tests: ``stand_in_scorer.py LOG [BEHAVIOR [PLACE]]``.

The score of a hypothesis is the share of its words that a reference has, or without references its
length; ``bleu`` answers the statistics of BLEU. LOG gets a line for each hypothesis that is scored.
What it does wrong comes at the fourth hypothesis, or at PLACE from 0.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path


def count_bleu(words: list[str], reference: list[str]) -> str:
    """The statistics of BLEU with one reference."""
    numbers = []
    for order in range(1, 5):
        own, known = (
            Counter(zip(*(text[k:] for k in range(order)), strict=False))
            for text in (words, reference)
        )
        numbers += [(own & known).total(), own.total()]
    return " ".join(map(str, [*numbers, len(reference)]))


log, behavior = sys.argv[1], (sys.argv[2:] or ["right"])[0]
place = int((sys.argv[3:] or [28 if behavior == "kills" else 3])[0])
version = os.environ.get("SCORER_VERSION", "1")
if behavior == "early":
    print("Loading the model", flush=True)
if behavior == "silent":
    time.sleep(60)
ready = {"version": f"scorer {version}", **({"numbers": 2} if "ratio" in behavior else {})}
print(
    f"version scorer {version}" if behavior in ("tsv", "lines") else json.dumps(ready), flush=True
)
answers = []
for number, line in enumerate(sys.stdin):
    text = line.rstrip("\n")
    if behavior == "lines":
        request = {"id": -1, "hypothesis": text, "references": [], "remaining": 0}
    elif behavior == "tsv":
        sentence, source, hypothesis, *references = text.split("\t")
        request = {"id": int(sentence), "hypothesis": hypothesis, "references": references}
        request |= {"remaining": 0, "source": source}
    else:
        request = json.loads(line)
    words, known = request["hypothesis"].split(), set(" ".join(request["references"]).split())
    matches = sum(word in known for word in words) if known else len(words)
    answer = f"{matches} {max(1, len(words))}"
    if "ratio" not in behavior:
        answer = repr(matches / max(1, len(words)) if known else float(matches))
    if behavior == "bleu":
        answer = count_bleu(words, request["references"][0].split())
    if number == place:
        wrong = {
            "nan": "nan",
            "text": "no idea",
            "few": "",
            "above": "9 2",
            "many": f"{answer}\n{answer}",
        }
        answer = wrong.get(behavior.split()[0], answer)
        if behavior == "dies":
            print("out of memory", file=sys.stderr)
            sys.exit(3)
        if behavior == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if behavior == "kills" and not Path(f"{log}.killed").exists():
            Path(f"{log}.killed").touch()
            caller = Path(f"/proc/{os.getppid()}/stat").read_text().split()[3]
            os.kill(int(caller), signal.SIGKILL)
            time.sleep(60)
        if behavior == "hangs":
            time.sleep(60)
    with Path(log).open("a") as file:
        file.write(f"{request['id']}\t{request.get('source')}\t{request['hypothesis']}\n")
    answers.append(answer)
    if not request["remaining"]:
        print("".join(f"{answer}\n" for answer in answers if answer), end="", flush=True)
        answers = []
