"""COMET for ``--score-command``: a model that is loaded once, and a batch after the other."""

import contextlib
import json
import sys

from comet import download_model, load_from_checkpoint

NAME = "Unbabel/wmt22-comet-da"
answers = sys.stdout
with contextlib.redirect_stdout(sys.stderr):  # only versions and scores go to stdout
    model = load_from_checkpoint(download_model(NAME))
    print(json.dumps({"version": NAME}), file=answers, flush=True)
    batch = []
    for line in sys.stdin:
        text = json.loads(line)
        references = text["references"]
        batch.append({"src": text["source"], "mt": text["hypothesis"], "ref": references[0]})
        if not text["remaining"]:
            scores = model.predict(batch, batch_size=64, gpus=1).scores
            print(*scores, sep="\n", file=answers, flush=True)
            batch = []
