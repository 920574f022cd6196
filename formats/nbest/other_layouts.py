"""Layouts of lists that no reader takes, and how to convert them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from formats.decimals import parse_number
from formats.nbest.list_format import TEXT_NAMES

_FRAME = (
    "Convert it: python3 -c 'import sys, pandas; pandas.read_{}(sys.argv[1]).to_csv(sys.stdout)' "
    "FILE > list.csv"
)
_NUMBER = (
    "Name that column id; or number the sentences, with N hypotheses each in the order of the "
    'references: awk -v n=N \'NR == 1 {print "idTAB" $0; next} '
    '{print int((NR - 2) / n) "TAB" $0}\' FILE > list'
)


@dataclass(frozen=True)
class OtherLayout:
    """A layout that is recognized, but not read.

    Attributes:
        name: what the file is, as messages say it.
        recognizes: returns whether the first lines of a file have this layout.
        remedy: what to do; ``FILE`` stands for the file, as a word of a shell.
    """

    name: str
    recognizes: Callable[[Sequence[bytes]], bool]
    remedy: str


def _begins(*signatures: bytes) -> Callable[[Sequence[bytes]], bool]:
    return lambda lines: lines[0].startswith(signatures)


def _names_texts(separator: str) -> Callable[[Sequence[bytes]], bool]:
    """Return whether the first line names columns, one of them texts and none ids."""

    def recognizes(lines: Sequence[bytes]) -> bool:
        line = lines[0].decode("utf-8", "replace").strip()
        row = [field.strip('"') for field in line.split(separator)]
        return len(row) > 1 and bool({*TEXT_NAMES} & {*map(str.strip, row)})

    return recognizes


def _has_scores_first(lines: Sequence[bytes]) -> bool:
    """Return whether lines are a number, a tab and a text."""
    fields = [line.rstrip(b"\r\n").split(b"\t") for line in lines[:-1] or lines]
    return all(
        len(field) == 2 and _is_number(field[0]) and not _is_number(field[1]) for field in fields
    )


def _is_number(field: bytes) -> bool:
    value = parse_number(field.strip())
    return value == value


_LAYOUTS = (
    OtherLayout(
        "an n-best list of SRILM",
        _begins(b"NBestList"),
        "Learn its weights with mosesplug's nbest-optimize (mosesplug install-tools), which reads "
        "a directory of such lists (-nbest-files)",
    ),
    OtherLayout("a Parquet file", _begins(b"PAR1"), _FRAME.format("parquet")),
    OtherLayout("a Feather file", _begins(b"ARROW1"), _FRAME.format("feather")),
    OtherLayout(
        "a spreadsheet or an archive of PyTorch or NumPy",
        _begins(b"PK\x03\x04"),
        "Export it as CSV with columns id, hyp and the scores; or write the texts and scores by "
        "json.dump as nested arrays",
    ),
    OtherLayout(
        "a pickled object",
        _begins(*(b"\x80" + bytes([protocol]) for protocol in range(2, 6))),
        "Convert nested lists of texts: python3 -c 'import json, pickle, sys; "
        'json.dump(pickle.load(open(sys.argv[1], "rb")), sys.stdout)\' FILE > list.json',
    ),
    OtherLayout(
        "an array of NumPy",
        _begins(b"\x93NUMPY"),
        "Features come beside texts: give the texts as the list ({--format} flat:N), and the array "
        "with {--add-feature} NAME=FILE",
    ),
    OtherLayout(
        "an XML file",
        _begins(b"<?xml", b"<!DOCTYPE", b"<nbest", b"<tstset", b"<refset"),
        "Write a table with the columns id, hyp and the scores ({--format tsv})",
    ),
    *(
        OtherLayout(
            "a table without a column of sentence ids",
            _names_texts(separator),
            _NUMBER.replace("TAB", shown),
        )
        for separator, shown in (("\t", "\\t"), (",", ","), (";", ";"))
    ),
    OtherLayout(
        "a list of scores and texts without sentence ids",
        _has_scores_first,
        "Put the text first: awk -F '\\t' '{print $2 \"\\t\" $1}' FILE > list, and {--format} "
        "nemo:N, for N hypotheses a sentence",
    ),
)


def find_other_layout(lines: Sequence[bytes]) -> OtherLayout | None:
    """Return the layout of the first lines of a file that is not read, if known."""
    return next((layout for layout in _LAYOUTS if layout.recognizes(lines)), None)
