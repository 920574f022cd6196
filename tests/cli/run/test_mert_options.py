"""The table of options: complete, consistent, and the same in the docs."""

from __future__ import annotations

from pathlib import Path

from mosesplug.cli.run.getopt import Kind
from mosesplug.cli.run.mert_options import (
    MARKERS,
    explain_refusal,
    find_kind,
    find_spelling,
    format_markdown_table,
    format_usage,
    list_additions,
    list_script_options,
    read_command_line,
    spell_option,
)
from mosesplug.optimizers import algorithms

OPTIONS, ADDITIONS = list_script_options(), list_additions()

GET_OPTIONS = """
working-dir=s input=s inputtype=i refs=s decoder=s config=s nbest=i lattice-samples=i queue-flags=s
jobs=i cache-model=s decoder-flags=s continue skip-decoder shortest average closest nocase nonorm
help verbose mertdir=s mertargs=s extractorargs=s proargs=s mertmertargs=s rootdir=s filtercmd=s
filterfile=s qsubwrapper=s mosesparallelcmd=s old-sge filter-phrase-table!
transform-decoded-file=s predictable-seeds historic-bests random-directions
number-of-random-directions=i random-restarts=i return-best-dev activate-features=s range=s@
use-config-weights-for-first-run prev-aggregate-nbestlist=i maximum-iterations=i pairwise-ranked
pro-starting-point historic-interpolation=f batch-mira hg-mira batch-mira-args=s promix-training=s
promix-table=s threads=i spe-symal=s multi-moses
"""


def test_every_option_of_the_script() -> None:
    spelled = [find_spelling(option) + find_kind(option).value for option in OPTIONS]
    # Given a list to fill, Getopt::Long repeats an option of kind =s too.
    spelled = [text.replace("promix-table=s@", "promix-table=s") for text in spelled]
    assert sorted(spelled) == sorted(GET_OPTIONS.split())


def test_additions_begin_as_no_option_does() -> None:
    names = [find_spelling(option) for option in OPTIONS]
    for addition in ADDITIONS:
        assert not any(name.startswith(find_spelling(addition)) for name in names)


def test_rejected_options_name_a_replacement() -> None:
    refused = [option for option in OPTIONS if option.is_refused]
    assert [option.name for option in refused] == ["promix-training", "promix-table"]
    for option in refused:
        assert option.note
        assert option.note in explain_refusal(option)


def test_flags_choose_registered_algorithms() -> None:
    chosen = {each.name: each.sets["algorithm"] for each in OPTIONS if "algorithm" in each.sets}
    assert chosen == {
        "pairwise-ranked": "pro",
        "pro-starting-point": "pro+mert",
        "batch-mira": "kbmira",
        "hg-mira": "kbmira",
    }
    assert set(chosen.values()) <= set(algorithms())


def test_help_and_table_name_every_option() -> None:
    for text in (format_usage(), format_markdown_table()):
        for option in (*OPTIONS, *ADDITIONS):
            assert spell_option(option) in text
    assert "--[no-]filter-phrase-table" in format_usage()


def test_docs_have_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "mert-moses-options.md"
    table = page.read_text().partition(MARKERS[0])[2].partition(MARKERS[1])[0]
    assert table.strip() == format_markdown_table().strip()


def test_flags_that_are_not_off_can_be_denied() -> None:
    assert read_command_line(["--no-keep-lists"]).values == {"keep-lists": False}
    assert read_command_line(["--no-ids"]).values == {"ids": False}
    assert read_command_line(["--ids"]).values == {"ids": True}


def test_abbreviations_of_the_script_still_work() -> None:
    parsed = read_command_line(["--work", "w", "--nb", "5", "--max", "3", "--nofilter"])
    assert parsed.values == {
        "working-dir": "w",
        "nbest": 5,
        "max-iterations": 3,
        "filter-phrase-table": False,
    }
    assert all(o.kind is not Kind.STRINGS or o.name in ("range", "promix-table") for o in OPTIONS)
