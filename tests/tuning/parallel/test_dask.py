"""Test shards on a cluster, one of whose worker processes is killed in an epoch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.events import EpochLearned, ignore_event
from mosesplug.optimizers import algorithm
from mosesplug.optimizers.online.epochs import EpochReport, Plan, StoredSource
from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.problem import Problem, no_progress
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning import tune
from mosesplug.tuning.parallel.cluster import open_cluster
from mosesplug.tuning.parallel.executors import StopSignal, open_threads
from mosesplug.tuning.parallel.list_files import write_lists
from mosesplug.tuning.parallel.optimize import (
    StoredShard,
    optimize_sharded,
)
from mosesplug.tuning.parallel.shards import (
    Shard,
    ShardSource,
    learn_in_shards,
    split_into_shards,
)
from tests.optimizers.problems import planted, planted_bleu
from tests.tuning.parallel.dask_workers import start_worker, stop_fork_server
from tests.waiting import LIMIT, wait_until

dask = pytest.importorskip("dask", reason="the extra mosesplug[dask] is not installed")
distributed = pytest.importorskip(
    "distributed", reason="the extra mosesplug[dask] is not installed"
)

SCALE = 0.2


@dataclass
class Cluster:
    """A scheduler and its worker processes; one that dies is not replaced.

    Attributes:
        scheduler: in this process.
        directory: for the workers' files.
        workers: those that live when a test begins.
    """

    scheduler: Any
    directory: Path
    workers: list[BaseProcess] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return str(self.scheduler.scheduler_address)

    def add_worker(self) -> None:
        """Start a worker, and wait until the scheduler knows it."""
        options = {
            "--nthreads": "1",
            "--memory-limit": "0",
            "--local-directory": str(self.directory / "workers"),
            "--death-timeout": str(LIMIT),
        }
        words = [word for option in options.items() for word in option]
        words += ["--no-nanny", "--no-dashboard", self.address]
        self.workers.append(start_worker(words, self.directory / "workers.log"))
        self.wait_for_scheduler()

    def leave_one_worker(self) -> BaseProcess:
        """Kill one of two workers, and return the other."""
        first, second = self.workers
        first.kill()
        first.join(LIMIT)
        self.wait_for_scheduler()
        return second

    def wait_for_scheduler(self) -> None:
        """Wait until the scheduler knows which workers live; forget the others."""
        known = self.scheduler.scheduler.workers
        wait_until(lambda: len(known) == sum(worker.is_alive() for worker in self.workers))
        self.workers = [worker for worker in self.workers if worker.is_alive()]


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of all tests."""
    with distributed.LocalCluster(
        n_workers=0,
        dashboard_address=":0",
        # A task that killed each of two workers is given up.
        scheduler_kwargs={"allowed_failures": 1},
    ) as scheduler:
        cluster = Cluster(scheduler, tmp_path_factory.mktemp("cluster"))
        yield cluster
        for worker in cluster.workers:
            worker.kill()
            worker.join(LIMIT)
    stop_fork_server()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The cluster with two workers, in place of those that earlier tests killed."""
    shared_cluster.wait_for_scheduler()
    while len(shared_cluster.workers) < 2:
        shared_cluster.add_worker()
    return shared_cluster


@pytest.fixture
def address(cluster: Cluster) -> str:
    """Address of the scheduler."""
    return cluster.address


@dataclass(frozen=True)
class FatalShard:
    """A shard whose first worker is killed in the middle of its epoch.

    Attributes:
        lists: the shard.
        witness: a file that the first worker leaves, with its process id.
    """

    lists: StoredShard
    witness: Path

    @property
    def sentences(self) -> NDArray[np.int64]:
        return self.lists.sentences

    @contextmanager
    def open(self, stop: StopSignal | None = None) -> Iterator[ShardSource]:
        with self.lists.open() as source:
            yield _Fatal(source, self.witness)


@dataclass
class _Fatal:
    source: ShardSource
    witness: Path
    batches: int = 0

    @property
    def sentences(self) -> NDArray[np.int64]:
        return self.source.sentences

    def batch(self, sentences: NDArray[np.int64], weights: Any) -> Any:
        self.batches += 1
        if self.batches == 3 and not self.witness.exists():
            self.witness.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return self.source.batch(sentences, weights)

    def restrict(self, learner: Learner) -> Learner:
        return self.source.restrict(learner)

    def finish(self, report: EpochReport, learner: Learner) -> EpochReport:
        return self.source.finish(report, learner)


def same(one: EpochReport, two: EpochReport) -> bool:
    return one.tally.means == two.tally.means and all(
        vector.tobytes() == two.state.vectors[name].tobytes()
        for name, vector in one.state.vectors.items()
    )


def test_the_epoch_of_a_killed_worker_is_done_again_elsewhere(address: str, tmp_path: Path) -> None:
    problem, _ = planted(31, n_sentences=40, noise=1.0)
    write_lists(problem.tuning_set, tmp_path)
    optimizer = algorithm("adagrad").bind(algorithm("adagrad").options())
    source = StoredSource(problem.tuning_set)
    parts = split_into_shards(source.sentences, 2, 1)
    states = [optimizer.learner().init(SCALE * np.ones(5)) for _ in parts]
    plan = Plan(3, 4, problem.metric, problem.active_mask)
    here: list[Shard] = [StoredShard(source, part) for part in parts]
    there: list[Shard] = [StoredShard(str(tmp_path), part) for part in parts]
    witness = tmp_path / "witness"
    there[0] = FatalShard(StoredShard(str(tmp_path), parts[0]), witness)
    with open_threads(2) as executor:
        expected = learn_in_shards(executor, optimizer, states, here, plan, 1)
    with open_cluster(address) as executor:
        found = learn_in_shards(executor, optimizer, states, there, plan, 1)
    assert int(witness.read_text()) != os.getpid()
    assert all(same(one, two) for one, two in zip(expected, found, strict=True))


@pytest.mark.parametrize(
    "sharding",
    [Sharding(3), Sharding(2, asynchronous=True, async_order="fixed")],
    ids=["shards", "stale weights"],
)
def test_a_cluster_gives_the_weights_of_threads(address: str, sharding: Sharding) -> None:
    there = replace(sharding, scheduler=address)
    assert optimize_online(there) == optimize_online(sharding)


def test_sentence_weights_on_a_cluster(address: str, toy: Any) -> None:
    """Lists that are there, and a run that decodes: the weights of threads and processes."""
    sharding, weights = Sharding(2), np.array([0.0, 2.0, 0.5] * 8)
    there = replace(sharding, scheduler=address)
    for optimize in (optimize_online, partial(optimize_batch, "kbmira")):
        weighted = optimize(sharding, sentence_weights=weights)
        assert optimize(there, sentence_weights=weights) == weighted != optimize(sharding)
    path = toy.directory / "weights"
    path.write_text("".join(f"{weight}\n" for weight in weights[:12]))
    results = []
    for name, own in (("processes", Sharding(2, workers="processes")), ("cluster", there)):
        learner = {"algorithm": "mira", "options": {"epochs": 1, "batch": 3}, "sharding": own}
        more = {"online": OnlineSettings("process"), "sentence_weights": path}
        results.append(tune(toy.configuration(name, optimization=learner, **more)))
    assert results[0].weights == results[1].weights
    assert results[0].iterations[0].curve == results[1].iterations[0].curve


def weigh(problem: Problem, sentence_weights: NDArray[np.float64] | None) -> Problem:
    return replace(problem, tuning_set=problem.tuning_set.weigh(sentence_weights))


def optimize_online(
    sharding: Sharding, sentence_weights: NDArray[np.float64] | None = None
) -> bytes:
    problem, _ = planted(32, n_sentences=24, noise=1.0)
    problem = weigh(problem, sentence_weights)
    tuner = algorithm("o-oro")
    options = replace(tuner.options(), epochs=2, batch=4)
    start, rng = SCALE * np.ones(5), np.random.default_rng(5)
    return optimize_sharded(
        problem, tuner.bind(options), sharding, start, rng, no_progress
    ).weights.tobytes()


def test_weights_do_not_depend_on_the_number_of_workers(cluster: Cluster) -> None:
    sharding = Sharding(3, scheduler=cluster.address)
    of_two = [optimize_online(sharding), optimize_batch("kbmira", sharding)]
    cluster.leave_one_worker()
    assert [optimize_online(sharding), optimize_batch("kbmira", sharding)] == of_two
    # Other shards would give other weights.
    other = replace(sharding, shards=2)
    assert optimize_online(other) != of_two[0]
    assert optimize_batch("kbmira", other) != of_two[1]


def optimize_batch(
    name: str,
    sharding: Sharding,
    progress: Any = no_progress,
    sentence_weights: NDArray[np.float64] | None = None,
) -> bytes:
    problem, _ = planted_bleu(34, n_sentences=24, noise=1.0)
    problem = weigh(problem, sentence_weights)
    chosen: dict[str, dict[str, Any]] = {
        "mert": {"restarts": 2, "polish": 0},
        "kbmira": {"epochs": 4},
        "risk": {"error": "pseudo-corpus", "quench_end": 10.0},
        "xbleu": {"quench_end": 1.0},
    }
    optimizer = algorithm(name).bind(replace(algorithm(name).options(), **chosen.get(name, {})))
    start, rng = SCALE * np.ones(5), np.random.default_rng(5)
    return optimize_sharded(problem, optimizer, sharding, start, rng, progress).weights.tobytes()


def test_batch_optimizers_on_a_cluster(address: str) -> None:
    for name in ("softmax", "risk", "xbleu"):
        here = optimize_batch(name, Sharding(3))
        assert optimize_batch(name, Sharding(3, scheduler=address)) == here


@pytest.mark.parametrize("name", ["mert", "kbmira"])
def test_the_shards_of_a_killed_worker_are_prepared_elsewhere(cluster: Cluster, name: str) -> None:
    first = cluster.workers[0]
    steps: list[int] = []

    def kill_first(done: int, total: int, what: str) -> None:
        steps.append(done)
        if first.is_alive():
            first.kill()
            first.join(LIMIT)

    expected = optimize_batch(name, Sharding(3))
    assert optimize_batch(name, Sharding(3, scheduler=cluster.address), kill_first) == expected
    assert len(steps) > 1
    assert not first.is_alive()


@pytest.mark.parametrize(
    ("sharding", "second"),
    [
        (Sharding(2), "shard2"),
        (Sharding(2, asynchronous=True, async_order="fixed"), "worker2"),
    ],
    ids=["shards", "async"],
)
def test_decoding_workers_survive_the_death_of_another(
    address: str, toy: Any, sharding: Sharding, second: str
) -> None:
    """The decoder kills its worker in the middle of an epoch; another one goes on."""
    armed, witness = toy.directory / "armed", toy.directory / "witness"
    script = toy.decoder.read_text().replace(
        "exec",
        f'case "$*" in *{second}.nbest*) rm {armed} 2>/dev/null'
        # The parent keeps the decoder on its leash; the worker is the parent's parent.
        f" && worker=$(ps -o ppid= -p $PPID) && echo $worker > {witness} && kill -9 $worker;;"
        " esac\nexec",
    )
    toy.decoder.write_text(script)

    def run(name: str, sharding: Sharding) -> Any:
        optimization = {
            "algorithm": "adagrad",
            "options": {"epochs": 1, "batch": 3},
            "sharding": sharding,
        }
        return tune(
            toy.configuration(name, optimization=optimization, online=OnlineSettings("process"))
        )

    expected = run("threads", sharding)
    armed.touch()
    found = run("cluster", replace(sharding, scheduler=address))
    assert int(witness.read_text()) != os.getpid()
    assert found.weights == expected.weights
    assert found.iterations[0].curve == expected.iterations[0].curve


def test_a_run_that_lost_all_workers_continues_exactly(
    cluster: Cluster, toy: Any, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder kills the last worker in the second epoch; later, another one comes."""
    last = cluster.leave_one_worker()
    monkeypatch.setitem(open_cluster.__wrapped__.__kwdefaults__, "worker_patience", 0.3)
    armed = toy.directory / "armed"
    script = toy.decoder.read_text()
    kill = f"if rm {armed} 2>/dev/null; then kill -9 {last.pid}; sleep {LIMIT}; fi\nexec"
    toy.decoder.write_text(script.replace("exec", kill))

    def run(name: str, scheduler: str | None, watch: Any = ignore_event, **more: Any) -> Any:
        optimization = {
            "algorithm": "adagrad",
            "options": {"epochs": 2, "batch": 3},
            "sharding": Sharding(2, scheduler=scheduler),
        }
        online = OnlineSettings("process")
        return tune(
            toy.configuration(name, optimization=optimization, online=online, **more), watch
        )

    expected = run("threads", None)

    def arm(event: Any) -> None:
        if isinstance(event, EpochLearned):
            armed.touch()

    with pytest.raises(DataError, match=r"are gone, .* by --continue"):
        run("cluster", cluster.address, arm)
    cluster.wait_for_scheduler()
    assert not cluster.workers
    cluster.add_worker()
    found = run("cluster", cluster.address, log, existing="continue")
    assert [event.iteration for event in log.of(EpochLearned)] == [2]
    assert found.weights == expected.weights
    assert [each.curve for each in found.iterations] == [each.curve for each in expected.iterations]


def test_changes_arrive_from_a_cluster(address: str) -> None:
    problem, _ = planted(33, n_sentences=24, noise=1.0)
    tuner = algorithm("adagrad")
    found = optimize_sharded(
        problem,
        tuner.bind(replace(tuner.options(), epochs=1, batch=4)),
        Sharding(2, asynchronous=True, scheduler=address),
        SCALE * np.ones(5),
        np.random.default_rng(5),
        no_progress,
    )
    assert found.history[0]["updates"] == 6


def test_a_task_that_kills_every_worker_is_one_clear_error(address: str) -> None:
    def fails() -> None:
        with open_cluster(address) as executor:
            executor.submit(os._exit, 1).result()

    with pytest.raises(DataError, match="died repeatedly"):
        fails()


def test_workers_without_the_software_are_one_clear_error(address: str) -> None:
    with pytest.raises(DataError, match="lack software"), open_cluster(address) as executor:
        executor.submit(__import__, "mosesplug_of_tomorrow").result()


def test_a_scheduler_that_does_not_answer_is_one_clear_error() -> None:
    with pytest.raises(DataError, match="no Dask scheduler answers at tcp:"):
        open_cluster("tcp://127.0.0.1:1", patience=0.3).__enter__()


def _announce_and_wait(begun: Path) -> None:
    begun.touch()
    time.sleep(LIMIT)


_released = threading.Event()


def _wait_for_release() -> None:
    _released.wait()


def test_a_scheduler_that_goes_away_is_one_clear_error() -> None:
    def left(local: Any) -> None:
        with (
            open_cluster(local.scheduler_address) as executor,
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        ):
            future = executor.submit(_wait_for_release)
            try:
                local.close()
                future.result()
            finally:
                _released.set()

    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as local,
        pytest.raises(DataError, match="lost the connection"),
    ):
        left(local)


def test_a_cluster_whose_workers_are_all_gone_is_one_clear_error(
    cluster: Cluster, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    # One after the other, as a task that killed each of the two is given up.
    last = cluster.leave_one_worker()

    def left() -> None:
        with open_cluster(cluster.address, worker_patience=0.5) as executor:
            future = executor.submit(_announce_and_wait, begun)
            wait_until(begun.exists)
            last.kill()
            future.result(LIMIT)

    with pytest.raises(DataError, match=r"are gone, and no other came in 0\.5 s\. Start some"):
        left()


def test_a_cluster_without_workers_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = distributed.Client.wait_for_workers
    soon = {"timeout": 0.1}
    monkeypatch.setattr(
        distributed.Client, "wait_for_workers", lambda client, n, timeout: wait(client, n, **soon)
    )
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(DataError, match=r"has no workers\. Start some"),
    ):
        open_cluster(empty.scheduler_address).__enter__()


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    """Dask's settings of TLS, with one certificate for all."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout key -out cert"
    subprocess.run(
        [*words.split(), "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    prefix, cert, key = "distributed.comm.tls", str(tmp_path / "cert"), str(tmp_path / "key")
    roles = ("scheduler", "worker", "client")
    return (
        {f"{prefix}.ca-file": cert}
        | {f"{prefix}.{role}.cert": cert for role in roles}
        | {f"{prefix}.{role}.key": key for role in roles}
    )


def test_tls_settings_of_dask_are_used(certificate: dict[str, str]) -> None:
    with dask.config.set(certificate):
        security = distributed.Security(require_encryption=True)
    with distributed.LocalCluster(
        n_workers=1,
        processes=False,
        protocol="tls",
        host="127.0.0.1",
        security=security,
        dashboard_address=None,
    ) as started:
        with dask.config.set(certificate), open_cluster(started.scheduler_address) as executor:
            assert executor.submit(abs, -3).result() == 3
        with (
            pytest.raises(UsageError, match=r"needs TLS, .* distributed\.comm\.tls\.ca-file"),
            open_cluster(started.scheduler_address, patience=2.0),
        ):
            pass
