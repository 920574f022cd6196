"""The command line reader against Perl's own Getopt::Long, and the rules by hand."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from mosesplug.cli.run.getopt import CommandLine, Kind, Specification, Value, parse
from mosesplug.errors import UsageError

SPECIFICATIONS = (
    Specification("working-dir", Kind.STRING),
    Specification("nbest", Kind.INTEGER),
    Specification("nocase", Kind.FLAG),
    Specification("nonorm", Kind.FLAG),
    Specification("continue", Kind.FLAG),
    Specification("config", Kind.STRING),
    Specification("random-restarts", Kind.INTEGER),
    Specification("random-directions", Kind.FLAG),
    Specification("range", Kind.STRINGS),
    Specification("historic-interpolation", Kind.REAL),
    Specification("filter-phrase-table", Kind.NEGATABLE),
    Specification("filtercmd", Kind.STRING),
    Specification("decoder", Kind.STRING),
    Specification("decoder-flags", Kind.STRING),
)


@pytest.mark.parametrize(
    ("arguments", "values", "positionals"),
    [
        (["--nbest=5"], {"nbest": 5}, ()),
        (["-nbest", "5"], {"nbest": 5}, ()),
        (["+nbest", "5"], {"nbest": 5}, ()),
        (["--NBest", "1_0"], {"nbest": 10}, ()),
        (["--nb", "-3"], {"nbest": -3}, ()),
        (["a", "--work", "w", "b"], {"working-dir": "w"}, ("a", "b")),
        (["--no-filter-phrase-table"], {"filter-phrase-table": False}, ()),
        (["-nofilter"], {"filter-phrase-table": False}, ()),
        (["--filter-"], {"filter-phrase-table": True}, ()),
        (["--decoder", "moses"], {"decoder": "moses"}, ()),
        (["--decoder-flags", "--threads 2"], {"decoder-flags": "--threads 2"}, ()),
        (["--decoder-", "-v 0"], {"decoder-flags": "-v 0"}, ()),
        (["--decoder-flags=-a=b"], {"decoder-flags": "-a=b"}, ()),
        (["--range", "a:0..1", "--range=b:1..2"], {"range": ("a:0..1", "b:1..2")}, ()),
        (["--hist", ".5"], {"historic-interpolation": 0.5}, ()),
        (["--cont", "--", "--nbest", "-"], {"continue": True}, ("--nbest", "-")),
        (["--config", "--", "x"], {"config": "--"}, ("x",)),
        (["--nbest", "1", "--nbest", "2", "-"], {"nbest": 2}, ("-",)),
    ],
)
def test_spellings(arguments: list[str], values: dict[str, Value], positionals: tuple[str]) -> None:
    assert parse(arguments, SPECIFICATIONS) == CommandLine(values, positionals)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--frobnicate"], "Unknown option: frobnicate"),
        (["--nbests", "9"], "Unknown option: nbests. Did you mean nbest?"),
        (["--random", "3"], "Option random is ambiguous (random-directions, random-restarts)"),
        (["--nbest"], "Option nbest requires an argument"),
        (["--nbest="], "Option nbest requires an argument"),
        (["--nb", "x"], 'Value "x" invalid for option nbest (number expected)'),
        (["--hist", "x"], 'Value "x" invalid for option historic-interpolation (real number'),
        (["--continue=1"], "Option continue does not take an argument"),
        (["--x", "--y"], "Unknown option: x; Unknown option: y"),
        (["+"], "Missing option after +"),
    ],
)
def test_complaints(arguments: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(arguments, SPECIFICATIONS)
    assert words in str(caught.value)


def test_additions_do_not_change_abbreviations() -> None:
    addition = Specification("nbest-store", Kind.STRING)
    assert parse(["--nb", "3"], SPECIFICATIONS, [addition]).values == {"nbest": 3}
    assert parse(["--nbest-s", "3"], SPECIFICATIONS, [addition]).values == {"nbest-store": "3"}


PERL = r"""
use strict; use warnings; use JSON::PP; use Getopt::Long;
my $json = JSON::PP->new->canonical;
local $/; my $input = decode_json(<STDIN>);
my @answers;
for my $argv (@{$input->{lines}}) {
  my (%value, @complaints); my @rest = @$argv;
  my %kind = map { /^([^=!]+)(.*)/ ? ($1 => $2) : () } @{$input->{options}};
  local $SIG{__WARN__} = sub { my $w = shift; $w =~ s{\s+\z}{}; push @complaints, $w };
  Getopt::Long::GetOptionsFromArray(\@rest, \%value, @{$input->{options}});
  for (keys %value) {
    $value{$_} = $value{$_} ? JSON::PP::true : JSON::PP::false if $kind{$_} =~ /^!?$/;
    $value{$_} = 0 + $value{$_} if $kind{$_} =~ /^=[if]$/;
  }
  push @answers, @complaints ? {complaints => \@complaints} : {values => \%value, rest => \@rest};
}
print $json->encode(\@answers);
"""


def command_lines(count: int) -> list[list[str]]:
    """Random command lines of full, cut, misspelled options, values and positionals."""
    chance = random.Random(1)
    names = [s.name for s in SPECIFICATIONS] + ["no-filter-phrase-table", "nofilter-phrase-table"]
    words = ["3", "-3", "+3", "1_000", "x", "0.5", ".5", "5.", "1e3", "1e-3", "--", "-", "+", "a b"]
    words += ["--nb", "=", "--=x", "-x=", "", "_1", "1_", "-_4", "."]
    lines = []
    for _ in range(count):
        line = []
        for _ in range(chance.randrange(6)):
            if chance.random() < 0.4:
                line.append(chance.choice(words))
                continue
            name = chance.choice(names)
            name = name[: chance.randrange(1, len(name) + 1)] if chance.random() < 0.5 else name
            name = name.upper() if chance.random() < 0.1 else name
            option = chance.choice(["-", "--", "--", "+"]) + name
            line.append(option + ("=" + chance.choice(words) if chance.random() < 0.3 else ""))
        lines.append(line)
    return lines


def test_same_reading_as_perl() -> None:
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("no perl on this machine")
    lines = command_lines(4000)
    options = [s.name + s.kind.value for s in SPECIFICATIONS]
    answer = subprocess.run(
        [perl, "-e", PERL],
        input=json.dumps({"lines": lines, "options": options}),
        capture_output=True,
        text=True,
        check=True,
    )
    for line, expected in zip(lines, json.loads(answer.stdout), strict=True):
        assert reading(line) == expected, line


def reading(line: list[str]) -> dict[str, object]:
    """What ``parse`` makes of a line, in the form of the Perl program's answer."""
    try:
        parsed = parse(line, SPECIFICATIONS)
    except UsageError as error:
        return {"complaints": str(error).split("; ")}
    return {
        "values": {k: list(v) if isinstance(v, tuple) else v for k, v in parsed.values.items()},
        "rest": list(parsed.positionals),
    }
