"""Other kinds of features, search and input, made of the small system."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.real_decoder.system import System

__all__ = ["CONTEXTS", "FUNCTIONS", "confusion_networks", "hierarchical", "lattices", "sparse"]

FUNCTIONS = """\
Distortion
TargetWordInsertionFeature name=TWI factor=0
PhraseLengthFeature name=PL
WordTranslationFeature name=WT input-factor=0 output-factor=0 simple=1 source-context=0
PhrasePairFeature name=PP input-factor=0 output-factor=0 unrestricted=1 simple=1 source-context=0
SourceWordDeletionFeature name=SWD factor=0
"""
"""In place of the line Distortion: functions that depend on one phrase pair."""

CONTEXTS = """\
Distortion
TargetWordInsertionFeature name=TWI factor=0
WordTranslationFeature name=WT input-factor=0 output-factor=0 simple=1 source-context=1
PhrasePairFeature name=PP input-factor=0 output-factor=0 unrestricted=1 simple=1 source-context=1
WordTranslationFeature name=WTI input-factor=0 output-factor=0 \
simple=0 source-context=1 ignore-punctuation=1
"""
"""In place of the line Distortion: functions that also depend on the source sentence."""

_GLUE = """\
<s> [X] ||| <s> [S] ||| 1 ||| ||| 0
[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 ||| 0
[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0
"""
_GLUE_FEATURE = "PhraseDictionaryMemory name=Glue num-features=1 input-factor=0 output-factor=0"
_MONOTONE = "0-0 1-1 2-2"


def sparse(system: System) -> Path:
    """Return a configuration with sparse features."""
    features = (
        "Distortion\nTargetWordInsertionFeature factor=0\nPhraseLengthFeature\n"
        "WordTranslationFeature input-factor=0 output-factor=0 simple=1 source-context=0"
        " target-context=0\n"
    )
    return system.rewrite("sparse.ini", ("Distortion\n", features))


def hierarchical(system: System) -> Path:
    """Return a configuration of hierarchical search, with a grammar made of the phrases."""
    rules = []
    with gzip.open(system.phrase_table, "rt", encoding="utf-8") as file:
        for line in file:
            source, target, scores, alignment, *_ = line.rstrip("\n").split(" ||| ")
            rules.append(f"{source} [X] ||| {target} [X] ||| {scores} ||| {alignment} ||| 1 1 1\n")
            words = [text.split() for text in (source, target)]
            # Of three words, the one in the middle becomes a gap.
            if alignment == _MONOTONE and all(len(found) == 3 for found in words):
                gaps = (f"{first} [X][X] {last} [X]" for first, _, last in words)
                rules.append(f"{' ||| '.join(gaps)} ||| {scores} ||| {_MONOTONE} ||| 1 1 1\n")
    with gzip.open(system.directory / "rules.gz", "wt", 1, encoding="utf-8") as out:
        out.writelines(sorted(set(rules)))
    with gzip.open(system.directory / "glue.gz", "wt") as out:
        out.write(_GLUE)
    lines = system.config.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("LexicalReordering", "Distortion"))]
    text = "".join(kept)
    for old, new in (
        ("0 T 0\n", "0 T 0\n1 T 1\n[search-algorithm]\n3\n[non-terminals]\nX\n"),
        ("[distortion-limit]\n6\n", "[cube-pruning-pop-limit]\n30\n[max-chart-span]\n20\n1000\n"),
        ("phrase-table.gz", "rules.gz"),
        ("KENLM", f"{_GLUE_FEATURE} path={system.directory}/glue.gz\nKENLM"),
        ("[weight]\n", "[weight]\nGlue= 1\n"),
    ):
        assert old in text
        text = text.replace(old, new)
    path = system.directory / "hierarchical.ini"
    path.write_text(text)
    return path


def _with_input_scores(system: System) -> Path:
    feature = "InputFeature num-features=1 num-input-features=1 real-word-count=0\n"
    return system.rewrite(
        "input.ini",
        ("[feature]\n", f"[feature]\n{feature}"),
        ("[weight]\n", "[weight]\nInputFeature0= 0.1\n"),
    )


def confusion_networks(system: System) -> tuple[Path, Path]:
    """Return a configuration, and networks in which the second word may be missing."""
    path = system.directory / "dev.cn"
    with path.open("w") as out:
        for line in system.source.read_text().splitlines():
            for place, word in enumerate(line.split()):
                out.write(f"{word} 0.8 *EPS* 0.2\n" if place == 1 else f"{word} 1\n")
            out.write("\n")
    return _with_input_scores(system), path


def lattices(system: System) -> tuple[Path, Path]:
    """Return a configuration, and lattices in which the second word may be skipped."""
    path = system.directory / "dev.plf"
    with path.open("w") as out:
        for line in system.source.read_text().replace("'", "\\'").splitlines():
            words = line.split()
            columns = [f"(('{word}',1,1),)," for word in words]
            if len(words) > 2:
                columns[1] = f"(('{words[1]}',0.8,1),('{words[2]}',0.2,2),),"
            out.write(f"({''.join(columns)})\n")
    return _with_input_scores(system), path
