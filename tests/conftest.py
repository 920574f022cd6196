"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import gzip
import itertools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.syncs import skip_syncs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tests.fork_server import ForkServer


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples are drawn, collect cycles seldom, and take signals of tests.

    ``--hypothesis-profile=thorough`` draws twenty times as many examples. Signals arrive even where
    the suite runs in the background: a shell has background jobs ignore interrupts, and what is
    ignored stays so in all children.
    """
    if not config.getoption("benchmark_enable", default=False):
        skip_syncs()
    # No test reads or writes the files that a developer's own commands keep.
    os.environ["MOSESPLUG_CACHE_DIR"] = ""
    # A first call compiles, and machines are shared: time tells nothing about an example.
    for profile, examples in (("few", 25), ("thorough", 500)):
        settings.register_profile(
            profile,
            deadline=None,
            max_examples=examples,
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile(config.getoption("--hypothesis-profile", default=None) or "few")
    # Most of the suite's time is compiling, which makes objects by the million: look seldom for
    # cycles among them.
    gc.set_threshold(50_000, 20, 20)
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    for number, handler in defaults.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def _fail_late_phase(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a phase of a test that does not end; show the stacks of all threads.

    The alarm rings again, in case the first exception is lost (in a ``__del__``, for example) or
    cleaning up hangs, too. A test that sets the same timer itself is left to pytest's
    ``faulthandler_timeout``, which ends the process.
    """
    seconds = float(item.config.getini("faulthandler_timeout")) / 3

    def fail(number: int, frame: FrameType | None) -> None:
        stacks = [
            f"Thread {thread}:\n{''.join(traceback.format_stack(top))}"
            for thread, top in sys._current_frames().items()
        ]
        pytest.fail("\n".join([f"still running after {seconds:g} s", *stacks]))

    earlier = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)


# trylast: inside all other wrappers, so that the alarm interrupts the test and not pytest.
_innermost = pytest.hookimpl(wrapper=True, trylast=True)
pytest_runtest_setup = _innermost(_fail_late_phase)
pytest_runtest_call = _innermost(_fail_late_phase)
pytest_runtest_teardown = _innermost(_fail_late_phase)


def pytest_enter_pdb() -> None:
    """Let a debugger stay in a test."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture
def few_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let MERT double its restarts on small problems, not multiply them by 20."""
    from mosesplug.optimizers.batch.mert import mert  # not for tests that do not optimize

    monkeypatch.setattr(mert, "MOST_RESTARTS", 2)


@pytest.fixture
def figures_without_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the figures of report pages, but do not lay them out, in tests of other things.

    Both take half of the time of a page. tests/results/report has tests of them.
    """
    from mosesplug.results.report import figures  # not for tests without reports

    def draw_only(draw: Callable[[Figure], None], name: str, label: str) -> str:
        figures._draw_with_style(draw)
        return f"<svg><title>{label}</title></svg>"

    monkeypatch.setattr(figures, "_save_svg", draw_only)


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Run programs and launchers in forks of a process that has imported the package."""
    from tests.fork_server import serve_programs  # not for tests without programs

    with serve_programs() as server:
        yield server


@pytest.fixture
def forked_launchers(fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``install-tools`` write launchers whose programs are such forks.

    tests/cli/moses/test_install.py has tests of the launchers themselves.
    """
    from mosesplug.cli.moses import install  # not for tests without launchers

    monkeypatch.setattr(install, "launcher", fork_server.launcher)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Directory of recorded output of the real Moses programs; skips where it is absent."""
    default = Path(__file__).parent.parent.parent / "shared" / "data"
    root = Path(os.environ.get("MOSES_RECORDINGS", default))
    if not (root / "multi30k-de-en").is_dir():
        pytest.skip(f"no recorded Moses output at {root} (set MOSES_RECORDINGS)")
    return root


@pytest.fixture(scope="session")
def multi30k(recordings: Path) -> Path:
    """The German-English system among the recordings."""
    return recordings / "multi30k-de-en"


@pytest.fixture(scope="session")
def short_lists(multi30k: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The first 120 sentences of three recorded n-best lists, which repeat each other's lines.

    Each list has more than one block, and together they are too large to be parsed in full.
    """
    from formats.nbest.files import BLOCK_BYTES  # not for tests of the suite, which start sooner

    directory = tmp_path_factory.mktemp("lists")
    paths = []
    for number in (1, 2, 3):
        paths.append(directory / f"run{number}.best100.out")
        with gzip.open(multi30k / "mert-work" / f"run{number}.best100.out.gz") as lines:
            kept = itertools.takewhile(lambda line: not line.startswith(b"120 "), lines)
            paths[-1].write_bytes(b"".join(kept))
        assert paths[-1].stat().st_size > BLOCK_BYTES
    return paths
