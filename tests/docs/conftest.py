"""The programs and the repository of the manual's examples."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.batch.fits import starting_points
from mosesplug.optimizers.batch.mert import mert
from mosesplug.optimizers.problem import Problem
from tests.docs.clones import Clones
from tests.fork_server import ForkServer
from tests.plugins.installing import forget_package, install_package

RESTARTS = 4

Floats = NDArray[np.float64]


@pytest.fixture(scope="module", autouse=True)
def few_restarts() -> Iterator[None]:
    """Run the examples with few restarts of MERT on small lists.

    MERT would add up to 20 times as many there, seconds for each run.
    """

    def draw_few(problem: Problem, initial: Floats, rng: np.random.Generator, n: int) -> object:
        is_small = problem.tuning_set.n_hyps <= mert.SMALL
        return starting_points(problem, initial, rng, min(n, RESTARTS) if is_small else n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mert, "MOST_RESTARTS", 0)
        patch.setattr(mert, "starting_points", draw_few)
        yield


@pytest.fixture(scope="session")
def clones(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Clones:
    """Copies of the repository, with programs in forks of one process."""
    scripts = sysconfig.get_path("scripts")
    directory = tmp_path_factory.mktemp("bin")
    fork_server.write_programs(directory)
    path = f"{directory}:{scripts}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "80"}
    return Clones(tmp_path_factory.mktemp("clones"), environment)


@pytest.fixture
def install_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, Path], bool]]:
    """Install the package of a page, without pip and a package index."""

    def install(words: str, directory: Path) -> bool:
        if words != "pip install ./acme-tuning":
            return False
        site = install_package(tmp_path / "site", directory / "acme-tuning")
        monkeypatch.syspath_prepend(site)
        return True

    yield install
    forget_package()
