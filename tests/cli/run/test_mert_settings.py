"""From mert-moses.pl's command line to a configuration: honored, or refused with the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mosesplug.cli.run.mert_options import read_command_line
from mosesplug.cli.run.mert_settings import make_script_plan
from mosesplug.decoders.description import DecodedGraphs, DecoderCommand, MosesDecoder
from mosesplug.errors import UsageError
from mosesplug.optimizers import algorithm
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.decoding import GraphSettings
from mosesplug.settings.online import HeldOutSet, OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning import Configuration


class Read:
    """Return the settings of a command line."""

    def __init__(self, words: list[str]) -> None:
        plan, self.notes = make_script_plan(read_command_line(words))
        self.configuration = plan.configuration


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the four files, which is the current one."""
    for name in ("input", "ref0", "ref1", "moses.ini"):
        (tmp_path / name).write_text("x\n")
    script(tmp_path / "moses" / "bin" / "moses")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRIPTS_ROOTDIR", raising=False)
    return tmp_path


FILES = ("input", "ref", "moses/bin/moses", "moses.ini")


def read(*words: str, files: tuple[str, ...] = FILES) -> Read:
    return Read([*files, *words])


def configuration(*words: str) -> Configuration:
    return read(*words).configuration


def test_defaults_are_the_scripts(system: Path) -> None:
    found = read()
    run = found.configuration
    assert run.working_directory == system / "mert-work"
    assert (run.input, run.references) == (system / "input", system / "ref")
    assert run.decoding.decoder == MosesDecoder(system / "moses/bin/moses")
    assert (run.decoding.nbest, run.maximum_iterations, run.minimum_change) == (100, 25, 1e-5)
    assert run.optimization.algorithm == "mert"
    assert run.optimization.options == {"restarts": 20}
    assert (run.optimization.window, run.optimization.seed) == (-1, None)
    assert run.existing == "overwrite"
    assert run.select is None
    assert "case:mixed" in run.metric.signature()
    assert "reflen:closest" in run.metric.signature()
    assert run.decoding.filtering is None
    assert any("unfiltered" in note for note in found.notes)


def test_search_graphs_for_a_decoder(system: Path) -> None:
    script(system / "scripts" / "training" / "filter-model-given-input.pl")
    files = ("input", "ref", "forest:graphs", "moses.ini")
    with pytest.raises(UsageError, match="does not exist"):
        read(files=files)
    (system / "graphs").mkdir()
    found = read("--rootdir", "scripts", files=files)
    assert found.configuration.decoding.decoder == DecodedGraphs(system / "graphs")
    assert not found.configuration.decoding.decoder.wrappers
    assert found.configuration.decoding.filtering is None
    assert not any("unfiltered" in note for note in found.notes)
    assert configuration().decoding.decoder.weights_format == "moses"
    heldout = ("--heldout=input", "--heldout-refs=ref0", "--decoder-flags=-v 0")
    found = read(*heldout, f"--heldout-decoder={FILES[2]}", files=files)
    judged = found.configuration.held_out
    assert judged is not None
    assert judged.decoder == MosesDecoder(system / FILES[2], ("-v", "0"))
    assert found.configuration.decoding.decoder.flags == ()
    judged = read(
        *heldout[:2], "--heldout-decoder=forest:graphs", files=files
    ).configuration.held_out
    assert judged is not None
    assert judged.decoder == DecodedGraphs(system / "graphs")
    with pytest.raises(UsageError, match=r"combined with decoder flags, an input type$"):
        read("--decoder-flags=-v 0", "--inputtype=0", files=files)


def test_programs_of_the_held_out_set_translate_monitors(system: Path) -> None:
    (system / "graphs").mkdir()
    moses, other = MosesDecoder(system / FILES[2]), MosesDecoder(script(system / "other"))
    graphs = DecodedGraphs(system / "graphs")
    texts = ("--heldout=input", "--heldout-refs=ref0", "--monitor=one=input,ref0")
    for words, expected in (
        ((), moses),
        (("--heldout-decoder=./other",), other),
        (("--heldout-decoder=forest:graphs",), moses),
    ):
        run = configuration(*texts, "--monitor=two=input,ref0,forest:graphs", *words)
        assert [*map(run.decoder_of, run.monitors)] == [expected, graphs]


def test_a_command_that_decodes(system: Path) -> None:
    words = "/bin/true {weights} {input} {nbest}"
    found = read(f"--decode-command={words}", "--rootdir=scripts", files=("input", "ref", FILES[3]))
    assert isinstance(found.configuration.decoding.decoder, DecoderCommand)
    with pytest.raises(UsageError, match=r"expected three arguments .* with --decode-command"):
        read(f"--decode-command={words}")


def test_files_by_options(system: Path) -> None:
    words = ["--input", "input", "--refs=ref", "--decoder", FILES[2], "-config", "moses.ini"]
    assert read(*words, files=()).configuration == read().configuration
    with pytest.raises(UsageError, match="four arguments"):
        read(files=("input", "ref"))
    with pytest.raises(UsageError, match="--decoder --config"):
        read("--input=input", "--refs=ref", files=())


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (("none", *FILES[1:]), "the input none"),
        ((FILES[0], "none", *FILES[2:]), "neither none nor none0"),
        ((*FILES[:2], "input", FILES[3]), "not an executable"),
        ((*FILES[:3], "none"), "the configuration none"),
    ],
)
def test_missing_files(system: Path, files: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(files=files)


def test_search_options(system: Path) -> None:
    run = configuration(
        *("--random-restarts=5", "--random-directions", "--predictable-seeds", "--threads=3"),
        *("--historic-bests", "--activate-features", "LM0_0,d_0 tm_1", "--range=LM0:0..2"),
        *("--range", "tm:0..1", "--prev-aggregate-nbestlist=2", "--historic-interpolation=0.5"),
    ).optimization
    assert run.options == {
        "restarts": 5,
        "method": "random-direction",
        "random_directions": 50,
    }
    assert run.active == ("LM0_0", "d_0", "tm_1")
    assert [*map(str, run.ranges)] == ["LM0:0..2", "tm:0..1"]
    assert (run.window, run.interpolation, run.threads) == (2, 0.5, 3)
    assert run.historic_bests
    assert run.predictable_seeds


def test_own_options_outweigh_arguments_of_mert(system: Path) -> None:
    assert configuration("--mertargs=-n 7 -r 3").optimization.options["restarts"] == 7
    assert configuration("--mertargs=-n 7 -r 3").optimization.seed == 3
    run = configuration("--mertargs=-n 7 -m 2", "--random-restarts=9", "--seed=4").optimization
    assert run.options == {"restarts": 9, "random_directions": 2}
    assert run.seed == 4
    words = ["--number-of-random-directions=6", "--algorithm-option", "interval=average"]
    run = configuration(*words).optimization
    assert run.options == {
        "restarts": 20,
        "random_directions": 6,
        "interval": "average",
    }


@pytest.mark.parametrize(
    ("words", "signature"),
    [
        (["--nocase"], "case:lc"),
        (["--shortest"], "reflen:shortest"),
        (["--average"], "reflen:average"),
        (["--mertargs=--sctype BLEU --scconfig reflen:shortest,case:false"], "case:lc"),
        (["--mertargs=--scconfig reflen:shortest", "--average"], "reflen:shortest"),
    ],
)
def test_metric(system: Path, words: list[str], signature: str) -> None:
    assert signature in configuration(*words).metric.signature()


def test_loop_options(system: Path) -> None:
    run = configuration(
        *("--working-dir=w", "--nbest=50", "--maximum-iterations=3", "--return-best-dev"),
        *("--continue", "--skip-decoder", "--use-config-weights-for-first-run", "--inputtype=2"),
        *("--decoder-flags", "-threads 4 -v 0", "--keep-extractor-files"),
    )
    assert run.working_directory == system / "w"
    assert (run.decoding.nbest, run.maximum_iterations) == (50, 3)
    assert run.select == "best-dev"
    assert run.skip_decoder
    assert run.existing == "continue"
    assert run.decoding.config_weights_first
    assert run.keep_extractor_files
    assert run.decoding.decoder.input_type == 2
    assert run.decoding.decoder.flags == ("-threads", "4", "-v", "0")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--hg-mira", "--batch-mira"], "--batch-mira and --hg-mira exclude each other"),
        (["--hg-mira", "--lattice-mert"], "--hg-mira and --lattice-mert exclude each other"),
        (["--forest-edges=9"], "--forest-edges requires --forest"),
        (["--forest", "--forest-edges=-1"], "at least 0"),
        (["--redecode-every=2"], "--redecode-every requires --forest"),
        (["--forest", "--redecode-every=0"], "at least 1"),
        (["--heldout-decoder=moses/bin/moses"], "--heldout-decoder requires --heldout"),
        (
            ["--heldout=input", "--heldout-refs=ref0", "--heldout-decoder=none"],
            "the decoder of the held-out text none is not an executable file",
        ),
        (["--batch-mira", "--batch-mira-args=--hg-prune 9"], "--hg-prune is for --hg-mira"),
        (["--hg-mira", "--batch-mira-args=--hg-prune x"], "--hg-prune must be an integer"),
        (["--promix-training=x", "--promix-table=y"], "tmcombine"),
        (["--pairwise-ranked", "--proargs=-x"], "--proargs"),
        (["--shortest", "--closest"], "--shortest and --closest exclude each other"),
        (["--seed=1", "--predictable-seeds"], "exclude each other"),
        (["--mertargs=--sctype SEMPOS"], "SEMPOS"),
        (["--historic-interpolation=1.5"], "at most 1"),
        (["--nbest=0"], "at least 1"),
        (["--maximum-iterations=-1"], "at least 0"),
        (["--decoder-flags=-config x"], "-config"),
        (["--algorithm-option=x"], "NAME=VALUE"),
        (["--transform-decoded-file=none"], "not a file"),
        (["--filter-phrase-table"], "filter-model-given-input.pl"),
        (["--filtercmd=none"], "--filtercmd=none"),
        (["--multi-moses"], "--moses-scripts"),
        (["--jobs=2"], "moses-parallel.pl"),
        (["--cache-model=/tmp/x"], "cache-model.perl"),
    ],
)
def test_rejected(system: Path, words: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(*words)


@pytest.mark.parametrize(
    ("words", "algorithm", "graphs"),
    [
        (["--hg-mira"], "kbmira", GraphSettings(50)),
        (["--hg-mira", "--batch-mira-args=--hg-prune 20 -J 5"], "kbmira", GraphSettings(20)),
        (["--algorithm=kbmira", "--forest", "--forest-edges=0"], "kbmira", GraphSettings(0)),
        (["--lattice-mert"], "mert", GraphSettings(50)),
        (["--forest"], "mert", GraphSettings(50)),
        (["--forest", "--redecode-every=3"], "mert", GraphSettings(50, 3)),
        (["--forest", "--pairwise-ranked"], "pro", GraphSettings(50)),
        (["--batch-mira"], "kbmira", None),
    ],
)
def test_search_graphs(
    system: Path, words: list[str], algorithm: str, graphs: GraphSettings | None
) -> None:
    run = configuration(*words)
    assert (run.optimization.algorithm, run.decoding.graphs) == (algorithm, graphs)
    assert run.optimization.options.get("epochs") == ("5" if "-J 5" in words[-1] else None)


def test_flags_choose_the_algorithm(system: Path) -> None:
    found = read("--batch-mira").configuration.optimization
    assert (found.algorithm, found.options) == ("kbmira", {})
    assert read("--pairwise-ranked").configuration.optimization.algorithm == "pro"
    with pytest.raises(UsageError, match="exclude each other"):
        read("--pairwise-ranked", "--batch-mira")
    assert read("--algorithm=pro").configuration.optimization.algorithm == "pro"


def test_batch_mira(system: Path) -> None:
    run = read(
        *("--batch-mira", "--batch-mira-args=-J 5 --cparam=0.1 --no-sh --model-bg -r3"),
        *("--historic-interpolation=0.5", "--random-restarts=9"),
    ).configuration.optimization
    assert run.options == {
        "epochs": "5",
        "step_cap": "0.1",
        "shuffle": False,
        "background": "model",
    }
    assert (run.seed, run.interpolation) == (3, 0.5)


def test_pro(system: Path) -> None:
    words = ["--proargs=-b -r 4", "--mertargs=--scconfig case:false -n 3"]
    run = read("--pairwise-ranked", *words).configuration
    assert run.optimization.options == {"smooth_brevity_penalty": True}
    assert run.optimization.seed == 4
    assert "case:lc" in run.metric.signature()
    run = read("--pro-starting-point", *words).configuration
    assert run.optimization.algorithm == "pro+mert"
    assert run.optimization.options == {"smooth_brevity_penalty": True, "restarts": 3}


def test_arguments_become_options_of_the_algorithms(system: Path) -> None:
    text = "-J 5 -C 0.1 -D 0.9 --no-shuffle --model-bg --safe-hope"
    run = read("--batch-mira", f"--batch-mira-args={text}").configuration.optimization
    mira = make_options(algorithm("kbmira"), run.options)
    assert (mira.epochs, mira.step_cap, mira.decay) == (5, 0.1, 0.9)
    assert (mira.shuffle, mira.background, mira.safe_hope) == (False, "model", True)
    words = ["--proargs=-b", "--mertargs=-n 3", "--random-directions"]
    run = read("--pro-starting-point", *words).configuration.optimization
    both = make_options(algorithm("pro+mert"), run.options)
    assert both.smooth_brevity_penalty
    assert (both.restarts, both.method, both.random_directions) == (3, "random-direction", 50)


def test_metric_from_arguments_of_mira(system: Path) -> None:
    words = ["--batch-mira", "--batch-mira-args=--scconfig reflen:shortest,case:false"]
    signature = read(*words).configuration.metric.signature()
    assert "case:lc" in signature
    assert "reflen:shortest" in signature


def test_arguments_of_tools_that_do_not_run(system: Path) -> None:
    for words in (["--batch-mira-args=-J 5"], ["--batch-mira", "--proargs=-b"]):
        with pytest.raises(UsageError, match="are for"):
            read(*words)


def helpers(root: Path) -> dict[str, Path]:
    names = {
        "filter": "training/filter-model-given-input.pl",
        "parallel": "generic/moses-parallel.pl",
        "wrapper": "generic/qsub-wrapper.pl",
        "several": "generic/multi_moses.py",
        "editing": "generic/moses_sim_pe.py",
        "cache": "ems/support/cache-model.perl",
    }
    return {key: script(root / name) for key, name in names.items()}


@pytest.mark.parametrize("where", ["--rootdir", "SCRIPTS_ROOTDIR", "beside the decoder"])
def test_helper_scripts_are_found(
    system: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = system / "moses" / "scripts" if where.startswith("beside") else system / "elsewhere"
    found = helpers(root)
    words = [f"--rootdir={root}"] if where == "--rootdir" else []
    if where == "SCRIPTS_ROOTDIR":
        monkeypatch.setenv("SCRIPTS_ROOTDIR", str(root))
    run = configuration(*words, "--filterfile=moses.ini")
    assert run.decoding.filtering is not None
    assert run.decoding.filtering.command == (str(found["filter"]),)
    assert run.decoding.filtering.input == system / "moses.ini"
    assert configuration(*words, "--no-filter-phrase-table").decoding.filtering is None
    run = configuration(*words, "--jobs=3", "--queue-flags= ", "--old-sge", "--cache-model=/tmp/c")
    queue = run.decoding.decoder.queue
    assert queue is not None
    assert (queue.command, queue.jobs, queue.flags) == (found["parallel"], 3, " ")
    assert (queue.old_sge, queue.cache, queue.wrapper) == (True, "/tmp/c", found["wrapper"])
    assert configuration(*words, "--jobs=1").decoding.decoder.queue is None
    run = configuration(*words, "--cache-model=/tmp/c", "--multi-moses", "--spe-symal=input")
    assert run.decoding.cache == (str(found["cache"]), "/tmp/c")
    assert run.decoding.decoder.several == found["several"]
    assert run.decoding.decoder.post_editing is not None
    assert run.decoding.decoder.post_editing.reference == system / "ref0"
    for clash in ("--multi-moses", "--lattice-samples=5"):
        with pytest.raises(UsageError, match="--jobs"):
            read(*words, "--jobs=2", clash)


def test_filter_command_with_options(system: Path) -> None:
    own = script(system / "my-filter")
    run = configuration("--filtercmd=./my-filter -Binarizer x")
    assert run.decoding.filtering is not None
    assert run.decoding.filtering.command == (str(own), "-Binarizer", "x")


@pytest.mark.parametrize(
    ("text", "command"),
    [("bpe", "bpe"), ("BPE", "bpe"), ("sed s/a/b/", "sed s/a/b/"), ("input", "{}/input")],
)
def test_transformation(system: Path, text: str, command: str) -> None:
    run: Any = configuration(f"--transform-decoded-file={text}")
    assert run.decoding.transform == command.format(system)


def test_mertdir_is_noted(system: Path) -> None:
    assert any("--mertdir" in note for note in read("--mertdir=/none").notes)


def test_learning_while_decoding(system: Path) -> None:
    run = configuration(
        "--algorithm=o-oro",
        "--online",
        "--epochs=4",
        "--heldout-refs=ref",
        *("--online-decoder=server", "--online-servers=2", "--strict-online", "--heldout=input"),
        *("--heldout-every=5", "--patience=3", "--select=last", "--start-from=former"),
        "--sparse-weights=input",
    )
    assert run.online == OnlineSettings("server", strict=True, servers=2)
    assert run.held_out == HeldOutSet(system / "input", system / "ref", 5, 3)
    assert (run.select, run.maximum_iterations) == ("last", 0)
    assert run.optimization.options == {"epochs": 4}
    assert (run.sparse_weights, run.start_from) == (system / "input", system / "former")
    run = configuration("--algorithm=o-oro", "--online", "--maximum-iterations=2")
    assert run.online == OnlineSettings()
    assert run.maximum_iterations == 2
    assert configuration("--algorithm=o-oro").online is None


def test_shards(system: Path) -> None:
    run = configuration("--algorithm=oro", "--shards=3", "--mixing=select", "--keep=7").optimization
    assert run.sharding == Sharding(3, "select", 7)
    run = configuration("--algorithm=oro", "--shards=2", "--async", "--async-order=fixed")
    assert run.optimization.sharding == Sharding(2, asynchronous=True, async_order="fixed")
    assert configuration("--algorithm=oro").optimization.sharding is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--online-decoder=server"], "--online-decoder requires --online"),
        (["--strict-online"], "--strict-online requires --online"),
        (["--no-keep-lists"], "--no-keep-lists requires --online"),
        (["--online", "--online-decoder=forest"], "must be one of auto, server, process"),
        (
            ["--online", "--online-decoder=process", "--strict-online"],
            "exclude each other",
        ),
        (["--online", "--online-servers=0"], "at least 1"),
        (["--patience=3"], "--patience requires --heldout"),
        (["--heldout=input"], "--heldout requires --heldout-refs"),
        (["--heldout=input", "--heldout-refs=ref", "--heldout-every=2"], "requires --online"),
        (["--heldout=none", "--heldout-refs=ref"], "the held-out text none"),
        (["--heldout=input", "--heldout-refs=ref", "--patience=0"], "at least 1"),
        (["--select=first"], "--select must be one of"),
        (["--select=last", "--return-best-dev"], "exclude each other"),
        (["--epochs=0"], "epochs must be at least 1"),
        (["--pairwise-ranked", "--shards=2"], "pro cannot learn in shards or on workers"),
        (["--batch-mira", "--mixing=average"], "--mixing is for online learners, not for kbmira"),
    ],
)
def test_online_refusals(system: Path, words: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        configuration(*words)


def test_options_without_effect_are_reported(system: Path) -> None:
    words = ("--batch-mira", "--random-restarts=5", "--random-directions")
    said = [note for note in read(*words).notes if "option of MERT" in note]
    assert said == [
        "--random-restarts has no effect with kbmira: it is an option of MERT",
        "--random-directions has no effect with kbmira: it is an option of MERT",
    ]
    assert not any("option of MERT" in note for note in read("--random-restarts=5").notes)


def test_reference_lengths_belong_to_bleu(system: Path) -> None:
    with pytest.raises(UsageError, match="--average chooses the reference length of BLEU"):
        read("--average", "--mertargs=--sctype TER")
    assert (
        "reflen:average"
        in configuration("--average", "--mertargs=--sctype BLEU,TER").metric.signature()
    )
