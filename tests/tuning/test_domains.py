"""Tune weights for each domain: each part of the input is decoded with its own."""

from __future__ import annotations

from typing import Any

import pytest

from formats.moses.ini import read_moses_ini
from formats.nbest.files import read_nbest
from formats.weights.files import format_sparse
from mosesplug.cli.main import main
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import CommandStarted
from mosesplug.features import FeatureSpace
from mosesplug.tuning import tune
from mosesplug.tuning.domains import list_domain_weights
from mosesplug.tuning.weights import Weights

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any

LABELS = ["news", "talks", "news"] * 4


@pytest.fixture
def mixed(toy: Toy) -> Toy:
    (toy.directory / "labels").write_text("".join(f"{label}\n" for label in LABELS))
    return toy


def make(toy: Toy, **settings: Any) -> Any:
    optimization = {"algorithm": "kbmira", "options": {}}
    return toy.configuration(
        **{"domains": toy.directory / "labels", "optimization": optimization, **settings}
    )


def test_weights_of_domains() -> None:
    space = FeatureSpace((("LM0", 1), ("TM0", 2)))
    sparse = {"LM0@news": 0.25, "TM0_1@talks": -1.0, "S_a": 0.5, "S_a@news": 0.25, "S_b@talks": 2.0}
    found = list_domain_weights(Weights((1.0, 2.0, 3.0), sparse), space, ("news", "talks"))
    assert found == {
        None: Weights((1.0, 2.0, 3.0), {"S_a": 0.5}),
        "news": Weights((1.25, 2.0, 3.0), {"S_a": 0.75}),
        "talks": Weights((1.0, 2.0, 2.0), {"S_a": 0.5, "S_b": 2.0}),
    }


@pytest.mark.parametrize("flags", ["", "-sparse"])
def test_each_domain_is_decoded_with_its_weights(mixed: Toy, log: Log, flags: str) -> None:
    result = tune(make(mixed, flags=flags), log)
    work = mixed.directory / "work"
    decodings = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    assert len(decodings) == 6
    first, second = (each[each.index("-weight-overwrite") + 1] for each in decodings[:2])
    assert first == second
    names = FeatureSpace.of_names(read_announced(work))
    for iteration, found in enumerate(result.iterations, start=1):
        lists = read_nbest(work / f"run{iteration}.best15.out.gz")
        assert set(lists.sentence_ids.tolist()) == set(range(12))
        assert len((work / f"run{iteration}.out").read_text().splitlines()) == 12
        if iteration > 1:
            own = list_domain_weights(found.weights, names, ("news", "talks"))
            assert own["news"].dense != own["talks"].dense
            for name, command in zip(
                ("news", "talks"), decodings[2 * iteration - 2 :], strict=False
            ):
                given = command[command.index("-weight-overwrite") + 1].split()
                values = [float(word) for word in given if not word.endswith("=")]
                assert values == pytest.approx(own[name].dense, abs=1e-9)
                if flags:
                    file = command[command.index("-weight-file") + 1]
                    assert (work / file).read_bytes() == format_sparse(own[name].sparse)
    for name in ("news", "talks"):
        weights = read_moses_ini(work / f"domain.{name}.moses.ini").weights
        own = list_domain_weights(result.weights, names, ("news", "talks"))[name]
        assert [v for group in names.groups for v in weights[group[0]]] == list(own.dense)


def read_announced(work: Any) -> list[str]:
    """The name of each weight that the decoder announced."""
    rows = (line.split() for line in (work / "features.list").read_text().splitlines())
    return [row[0][:-1] for row in rows if "UNTUNEABLE" not in row for _ in row[1:]]


def test_lists_are_those_of_single_decodings(mixed: Toy) -> None:
    """At the start all domains have the same weights: the lists are those of one decoding."""
    tune(make(mixed, maximum_iterations=1))
    tune(mixed.configuration("plain", maximum_iterations=1))
    parts, whole = (
        read_nbest(mixed.directory / d / "run1.best15.out.gz") for d in ("work", "plain")
    )
    assert [parts.text(n) for n in range(len(parts))] == [whole.text(n) for n in range(len(whole))]
    assert parts.sentence_ids.tolist() == whole.sentence_ids.tolist()


def test_a_continued_run_ends_with_the_same_weights(mixed: Toy) -> None:
    whole = tune(make(mixed))
    tune(make(mixed, existing="overwrite", maximum_iterations=2))
    assert tune(make(mixed, existing="continue")).weights == whole.weights


@pytest.mark.parametrize("labels", [None, ["talks", *LABELS[1:]], [f"x{each}" for each in LABELS]])
def test_a_run_is_not_continued_with_other_domains(labels: list[str] | None, mixed: Toy) -> None:
    """Its deviations would be sparse weights that no decoder knows."""
    tune(make(mixed, maximum_iterations=1))
    work = mixed.directory / "work"
    before = (work / "moses.ini").read_bytes()
    more: dict[str, Any] = {"existing": "continue", "maximum_iterations": 2}
    if labels is None:
        more["domains"] = None
    else:
        (mixed.directory / "labels").write_text("".join(f"{label}\n" for label in labels))
    with pytest.raises(UsageError, match="the domains news talks: continue it with the same"):
        tune(make(mixed, **more))
    assert (work / "moses.ini").read_bytes() == before


def test_a_run_without_domains_is_continued_with_them(mixed: Toy) -> None:
    tune(mixed.configuration(maximum_iterations=1))
    result = tune(make(mixed, existing="continue", maximum_iterations=2))
    assert any("@" in name for name in result.weights.sparse)


def test_the_mean_is_scored_with_the_weights_of_each_domain(mixed: Toy) -> None:
    """The mean of one iteration has the score of that iteration."""
    optimization = {"algorithm": "mert", "options": {"restarts": 1}}
    result = tune(make(mixed, maximum_iterations=1, select="average", optimization=optimization))
    assert result.score == pytest.approx(result.iterations[0].optimum, abs=1e-12)
    assert result.weights.sparse  # deviations


@pytest.mark.parametrize("line", ["8 ||| a ||| LM0= 1 ||| -1", "a ||| b", "-1 ||| a ||| b"])
def test_lines_without_an_id_of_the_part(line: str, mixed: Toy) -> None:
    """A decoder that numbers sentences wrongly is named, with the line."""
    program = mixed.directory / "decoder"
    copy = program.with_name("decoder.whole")
    program.rename(copy)
    program.write_text(
        f"#!/bin/sh\n'{copy}' \"$@\" || exit\n"
        'while [ $# -gt 0 ]; do [ "$1" = -n-best-list ] && '
        f"echo '{line}' >> \"$2\"; shift; done; exit 0\n"
    )
    program.chmod(0o755)
    with pytest.raises(
        DecoderError, match=r"best15\.out\.gz:\d+: the decoder wrote a line without the id"
    ):
        tune(make(mixed))


@pytest.mark.parametrize(
    ("words", "labels", "said"),
    [
        (("--forest",), LABELS, "--domains and --forest exclude each other"),
        ((), LABELS[1:], "--domains has 11 labels for 12 source sentences"),
        ((), ["news"] * 12, "labels: fewer than two domains. Label the sentences"),
    ],
)
def test_settings_that_cannot_be_used(
    words: tuple[str, ...],
    labels: list[str],
    said: str,
    mixed: Toy,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (mixed.directory / "labels").write_text("".join(f"{label}\n" for label in labels))
    files = [str(mixed.directory / name) for name in ("input", "reference", "decoder", "moses.ini")]
    given = ["--working-dir", str(mixed.directory / "w"), "--domains"]
    with pytest.raises(SystemExit) as end:
        main(["tune", *files, *given, str(mixed.directory / "labels"), *words])
    assert end.value.code in (1, 2)
    assert said in capsys.readouterr().err
