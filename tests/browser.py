"""Chromium for tests of pages, driven through a pipe; see the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LIMIT

__all__ = ["Browser", "find_chromium", "open_browser"]

_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--remote-debugging-pipe", "--hide-scrollbars"),
)

_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
"""Codes of the keys that tests press."""


def find_chromium() -> str:
    """The program; the test is skipped where there is none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium to open the page in")
    return browser


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a browser with one empty page, and end it."""
    program = find_chromium()
    from_us, to_browser = os.pipe()
    from_browser, to_us = os.pipe()
    # The browser reads file 3 and writes file 4.
    script = f'exec "$@" 3<&{from_us} 4>&{to_us}'
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command],
            pass_fds=(from_us, to_us),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        try:
            yield Browser(to_browser, from_browser)
        finally:
            os.close(to_browser)
            os.close(from_browser)
            process.terminate()
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Browser:
    """A page of a browser.

    Attributes:
        problems: errors and warnings of its console, requests that it blocked, and addresses that
            it asked for.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a page, and wait until its scripts have shown it."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=path.as_uri() + fragment)
        self.wait_for("document.body?.dataset.ready")

    def wait_for(self, code: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + LIMIT
        while not self.evaluate(f"Boolean({code})"):
            if time.monotonic() > end or self.problems:
                raise AssertionError(f"{code} does not become true: {self.problems}")
            time.sleep(0.02)

    def evaluate(self, code: str) -> Any:
        """Return what an expression is, after waiting for a promise."""
        answer = self._call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"], indent=1))
        return answer["result"].get("value")

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window, and the color scheme."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Move the mouse, or press or release its left button (Moved, Pressed, Released)."""
        self._call(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=x,
            y=y,
            button="left",
            buttons=int(kind != "Released"),
            clickCount=int(kind != "Moved"),
        )

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key that writes no text, or Enter, and release it."""
        code, modifiers = _KEYS[key], 8 if shift else 0
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
                **(text if kind == "keyDown" else {}),
            )

    def swipe(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Move a finger over the screen in a few steps, and lift it; a tap if both are equal."""
        self._call("Emulation.setTouchEmulationEnabled", enabled=True)
        for step in (0, 1, 2, 3, 4, 5, 5):
            x, y = (a + (b - a) * step / 5 for a, b in zip(start, end, strict=True))
            kind = "touchMove" if step else "touchStart"
            self._call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
            # The finger rests before it is lifted, so that the page does not go on scrolling.
            time.sleep(0.2 if step == 5 else 0.02)
        self._call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def print_media(self, media: str) -> None:
        """Show the page as on paper (``print``), or on a screen (an empty text)."""
        self._call("Emulation.setEmulatedMedia", media=media)

    def screenshot(self, path: Path) -> None:
        """Write what the window shows."""
        picture = self._call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(picture))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._from, 1 << 16)
            if not read:
                raise AssertionError("the browser has ended")
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.problems.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            address = parameters["request"]["url"]
            if not address.startswith(("file:", "data:", "about:", "blob:")):
                self.problems.append(f"request of {address}")
