"""A backoff n-gram language model (ARPA file) that scores many words at once.

The model is a trie of n-grams, used as an automaton: a *state* is the longest context that the
model knows. ``advance`` follows one word from each of many states. For an unknown n-gram it adds
the backoff weight of the context and continues with the next shorter context. States with the same
scores for every continuation are merged, so the search recombines as much as the model allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from os import PathLike, fspath

import numpy as np

from formats.errors import FormatError
from formats.text import open_text
from mosesplug.arrays import Bools, Floats, Ints, Ints32
from mosesplug.extras.phrase_decoder.hashing import IntegerMap

LOG_10 = math.log(10.0)
UNKNOWN_WORD_LOG10 = -100.0
"""log10 probability of an unknown word if the file has no ``<unk>``, as in KenLM."""
ROWS_AT_ONCE = 50_000
_LONGEST_COUNT = 12
"""Digits; Python rejects integers of thousands of digits in words of its own."""
KENLM_BINARY = b"mmap lm http://kheafield.com"


@dataclass(frozen=True)
class LanguageModel:
    """An n-gram model; all scores are natural logarithms. Build it with ``read_arpa``.

    Node 0 is the empty context, node ``1 + word`` the unigram of ``word``. Word 0 is ``<unk>``.

    Attributes:
        order: length of the longest n-grams.
        log_probability: float64 ``[n_nodes]``; probability of the last word given the others.
        backoff: float64 ``[n_nodes]``; 0 if missing.
        suffix: int32 ``[n_nodes]``; the longest proper suffix of the n-gram in the model.
        state: int32 ``[n_nodes]``; the shortest node with the same scores for every continuation.
        children: node of an n-gram by ``context node * vocabulary size + word``.
        start_state: state after ``<s>``.
        end_word: the id of ``</s>``.
    """

    order: int
    vocabulary: dict[bytes, int]
    log_probability: Floats
    backoff: Floats
    suffix: Ints32
    state: Ints32
    children: IntegerMap
    start_state: int
    end_word: int

    def words(self, tokens: list[bytes]) -> Ints32:
        """Return the ids of the tokens; 0 for unknown words."""
        return np.fromiter(
            (self.vocabulary.get(token, 0) for token in tokens), np.int32, len(tokens)
        )

    def advance(self, states: Ints32, words: Ints32) -> tuple[Floats, Ints32]:
        """Return the log probability of each word in its state, and the next state.

        Args:
            states: int32 ``[m]``.
            words: int32 ``[m]``.

        Returns:
            float64 ``[m]`` and int32 ``[m]``.
        """
        nodes, backoffs = self._longest_match(states, words)
        return self.log_probability[nodes] + backoffs, self.state[nodes]

    def _longest_match(self, contexts: Ints32, words: Ints32) -> tuple[Ints32, Floats]:
        """Return the longest known n-gram of context and word, and its backoff weight."""
        nodes = 1 + words
        backoffs = np.zeros(len(words))
        pending = np.flatnonzero(contexts)
        contexts = contexts[pending]
        while len(pending):
            found = self.child(contexts, words[pending])
            missing = found < 0
            nodes[pending[~missing]] = found[~missing]
            pending, contexts = pending[missing], contexts[missing]
            backoffs[pending] += self.backoff[contexts]
            contexts = self.suffix[contexts]
            # Without context the n-gram is the unigram, which every word has.
            deeper = contexts > 0
            pending, contexts = pending[deeper], contexts[deeper]
        return nodes, backoffs

    def child(self, contexts: Ints32, words: Ints32) -> Ints32:
        """Return the nodes of non-empty contexts plus words, int32 ``[m]``; -1 if unknown."""
        return self.children.find(contexts.astype(np.int64) * len(self.vocabulary) + words)

    def phrase_scores(self, words: Ints32, offsets: Ints) -> tuple[Floats, Floats, Ints32]:
        """Score phrases without context.

        Args:
            words: int32; the concatenated phrases.
            offsets: int64 ``[n_phrases + 1]``.

        Returns:
            The score of all words, float64 ``[n_phrases]``; that of the words whose n-gram lies
            within the phrase, which no context can change, of the same shape; and the state after
            the phrase, int32 of the same shape.
        """
        lengths = np.diff(offsets)
        total = np.zeros(len(lengths))
        inner = np.zeros(len(lengths))
        states = np.zeros(len(lengths), dtype=np.int32)
        for position in range(int(lengths.max(initial=0))):
            longer = np.flatnonzero(lengths > position)
            scores, after = self.advance(states[longer], words[offsets[longer] + position])
            total[longer] += scores
            states[longer] = after
            if position >= self.order - 1:
                inner[longer] += scores
        return total, inner, states


@dataclass(frozen=True)
class _Rows:
    """N-grams of one order: words int32 ``[n, order]``, log10 values float64 ``[n]``."""

    words: Ints32
    log_probability: Floats
    backoff: Floats
    first_line: int


def read_arpa(path: str | PathLike[str]) -> LanguageModel:
    """Read a language model in ARPA format, plain or compressed.

    Raises:
        FormatError: the file is not an ARPA file (for example KenLM's binary format), a line is
            malformed, the counts do not match, the context of an n-gram is missing, or ``<s>`` or
            ``</s>`` is missing.
    """
    path = fspath(path)
    with open_text(path) as stream:
        lines = enumerate(stream, start=1)
        counts = _read_counts(path, lines)
        vocabulary: dict[bytes, int] = {b"<unk>": 0}
        sections = [
            _read_section(path, lines, order, count, vocabulary)
            for order, count in enumerate(counts, start=1)
        ]
        for number, line in lines:
            if line.strip() == b"\\end\\":
                break
            if line.strip():
                raise FormatError("\\end\\ expected", path=path, line=number)
        else:
            raise FormatError("no \\end\\: the file is truncated", path=path)
    for word in (b"<s>", b"</s>"):
        if word not in vocabulary:
            raise FormatError(f"the model has no {word.decode()}", path=path)
    return _build(path, sections, vocabulary)


def _read_counts(path: str, lines: Iterator[tuple[int, bytes]]) -> list[int]:
    """Read the number of n-grams of each order from the header."""
    counts: list[int] = []
    started = False
    for number, line in lines:
        text = line.strip()
        if number == 1 and text.startswith(KENLM_BINARY):
            raise FormatError(
                "this is a binary KenLM file",
                path=path,
                remedy="Give the ARPA file that it was built from",
            )
        if text == b"\\data\\":
            started = True
        elif started and text == b"\\1-grams:" and counts:
            return counts
        elif started and text:
            order, _, count = text.removeprefix(b"ngram ").partition(b"=")
            is_number = count.strip().isdigit() and len(count.strip()) <= _LONGEST_COUNT
            if order.strip() != b"%d" % (len(counts) + 1) or not is_number:
                raise FormatError(
                    f"'ngram {len(counts) + 1}=COUNT' expected in the header",
                    path=path,
                    line=number,
                )
            counts.append(int(count))
        elif text and number > 1000:
            break
    raise FormatError("no ARPA header (\\data\\, then \\1-grams:)", path=path)


def _read_section(
    path: str,
    lines: Iterator[tuple[int, bytes]],
    order: int,
    count: int,
    vocabulary: dict[bytes, int],
) -> _Rows:
    """Read all n-grams of one order; unigrams fill the vocabulary."""
    first_line = _section_start(path, lines, order) + 1 if order > 1 else 0
    # Not as many rows as the header promises, which may be far more than the file has.
    words, values = [np.zeros((0, order), np.int32)], [np.zeros((0, 2))]
    for start in range(0, count, ROWS_AT_ONCE):
        size = min(ROWS_AT_ONCE, count - start)
        block = list(islice(lines, size))
        rows = [line.split() for _, line in block]
        if order == 1:
            first_line = first_line or block[0][0]
            for row in rows:
                if len(row) > 1 and row[1] != b"<UNK>":
                    vocabulary.setdefault(row[1], len(vocabulary))
        try:
            parsed = _parse_rows(rows, order, vocabulary)
            if len(rows) < size:
                raise ValueError
        except (ValueError, KeyError, IndexError):
            _explain_rows(path, block, order, size, vocabulary)
            raise
        words.append(parsed[0])
        values.append(parsed[1])
    numbers = np.concatenate(values)
    return _Rows(np.concatenate(words), numbers[:, 0], numbers[:, 1], first_line)


def _section_start(path: str, lines: Iterator[tuple[int, bytes]], order: int) -> int:
    """Return the line of a section title; only blank lines may precede it."""
    for number, line in lines:
        text = line.strip()
        if text == b"\\%d-grams:" % order:
            return number
        if text:
            raise FormatError(
                f"\\{order}-grams: expected here",
                path=path,
                line=number,
                remedy="The counts in the header do not match the file",
            )
    raise FormatError(f"no \\{order}-grams: section: the file is truncated", path=path)


def _parse_rows(
    rows: list[list[bytes]], order: int, vocabulary: dict[bytes, int]
) -> tuple[Ints32, Floats]:
    """Parse words, int32 ``[n, order]``, and their values, float64 ``[n, 2]``.

    The values are the log10 probability and the backoff weight.
    """
    unknown = {b"<UNK>": 0}
    words = np.empty((len(rows), order), dtype=np.int32)
    for column in range(order):
        tokens = [row[column + 1] for row in rows]
        words[:, column] = [
            vocabulary[token] if token in vocabulary else unknown[token] for token in tokens
        ]
    values = np.zeros((len(rows), 2))
    values[:, 0] = [float(row[0]) for row in rows]
    values[:, 1] = [float(row[order + 1]) if len(row) == order + 2 else 0.0 for row in rows]
    if (
        any(len(row) > order + 2 for row in rows)
        or not np.isfinite(values).all()
        or (values[:, 0] > 0).any()
    ):
        raise ValueError
    return words, values


def _explain_rows(
    path: str, block: list[tuple[int, bytes]], order: int, size: int, vocabulary: dict[bytes, int]
) -> None:
    """Raise the error of the first malformed line."""
    for number, line in block:
        row = line.split()
        try:
            _parse_rows([row], order, vocabulary)
        except KeyError as unknown:
            word = unknown.args[0].decode(errors="replace")
            raise FormatError(
                f"'{word}' is not among the 1-grams", path=path, line=number
            ) from None
        except (ValueError, IndexError):
            raise FormatError(
                f"not a {order}-gram: 'log10 probability, {order} word(s), log10 backoff' expected",
                path=path,
                line=number,
                remedy="Check also for a probability above 1, a value that is not finite, and a "
                "count in the header that does not match the file",
            ) from None
    if len(block) < size:
        raise FormatError(f"the {order}-grams end early: the file is truncated", path=path)


def _build(path: str, sections: list[_Rows], vocabulary: dict[bytes, int]) -> LanguageModel:
    """Number the n-grams as nodes, order by order, and link each to its suffix."""
    n_words = len(vocabulary)
    first = [1 + n_words]
    for section in sections[1:]:
        first.append(first[-1] + len(section.words))
    n_nodes = first[-1]
    log_probability, backoff = np.zeros(n_nodes), np.zeros(n_nodes)
    suffix, state = np.zeros(n_nodes, dtype=np.int32), np.zeros(n_nodes, dtype=np.int32)

    log_probability[1] = UNKNOWN_WORD_LOG10 * LOG_10
    unigrams = 1 + sections[0].words[:, 0]
    log_probability[unigrams] = sections[0].log_probability * LOG_10
    backoff[unigrams] = sections[0].backoff * LOG_10

    keys: list[Ints] = []
    has_children = np.zeros(n_nodes, dtype=np.bool_)
    model = LanguageModel(
        order=len(sections),
        vocabulary=vocabulary,
        log_probability=log_probability,
        backoff=backoff,
        suffix=suffix,
        state=state,
        children=IntegerMap.of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)),
        start_state=0,
        end_word=vocabulary[b"</s>"],
    )
    for order, section in enumerate(sections[1:], start=2):
        nodes = np.arange(first[order - 2], first[order - 1], dtype=np.int32)
        contexts = 1 + section.words[:, 0]
        for column in range(1, order - 1):
            contexts = model.child(contexts, section.words[:, column])
            if (contexts < 0).any():
                row = int(np.argmax(contexts < 0))
                raise FormatError(
                    f"the context of this {order}-gram is not in the model",
                    path=path,
                    line=section.first_line + row,
                )
        keys.append(contexts.astype(np.int64) * n_words + section.words[:, -1])
        log_probability[nodes] = section.log_probability * LOG_10
        backoff[nodes] = section.backoff * LOG_10
        has_children[contexts] = True
        _check_duplicates(path, keys[-1], order, section.first_line)
        all_keys = np.concatenate(keys)
        values = np.arange(first[0], first[0] + len(all_keys), dtype=np.int32)
        model = _with_children(model, IntegerMap.of(all_keys, values))
        suffix[nodes] = model._longest_match(suffix[contexts], section.words[:, -1])[0]

    _link_states(first, model, has_children)
    start = vocabulary[b"<s>"]
    return LanguageModel(**{**vars(model), "start_state": int(state[1 + start])})


def _with_children(model: LanguageModel, children: IntegerMap) -> LanguageModel:
    return LanguageModel(**{**vars(model), "children": children})


def _check_duplicates(path: str, keys: Ints, order: int, first_line: int) -> None:
    by_key = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys[by_key]) == 0)
    if len(again):
        line = first_line + int(by_key[again + 1].min())
        raise FormatError(f"this {order}-gram is listed twice", path=path, line=line)


def _link_states(first: list[int], model: LanguageModel, has_children: Bools) -> None:
    """Fill ``model.state``.

    A node without backoff weight and children has the state of its suffix.
    """
    matters = has_children | (model.backoff != 0.0)
    bounds = [1, *first]
    for begin, end in pairwise(bounds):
        nodes = np.arange(begin, end, dtype=np.int32)
        model.state[nodes] = np.where(matters[nodes], nodes, model.state[model.suffix[nodes]])
