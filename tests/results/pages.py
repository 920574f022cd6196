"""Render and check pages: whole, without other files, and without complaints of a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mosesplug.results.report.data import ReportData
from mosesplug.results.report.page import render_pages
from tests.waiting import LIMIT

__all__ = ["check_whole", "open_in_browser", "render_page"]


class _Reader(HTMLParser):
    """Sees that elements are closed in order, and collects addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_whole(page: str) -> None:
    """Check that all elements are closed, and that the page needs no other file."""
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    assert all(not re.match("[a-z]+:|//", a) or a == "data:," for a in reader.addresses)


def open_in_browser(page: str, directory: Path) -> str:
    """Return the page as Chromium shows it; skip the test if there is none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium to open the page in")
    path = directory / "page.html"
    path.write_text(page)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={directory / 'profile'}", "--enable-logging=stderr"]
    command += ["--window-size=400,800", "--dump-dom", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert "CONSOLE" not in shown.stderr
    return shown.stdout


def render_page(data: ReportData, title: str) -> str:
    """The printed report of one run."""
    return render_pages([data], [title], title, None)
