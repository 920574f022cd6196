"""Forced decoding: derivations of the references in the n-best lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formats.errors import FormatError
from formats.moses.ini import parse_moses_ini
from formats.nbest.files import read_nbest
from mosesplug.cli.main import main
from mosesplug.decoders.forced import constrain_config, format_constraints
from mosesplug.errors import DataError, DecoderError, UsageError
from mosesplug.events import CommandStarted, Note
from mosesplug.results.analysis.search_errors import find_search_errors
from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any

INI = b"# a model\n[feature]\nKENLM name=LM0 path=x\n\n[weight]\nLM0= 1\n"


def test_constrained_configuration() -> None:
    made = constrain_config(parse_moses_ini(INI, "moses.ini"), ["forced.references0", "r1"])
    line = b"ConstrainedDecoding name=ForcedDecoding0 max-unknowns=-1 path=forced.references0,r1\n"
    assert made == INI.replace(b"[feature]\n", b"[feature]\n" + line)
    with pytest.raises(FormatError, match=r"moses.ini:3: ConstrainedDecoding is there already"):
        constrain_config(parse_moses_ini(made, "moses.ini"), ["r"])
    with pytest.raises(FormatError, match="there is no section"):
        constrain_config(parse_moses_ini(b"[weight]\nLM0= 1\n", "moses.ini"), ["r"])


def test_references_that_moses_cannot_read_are_unreachable() -> None:
    made = format_constraints([b" a\tb  c ", b"", b"a|b c"])
    assert made == b"0\ta b c\n1\t</s>\n2\t</s>\n"


def make_forced(toy: Toy, **settings: Any) -> Any:
    optimization = {"algorithm": "kbmira", "options": {}}
    decoding = {"nbest": 5, "forced": True}
    return toy.configuration(
        **{"maximum_iterations": 2, "optimization": optimization, "decoding": decoding, **settings}
    )


def test_derivations_of_references_are_merged(toy: Toy, log: Log) -> None:
    tune(make_forced(toy), log)
    work = toy.directory / "work"
    references = [(toy.directory / f"reference{n}").read_text().splitlines() for n in (0, 1)]
    merged, forced = (
        read_nbest(work / f"run1.{name}") for name in ("best5.out.gz", "forced.best.out.gz")
    )
    assert len(forced)
    for row in range(len(forced)):
        sentence = int(forced.sentence_ids[row])
        text = forced.text(row).decode()
        assert text in [lines[sentence] for lines in references]
        listed = [merged.text(k) for k in range(len(merged)) if merged.sentence_ids[k] == sentence]
        assert listed[-1] == forced.text(row)
    decodings = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    assert [
        each[each.index("-config") + 1] == str(work / "forced.moses.ini") for each in decodings
    ] == [*(False, True, False, True)]
    errors = find_search_errors([work], toy.directory / "reference", iteration=1)
    assert [row.reference_score is not None for row in errors.rows] == [
        sentence in forced.sentence_ids for sentence in range(12)
    ]
    for row in range(len(forced)):
        judged = errors.rows[int(forced.sentence_ids[row])]
        assert judged.kind != "unreachable"
        assert judged.reference_score >= forced.scores[row]
    with pytest.raises(UsageError, match=r"--top requires search graphs"):
        find_search_errors([work], toy.directory / "reference", top=5)
    other = toy.directory / "other"
    other.write_text("other\n" * 12)
    with pytest.raises(DataError, match="found other references for sentence"):
        find_search_errors([work], other)
    said = f"forced decoding: {len(forced)} of 12 sentences can yield a reference"
    assert said in [each.text for each in log.of(Note)]


def test_a_continued_run_ends_with_the_same_bytes(toy: Toy, left_by_run: Any) -> None:
    tune(make_forced(toy))
    whole = left_by_run(toy.directory / "work")
    tune(make_forced(toy, existing="overwrite", maximum_iterations=1))
    tune(make_forced(toy, existing="continue"))
    again = left_by_run(toy.directory / "work")
    assert {name: again[name] for name in whole if name.startswith("run2.")} == {
        name: data for name, data in whole.items() if name.startswith("run2.")
    }


def test_a_decoder_without_constraints_is_rejected_before_it_decodes(toy: Toy, log: Log) -> None:
    program = toy.directory / "decoder"
    inner = program.rename(toy.directory / "inner")
    program.write_text(
        '#!/bin/sh\ngrep -q ConstrainedDecoding "$2" && echo "not registered" >&2 && exit 1\n'
        f'exec {inner} "$@"\n'
    )
    program.chmod(0o755)
    with pytest.raises(DecoderError, match=r"requires a decoder with .* ConstrainedDecoding"):
        tune(make_forced(toy), log)
    assert not [e for e in log.of(CommandStarted) if "-n-best-list" in e.command]


def test_a_continued_run_reports_that_it_was_turned_on(toy: Toy, log: Log) -> None:
    plain = {"nbest": 5, "forced": False}
    tune(make_forced(toy, maximum_iterations=1, decoding=plain))
    tune(make_forced(toy, existing="continue"), log)
    said = next(each.text for each in log.of(Note) if "other settings" in each.text)
    assert "forced decoding: False -> True" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--forest",), "--forced-decoding and --forest exclude each other"),
        (("--online", "--algorithm", "mira"), "--forced-decoding and --online exclude each other"),
    ],
)
def test_settings_that_exclude_it(
    words: tuple[str, ...], said: str, toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(toy.directory / name) for name in ("input", "reference", "decoder", "moses.ini")]
    with pytest.raises(SystemExit) as end:
        main(
            ["tune", *files, "--working-dir", str(toy.directory / "w"), "--forced-decoding", *words]
        )
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert not Path(toy.directory / "w").exists()
