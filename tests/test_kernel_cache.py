"""Where kernels are cached: read-only installations, no home, other users' directories."""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numba
import pytest

import mosesplug
from mosesplug import kernel_cache, kernels

USER = 54321
AS_USER = [
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
    *(f"--{kind}=-all,+dac_read_search" for kind in ("inh-caps", "ambient-caps", "bounding-set")),
]
"""Runs a command as a user who has no home, and can read but not write the files of others."""

PROGRAM = """
import mosesplug.kernels as kernels
kernels.load_compiler()
print(sum(kernels._nothing.dispatcher.stats.cache_hits.values()), kernels.__file__)
"""

NO_HOME = """
import pwd
def find_nobody(user):
    raise KeyError(user)
pwd.getpwuid = find_nobody
"""
"""Makes an ordinary user one whom the system does not know, so that no home is found."""

Start = Callable[..., subprocess.Popen[str]]
"""Starts a process, with more environment variables."""


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A copy of the modules that compile kernels, which cannot be written."""
    site = tmp_path / "site-packages"
    package = site / "mosesplug"
    package.mkdir(parents=True)
    for name in ("__init__.py", "kernels.py", "kernel_cache.py"):
        shutil.copy(Path(mosesplug.__file__).with_name(name), package)
    for directory in (package, site):
        directory.chmod(0o555)
    return site


@pytest.fixture
def compile_kernel(installation: Path, tmp_path: Path) -> Start:
    """Start a process that compiles a kernel, as a user without home unless ``HOME`` is given."""
    prefix = AS_USER if os.geteuid() == 0 else []
    if prefix and subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this root user cannot become another one (setpriv)")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(installation),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(temporary),
    }
    program = PROGRAM if prefix else NO_HOME + PROGRAM

    def start(**variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*prefix, sys.executable, "-c", program],
            env=environment | variables,
            cwd=installation,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_read_only_installation_with_a_home(compile_kernel: Start, tmp_path: Path) -> None:
    """As on most clusters: kernels are kept in the user's cache directory."""
    home = tmp_path / "home"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, USER, USER)
    hits = []
    for _ in range(2):
        process = compile_kernel(HOME=str(home))
        out, error = process.communicate(timeout=120)
        assert (process.returncode, error) == (0, "")
        hits.append(out.split()[0])
    assert hits == ["0", "1"]
    assert list((home / ".cache" / "numba").rglob("kernels._nothing*.nbc"))
    assert not list((tmp_path / "tmp").iterdir())


def test_read_only_installation_without_home(
    compile_kernel: Start, installation: Path, tmp_path: Path
) -> None:
    """Several processes share one private cache, whoever creates it; one of them compiles."""
    together = [compile_kernel() for _ in range(3)]
    outputs = [(process.communicate(timeout=120), process.returncode) for process in together]
    module = installation / "mosesplug" / "kernels.py"
    for (out, error), code in outputs:
        assert (code, error) == (0, "")
        assert out.endswith(f" {module}\n")
    assert sorted(out.split()[0] for (out, _), _ in outputs) == ["0", "1", "1"]
    user = USER if os.geteuid() == 0 else os.geteuid()
    cache = tmp_path / "tmp" / f"mosesplug-kernels-{user}"
    assert (cache.stat().st_mode & 0o777, cache.stat().st_uid) == (0o700, user)
    assert {path.suffix for path in cache.rglob("kernels._nothing*")} == {".nbc", ".nbi"}


def test_whoever_installs_compiles_for_all_users(
    compile_kernel: Start, installation: Path, tmp_path: Path
) -> None:
    """Users read what is cached beside the modules, although they cannot write there."""
    package = installation / "mosesplug"
    package.chmod(0o755)
    installer = {"PYTHONPATH": str(installation), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [sys.executable, "-P", "-c", PROGRAM]
    subprocess.run(command, env=environment | installer, check=True, cwd=tmp_path, timeout=120)
    assert list((package / "__pycache__").glob("*.nbi"))
    (package / "__pycache__").chmod(0o555)
    package.chmod(0o555)
    process = compile_kernel()
    out, error = process.communicate(timeout=120)
    assert (out[:2], error) == ("1 ", "")
    assert not list((tmp_path / "tmp").rglob("*.nbc"))


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget where kernels are cached, and restore that afterwards."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(kernel_cache, "_warnings_left", threading.Semaphore(1))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    decisions = (
        kernel_cache.has_home,
        kernel_cache.is_own_cache,
        kernel_cache.use_private_cache,
    )
    for decision in decisions:
        decision.cache_clear()
    yield
    for decision in decisions:
        decision.cache_clear()


@pytest.mark.usefixtures("undecided")
def test_one_warning_if_no_directory_can_be_written(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(kernel_cache, "_temporary_directories", lambda: iter(["/nonexistent"]))
    with caplog.at_level(logging.WARNING):
        found = [kernels.kernel(lambda number: number + 1)(1) for _ in range(2)]
    assert found == [2, 2]
    [record] = caplog.records
    assert "Set NUMBA_CACHE_DIR to a writable directory" in record.getMessage()
    assert not numba.config.CACHE_DIR


@pytest.mark.usefixtures("undecided")
@pytest.mark.parametrize("refused", ["mode", "link", "file"])
def test_directories_that_others_can_write_are_not_used_as_cache(
    refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
    name = f"mosesplug-kernels-{os.geteuid()}"
    taken = first / name
    if refused == "mode":
        taken.mkdir()
        taken.chmod(0o770)
    elif refused == "link":
        (tmp_path / "mine").mkdir(mode=0o700)
        taken.symlink_to(tmp_path / "mine")
    else:
        taken.touch()
    monkeypatch.setattr(
        kernel_cache, "_temporary_directories", lambda: iter([str(first), str(second)])
    )
    assert kernel_cache.use_private_cache()
    assert str(second / name) == numba.config.CACHE_DIR


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")
@pytest.mark.usefixtures("undecided")
def test_directories_of_other_users_are_not_used_as_cache(tmp_path: Path) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir(mode=0o700)
    os.chown(directory, USER, USER)
    assert not kernel_cache._is_private(directory)


@pytest.mark.usefixtures("undecided")
@pytest.mark.parametrize(
    ("which", "mode", "owner", "message"),
    [
        ("named", 0o777, None, "which all users can write"),
        ("named", 0o775, None, "which its group can write"),
        ("inner", 0o757, None, "which all users can write"),
        pytest.param(
            *("named", 0o755, USER, f"which belongs to user {USER}"),
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away"),
        ),
        ("named", 0o755, None, None),
    ],
)
def test_a_named_cache_that_others_can_write_is_not_used(
    which: str,
    mode: int,
    owner: int | None,
    message: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kernels there are unpickled and executed."""
    module = tmp_path / "site" / "shared.py"
    module.parent.mkdir()
    module.write_text("def add_one(number):\n    return number + 1\n")
    monkeypatch.syspath_prepend(module.parent)
    monkeypatch.setattr(kernel_cache, "_is_group_of_one", lambda group, user: False)
    monkeypatch.setattr(kernel_cache, "_temporary_directories", lambda: iter([str(tmp_path)]))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "named"))
    (tmp_path / "named").mkdir(mode=0o755)
    shared = importlib.import_module("shared")
    inner = Path(numba.njit(cache=True)(shared.add_one)._cache.cache_path)
    inner.mkdir(exist_ok=True)
    changed = inner if which == "inner" else tmp_path / "named"
    changed.chmod(mode)
    if owner is not None:
        os.chown(changed, owner, owner)
    with caplog.at_level(logging.WARNING):
        assert kernels.kernel(shared.add_one)(1) == 2
    del sys.modules["shared"]
    used = [path.suffix for path in inner.iterdir()]
    if message is None:
        assert ".nbi" in used
        assert not caplog.records
    else:
        assert not used
        (record,) = caplog.records
        assert message in record.getMessage()
        assert "NUMBA_CACHE_DIR" in record.getMessage()
        assert list(tmp_path.glob("mosesplug-kernels-*/*/*.nbi"))


def variables(site: Path, cache: Path) -> dict[str, str]:
    """Return an environment for a copy of the package, beside which nothing is cached."""
    return os.environ | {
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(cache),
    }


HOLDS = """
import sys
import mosesplug.kernels as kernels
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
class Holding(event.Listener):
    def on_start(self, event):
        print("compiles", flush=True)
        sys.stdin.readline()
    def on_end(self, event):
        pass
event.register("numba:compile", Holding())
kernels.load_compiler()
"""
"""Waits for a line while it compiles a kernel."""

WAITS = """
import time
import mosesplug.kernel_cache as kernel_cache
def sleep(seconds, sleep=time.sleep):
    print("waits", flush=True)
    sleep(seconds)
kernel_cache.time.sleep = sleep
"""
"""Tells of each time that it waits for another process."""


@pytest.mark.parametrize("killed", [True, False])
def test_processes_wait_for_one_that_compiles(
    killed: bool, installation: Path, tmp_path: Path
) -> None:
    """They load what it has compiled; if it dies, one of them compiles."""
    start = partial(
        subprocess.Popen,
        env=variables(installation, tmp_path / "cache"),
        cwd=installation,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with start([sys.executable, "-c", HOLDS]) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "compiles\n"
        with start([sys.executable, "-c", WAITS + PROGRAM]) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "waits\n"
            if killed:
                first.kill()
            else:
                first.communicate("go on\n", timeout=120)
            hits = second.stdout.read().splitlines()[-1].split()[0]
    assert (hits, second.returncode) == ("0" if killed else "1", 0)


def test_a_full_disk_costs_time_only(installation: Path, tmp_path: Path) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n" + PROGRAM
    done = subprocess.run(
        [sys.executable, "-c", limited],
        env=variables(installation, tmp_path / "cache"),
        cwd=installation,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.startswith("0 "), done.stderr
    assert done.stderr.count("warning: compiled code cannot be cached") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_home_that_forbids_execution(installation: Path, tmp_path: Path) -> None:
    """Cached code is data that the process maps itself: it needs no permission of the disk."""
    home = tmp_path / "home"
    home.mkdir()
    script = f'mount -t tmpfs -o noexec none "{home}" && for each in 1 2; do "$@"; done'
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"),
            *(sys.executable, "-c", PROGRAM),
        ],
        env=variables(installation, home / "kernels"),
        cwd=installation,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no file system without execution can be mounted here: {done.stderr}")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["0", "1"], done.stderr
