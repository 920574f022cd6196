"""Add the derivation of each reference to the n-best lists, if one is found.

The decoder searches for it. With them in the lists, a learner whose oracles are the best hypotheses
makes bold updates towards references (Liang et al. 2006; survey of Neubig & Watanabe 2016, section
4.1). Liang, Zhang & Zhao (2012) add them to the lists of other algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from formats.errors import FormatError
from formats.moses.ini import MosesIni, read_moses_ini
from formats.text import atomic_write, open_text, write_atomic
from mosesplug.decoders.lists.files import merge_samples, pack
from mosesplug.decoders.moses import MosesCommands
from mosesplug.decoders.processes.run import FinishedProcess, make_error
from mosesplug.decoders.protocol import DecodingTask
from mosesplug.errors import DecoderError
from mosesplug.events import Note

CONSTRAINTS = "ConstrainedDecoding"
"""Moses' feature function that lets derivations of references pass only."""

_UNREACHABLE = b"</s>"
"""Stands for a reference that Moses cannot read: it never translates anything to this word."""


def add_forced_derivations(
    run: Callable[[tuple[str, ...], str], FinishedProcess],
    program: MosesCommands,
    task: DecodingTask,
    iteration: int,
    *,
    weights: str | None,
    sparse_weights: str | None,
) -> None:
    """Decode once more with constraints, and append what is found to the n-best lists.

    Args:
        run: runs a command whose files are called ``runN.NAME...``.
        task: of the decoding without constraints, with the references.
        weights, sparse_weights: as for ``MosesCommands.nbest``.

    Raises:
        DecoderError: the decoder failed, or does not know Moses' constraints.
    """
    derivations = task.files.run(iteration, "forced.best.out")
    derivations.unlink(missing_ok=True)
    command = program.nbest(
        prepare_forced(task),
        task.source,
        run=iteration,
        nbest_file=derivations.name,
        nbest=1,
        weights=weights,
        sparse_weights=sparse_weights,
    )
    finished = run(command, "forced.")
    if not derivations.is_file():
        raise DecoderError(
            f"{task.files.run(iteration, 'forced.err')}: forced decoding wrote no n-best list. The"
            " decoder must be Moses, which knows ConstrainedDecoding; or leave out"
            " {--forced-decoding}"
        )
    try:
        derived = _keep_references(derivations, task.references or ())
    except ValueError as error:
        problem = f"forced decoding wrote a list with invalid sentence ids ({error})"
        raise make_error(problem, finished.command, finished.stderr) from error
    merge_samples(task.files.nbest(iteration), derivations, finished)
    pack(derivations)
    task.watch(
        Note(f"forced decoding: {derived} of {task.n_sentences} sentences can yield a reference")
    )


def _keep_references(path: Path, references: Sequence[Sequence[bytes]]) -> int:
    """Drop derivations of other texts from a list; return how many remain.

    Moses lets a word that it does not know stand for any word of a reference.
    """
    wanted = [{tuple(text.split()) for text in texts} for texts in zip(*references, strict=True)]
    with open_text(path) as source, atomic_write(path) as target:
        kept = 0
        for line in source:
            if not line.strip():
                continue
            number, text, *_ = line.split(b"|||")
            sentence = int(number)
            if not 0 <= sentence < len(wanted):
                raise ValueError(f"sentence id {sentence}, but there are {len(wanted)} sentences")
            if tuple(text.split()) in wanted[sentence]:
                target.write(line)
                kept += 1
    return kept


def prepare_forced(task: DecodingTask) -> Path:
    """Write references and a configuration constrained by them; return the latter.

    Raises:
        FormatError: the configuration cannot be constrained.
    """
    names = []
    for number, reference in enumerate(task.references or ()):
        path = task.files.directory / f"forced.references{number}"
        write_atomic(path, format_constraints(reference))
        names.append(path.name)
    constrained = task.files.directory / "forced.moses.ini"
    write_atomic(constrained, constrain_config(read_moses_ini(task.config), names))
    return constrained


def constrain_config(ini: MosesIni, references: Sequence[str]) -> bytes:
    """Return a configuration that derives references only.

    Moses accepts an unknown word in place of any word of a reference. Derivations of other texts
    are dropped afterwards.

    Args:
        ini: the configuration of the decoder.
        references: names of files in the format of ``format_constraints``, without commas and
            blanks.

    Raises:
        FormatError: the configuration has no feature functions, or is constrained already.
    """
    if "feature" not in ini.sections:
        raise FormatError(
            "there is no section [feature]", path=ini.path, remedy="Give a moses.ini of Moses"
        )
    if constraints := [feature for feature in ini.features if feature.kind == CONSTRAINTS]:
        raise FormatError(
            f"{CONSTRAINTS} is there already",
            path=ini.path,
            line=constraints[0].line,
            remedy="Remove it, or tune without forced decoding",
        )
    lines = list(ini.lines)
    head = ini.sections["feature"]
    line = f"{CONSTRAINTS} name=ForcedDecoding0 max-unknowns=-1 path={','.join(references)}\n"
    lines.insert(head, line.encode())
    if not lines[head - 1].endswith(b"\n"):
        lines[head - 1] += b"\n"
    return b"".join(lines)


def format_constraints(references: Sequence[bytes]) -> bytes:
    """Return one reference of each sentence as Moses reads it: an id and a text.

    References without words, or with a ``|``, which separates factors, are made unreachable.
    """
    rows = []
    for number, text in enumerate(references):
        words = text.split()
        readable = words and not any(b"|" in word for word in words)
        rows.append(b"%d\t%s\n" % (number, b" ".join(words) if readable else _UNREACHABLE))
    return b"".join(rows)
