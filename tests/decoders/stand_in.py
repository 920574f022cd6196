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

import json
import os
import sys
import time
import xmlrpc.client
from http.server import BaseHTTPRequestHandler, HTTPServer
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
        self.behaviour, *self.files = given.get("behave", [""])
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

            rank = score(self.loaded if self.behaviour == "memory" else self.weights)
            found.append((rank, " ".join(turned), features, score(self.weights)))
        found.sort(key=lambda entry: -entry[0])
        return [(words, features, score) for _, words, features, score in found[:size]]


def batch(decoder: Decoder, given: dict[str, list[str]]) -> None:
    path, size, *_ = given["n-best-list"]
    with Path(path).open("w") as out:
        for number, line in enumerate(Path(given["input-file"][0]).read_text().splitlines()):
            for words, features, score in decoder.n_best(line, int(size)):
                out.write(f"{number} ||| {words} ||| {' '.join(features)} ||| {score:g}\n")


class Handler(BaseHTTPRequestHandler):
    decoder: Decoder

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        parameters, method = xmlrpc.client.loads(body)
        if method != "translate":
            self.answer(xmlrpc.client.dumps(([],), methodresponse=True).encode())
            return
        (request,) = parameters
        if self.misbehaves(body):
            return
        decoder = self.decoder
        if decoder.behaviour == "replay":
            self.answer(xmlrpc.client.dumps((self.recorded(body),), methodresponse=True).encode())
            return
        for group in filter(None, request.get("weights", "").split("\t")):
            name, _, values = group.partition("=")
            decoder.weights = {**decoder.weights, name: [float(v) for v in values.split()]}
        entries = [
            {"hyp": f"{words} ", "fvals": f" {' '.join(features)}", "totalScore": score}
            for words, features, score in decoder.n_best(request["text"], request["nbest"])
        ]
        if decoder.behaviour == "no-features":
            entries = [{"hyp": entry["hyp"], "totalScore": 0.0} for entry in entries]
        if decoder.behaviour == "bars":
            entries[0]["hyp"] = "a ||| b"
        if decoder.behaviour == "other-features":
            entries = [{**entry, "fvals": " LM0= 1 2"} for entry in entries]
        reply = {"text": "", **({} if decoder.behaviour == "no-list" else {"nbest": entries})}
        if decoder.behaviour == "empty-list":
            reply["nbest"] = []
        self.answer(xmlrpc.client.dumps((reply,), methodresponse=True).encode())

    def recorded(self, body: bytes) -> dict[str, object]:
        """The next reply of a file of them; the request goes to another file."""
        replies, log = map(Path, self.decoder.files)
        seen = log.read_text().splitlines() if log.exists() else []
        log.write_text("".join(f"{line}\n" for line in [*seen, json.dumps(body.decode())]))
        return json.loads(replies.read_text())[len(seen)]

    def misbehaves(self, body: bytes) -> bool:
        """Do what the behaviour says; whether that was the answer."""
        how = self.decoder.behaviour
        if how.endswith("-once"):
            how = how.removesuffix("-once")
            marker = Path(self.decoder.files[0])
            if marker.exists() or b"fatal" not in body:
                return False
            marker.touch()
        if how.endswith("-at"):
            how = how.removesuffix("-at") if self.decoder.files[0].encode() in body else ""
        if how == "dies":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)
        if how == "drops":
            self.close_connection = True
            return True
        if how == "sleeps":
            for path in self.decoder.files if self.decoder.behaviour == how else ():
                Path(path).touch()
            time.sleep(600)
        if how == "garbage":
            self.answer(b"<html>Not here</html>")
            return True
        if how == "no-http":
            self.wfile.write(b"who are you?\r\n\r\n")
            return True
        if how == "refuses":
            fault = xmlrpc.client.Fault(-501, "no such word")
            self.answer(xmlrpc.client.dumps(fault, methodresponse=True).encode())
            return True
        if how == "status":
            self.send_error(500)
            return True
        if how == "number":
            self.answer(xmlrpc.client.dumps((7,), methodresponse=True).encode())
            return True
        if how == "cut":
            self.answer(b"<?xml version='1.0'?>", claimed=1000)
            return True
        return False

    def answer(self, body: bytes, claimed: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(claimed or len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(decoder: Decoder, port: int) -> None:
    if decoder.behaviour == "never-ready":
        time.sleep(600)
    if decoder.behaviour == "no-start":
        sys.exit("cannot load the model")
    Handler.decoder = decoder
    host = "0.0.0.0" if decoder.behaviour == "everywhere" else "127.0.0.1"
    HTTPServer((host, port), Handler).serve_forever()


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
        serve(decoder, int(given["server-port"][0]))
    else:
        batch(decoder, given)


if __name__ == "__main__":
    main()
