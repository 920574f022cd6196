"""The server of ``stand_in.py``, which imports it."""

from __future__ import annotations

import json
import os
import sys
import time
import xmlrpc.client
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any


class Handler(BaseHTTPRequestHandler):
    decoder: Any  # of stand_in.py

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
        if decoder.behavior == "replay":
            self.answer(xmlrpc.client.dumps((self.recorded(body),), methodresponse=True).encode())
            return
        for group in filter(None, request.get("weights", "").split("\t")):
            name, _, values = group.partition("=")
            decoder.weights = {**decoder.weights, name: [float(v) for v in values.split()]}
        entries = [
            {"hyp": f"{words} ", "fvals": f" {' '.join(features)}", "totalScore": score}
            for words, features, score in decoder.n_best(request["text"], request["nbest"])
        ]
        if decoder.behavior == "no-features":
            entries = [{"hyp": entry["hyp"], "totalScore": 0.0} for entry in entries]
        if decoder.behavior == "bars":
            entries[0]["hyp"] = "a ||| b"
        if decoder.behavior == "other-features":
            entries = [{**entry, "fvals": " LM0= 1 2"} for entry in entries]
        reply = {"text": "", **({} if decoder.behavior == "no-list" else {"nbest": entries})}
        if decoder.behavior == "empty-list":
            reply["nbest"] = []
        self.answer(xmlrpc.client.dumps((reply,), methodresponse=True).encode())

    def recorded(self, body: bytes) -> dict[str, object]:
        """The next reply of a file of them; the request goes to another file."""
        replies, log = map(Path, self.decoder.files)
        seen = log.read_text().splitlines() if log.exists() else []
        log.write_text("".join(f"{line}\n" for line in [*seen, json.dumps(body.decode())]))
        return json.loads(replies.read_text())[len(seen)]

    def misbehaves(self, body: bytes) -> bool:
        """Do what the behavior says; whether that was the answer."""
        how = self.decoder.behavior
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
            for path in self.decoder.files if self.decoder.behavior == how else ():
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


def serve(decoder: Any, port: int) -> None:
    if decoder.behavior == "never-ready":
        time.sleep(600)
    if decoder.behavior == "no-start":
        sys.exit("cannot load the model")
    Handler.decoder = decoder
    host = "0.0.0.0" if decoder.behavior == "everywhere" else "127.0.0.1"
    HTTPServer((host, port), Handler).serve_forever()
