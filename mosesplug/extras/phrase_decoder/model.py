"""Prepare a model for an input: phrase pairs as arrays for the search.

The score of a translation is ``weights . features``. Part of it depends only on a phrase pair (its
table scores, the penalties, n-grams inside a long phrase) and is computed here once; the rest
(n-grams across phrases, jumps, reordering) is added when a pair is used. The *estimate* of a pair
adds the language model score of its first words without context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.extras.phrase_decoder.language_model import LanguageModel, read_arpa
from mosesplug.extras.phrase_decoder.model_file import (
    N_REORDERING,
    Feature,
    ModelFeatures,
    find_file,
)
from mosesplug.extras.phrase_decoder.phrase_table import (
    LOWEST_LOG,
    ReorderingTable,
    TableEntry,
    read_phrase_table,
    read_reordering,
    source_phrases,
)
from mosesplug.templates.derivation import PhrasePair
from mosesplug.templates.reading import split_words
from mosesplug.templates.template import PhraseTemplate

DEFAULT_TABLE_LIMIT = 20


@dataclass(frozen=True)
class Model:
    """Model data shared by all sentences. Arrays have one row per phrase pair.

    Attributes:
        options: the pairs of each source phrase within the table limit, best estimate first.
        longest: number of words of the longest source phrase.
        surface: the target words in the output.
        target_words: int32; positions in ``surface`` of the concatenated phrases.
        target_offsets: int64 ``[n_pairs + 1]``; phrase ``i`` is
            ``target_words[target_offsets[i]:target_offsets[i + 1]]``.
        first_words: int32 ``[n_pairs, order - 1]``; language model ids of the words whose
            score depends on the context, padded with -1.
        end_state: int32 ``[n_pairs]``; language model state after the phrase if it does not
            depend on the context (``order - 1`` words or more), otherwise -1.
        values: float64 ``[n_pairs, n_values]``; feature values that depend only on the pair.
        score: float64 ``[n_pairs]``; their weighted sum.
        alignments: the aligned positions of each pair.
        sparse: the values of sparse features that depend only on the pair, by name.
        estimate: float64 ``[n_pairs]``; ``score`` plus that of the first words without context.
        reordering: float64 ``[n_pairs, 6]``; backward (monotone, swap, discontinuous), then
            forward; 0 if the table does not contain the pair.
        turn_score: float64 ``[n_pairs, 6]``; ``reordering`` times its weights.
        forward_class: int32 ``[n_pairs]``; equal for pairs with equal forward scores.
    """

    features: ModelFeatures
    language_model: LanguageModel
    options: dict[bytes, Ints]
    longest: int
    surface: list[bytes]
    target_words: Ints32
    target_offsets: Ints
    first_words: Ints32
    end_state: Ints32
    values: Floats
    score: Floats
    sparse: Sequence[Mapping[str, float]]
    alignments: Sequence[tuple[tuple[int, int], ...]]
    estimate: Floats
    reordering: Floats
    turn_score: Floats
    forward_class: Ints32

    def target(self, pair: int) -> list[bytes]:
        """Return the target words of a phrase pair."""
        words = self.target_words[self.target_offsets[pair] : self.target_offsets[pair + 1]]
        return [self.surface[word] for word in words]


@dataclass(frozen=True)
class Tables:
    """The contents of a model's files, without weights.

    Attributes:
        pairs: the phrase pairs, in the order of the file.
        rows: the positions of each source phrase's pairs in ``pairs``.
        reordering: returns the available reordering scores of the given phrase pairs.
    """

    pairs: Sequence[TableEntry]
    rows: Mapping[bytes, Sequence[int]]
    reordering: Callable[[set[tuple[bytes, bytes]]], ReorderingTable]
    language_model: LanguageModel


def read_tables(
    features: ModelFeatures, wanted: set[bytes] | None, *, with_alignment: bool = False
) -> Tables:
    """Read the files of a model.

    Args:
        features: the model of the configuration; its weights are ignored.
        wanted: the source phrases of the input, None for all. With source phrases, reordering
            scores are read when they are first used; with None, at once.
        with_alignment: whether word alignments are read even if no feature needs them.
    """
    table = _feature(features, "PhraseDictionaryMemory")
    path = find_file(features, table)
    needing = [each.name for each in features.templates if "alignment" in each.needs]
    pairs = read_phrase_table(
        path, len(table.columns), wanted, with_alignment=with_alignment or bool(needing)
    )
    if needing and pairs and not any(pair.alignment for pair in pairs):
        raise DataError(
            f"{path} has no word alignments, which {' and '.join(needing)} needs. Use a phrase "
            "table with them, or leave the feature out"
        )
    rows: dict[bytes, list[int]] = {}
    for row, pair in enumerate(pairs):
        rows.setdefault(pair.source, []).append(row)
    language_model = read_arpa(find_file(features, _feature(features, "KENLM")))
    feature = features.of_kind("LexicalReordering")
    if feature is None:
        return Tables(pairs, rows, lambda pairs: {}, language_model)
    path = find_file(features, feature)
    if wanted is not None:
        read = partial(read_reordering, path, N_REORDERING)
        return Tables(pairs, rows, read, language_model)
    scores = read_reordering(path, N_REORDERING, None)
    return Tables(
        pairs, rows, lambda pairs: {p: scores[p] for p in pairs if p in scores}, language_model
    )


def load_model(
    features: ModelFeatures,
    sentences: Sequence[Sequence[bytes]],
    *,
    longest_phrase: int = 20,
    table_limit: int | None = None,
    with_alignment: bool = False,
) -> Model:
    """Read the parts of a model's files that the sentences need, and build the model.

    Args:
        sentences, longest_phrase, table_limit: see ``build_model``.
    """
    wanted = source_phrases(sentences, longest_phrase)
    tables = read_tables(features, wanted, with_alignment=with_alignment)
    return build_model(
        tables, features, sentences, longest_phrase=longest_phrase, table_limit=table_limit
    )


def build_model(
    tables: Tables,
    features: ModelFeatures,
    sentences: Sequence[Sequence[bytes]],
    *,
    longest_phrase: int = 20,
    table_limit: int | None = None,
) -> Model:
    """Build the model of some sentences at the weights of ``features``.

    A word without a one-word phrase pair is copied: it gets a pair with Moses' penalty.

    Args:
        tables: the tables of the same model, with all source phrases of the sentences.
        longest_phrase: maximum number of words in a source phrase.
        table_limit: maximum number of translations of a source phrase, 0 for all; None for the
            limit in the configuration.
    """
    table = _feature(features, "PhraseDictionaryMemory")
    phrases = source_phrases(sentences, longest_phrase)
    rows = sorted(row for phrase in phrases for row in tables.rows.get(phrase, ()))
    pairs = [tables.pairs[row] for row in rows]
    words = dict.fromkeys(word for sentence in sentences for word in sentence)
    n_known = len(pairs)
    nothing = (0.0,) * len(table.columns)
    aligned = ((0, 0),)
    pairs += [TableEntry(word, word, nothing, aligned) for word in words if word not in tables.rows]
    language_model = tables.language_model

    surface, target_words, target_offsets = _surface(pairs)
    lm_words = language_model.words(surface)[target_words]
    total, inner, states = language_model.phrase_scores(lm_words, target_offsets)
    values = _values(features, pairs, n_known, np.diff(target_offsets), inner)
    local = features.templates_of("phrase")
    sparse = [_count_sparse(local, pair) for pair in pairs] if local else ()
    score = values @ features.weights
    if sparse:
        score += np.array([features.weigh(counts) for counts in sparse])
    estimate = score + (total - inner) * float(features.weights_of("KENLM")[0])
    if table_limit is None:
        table_limit = int(table.arguments.get("table-limit", DEFAULT_TABLE_LIMIT))
    options = _best_options(pairs, estimate, table_limit)
    reordering, forward_class = _reordering(tables, pairs, options)
    n_first = language_model.order - 1
    return Model(
        features=features,
        language_model=language_model,
        options=options,
        longest=max((source.count(b" ") + 1 for source in options), default=0),
        surface=surface,
        target_words=target_words,
        target_offsets=target_offsets,
        first_words=_first_words(lm_words, target_offsets, n_first),
        end_state=np.where(np.diff(target_offsets) >= n_first, states, -1).astype(np.int32),
        values=values,
        score=score,
        sparse=sparse,
        alignments=[pair.alignment for pair in pairs],
        estimate=estimate,
        reordering=reordering,
        turn_score=reordering * features.weights_of("LexicalReordering", N_REORDERING),
        forward_class=forward_class,
    )


def _count_sparse(templates: Sequence[PhraseTemplate], pair: TableEntry) -> Mapping[str, float]:
    """Return the values of the sparse features of a pair."""
    words = PhrasePair(split_words(pair.source), split_words(pair.target), pair.alignment)
    counts: dict[str, float] = {}
    for template in templates:
        counts.update(template.count_pair(words))
    return counts


def _feature(features: ModelFeatures, kind: str) -> Feature:
    feature = features.of_kind(kind)
    if feature is None:
        raise DataError(f"{features.path}: [feature] has no {kind}")
    return feature


def _surface(pairs: Sequence[TableEntry]) -> tuple[list[bytes], Ints32, Ints]:
    """Return the distinct target words, phrases as word positions, and phrase offsets."""
    numbers: dict[bytes, int] = {}
    flat: list[int] = []
    offsets = [0]
    for pair in pairs:
        flat.extend(numbers.setdefault(word, len(numbers)) for word in pair.target.split())
        offsets.append(len(flat))
    return list(numbers), np.array(flat, dtype=np.int32), np.array(offsets, dtype=np.int64)


def _values(
    features: ModelFeatures, pairs: Sequence[TableEntry], n_known: int, lengths: Ints, inner: Floats
) -> Floats:
    """Return values of features of a pair alone; pairs from ``n_known`` on copy words."""
    values = np.zeros((len(pairs), len(features.weights)))
    for feature in features.features:
        columns = slice(feature.columns.start, feature.columns.stop)
        if feature.kind == "PhraseDictionaryMemory":
            width = len(feature.columns)
            values[:, columns] = np.reshape([pair.scores for pair in pairs], (len(pairs), width))
        elif feature.kind == "WordPenalty":
            values[:, columns] = -lengths[:, None]
        elif feature.kind == "PhrasePenalty":
            values[:, columns] = 1.0
        elif feature.kind == "UnknownWordPenalty":
            values[n_known:, columns] = LOWEST_LOG
        elif feature.kind == "KENLM":
            values[:, columns] = inner[:, None]
    return values


def _best_options(pairs: Sequence[TableEntry], estimate: Floats, limit: int) -> dict[bytes, Ints]:
    """Return the best ``limit`` pairs (0: all) of each source phrase.

    Ties are in file order.
    """
    rows: dict[bytes, list[int]] = {}
    for row, pair in enumerate(pairs):
        rows.setdefault(pair.source, []).append(row)
    options = {}
    for source, members in rows.items():
        by_estimate = np.argsort(-estimate[members], kind="stable")
        kept = by_estimate[:limit] if limit else by_estimate
        options[source] = np.array(members, dtype=np.int64)[kept]
    return options


def _reordering(
    tables: Tables, pairs: Sequence[TableEntry], options: dict[bytes, Ints]
) -> tuple[Floats, Ints32]:
    """Return the reordering scores, and the class of each pair's forward scores."""
    scores = np.zeros((len(pairs), N_REORDERING))
    classes = np.zeros(len(pairs), dtype=np.int32)
    rows = [int(row) for members in options.values() for row in members]
    table = tables.reordering({(pairs[row].source, pairs[row].target) for row in rows})
    numbers: dict[tuple[float, ...], int] = {}
    for row in rows:
        found = table.get((pairs[row].source, pairs[row].target))
        if found is not None:
            scores[row] = found
            # Class 0 is for pairs without scores: Moses distinguishes these even from zero scores.
            classes[row] = numbers.setdefault(found[N_REORDERING // 2 :], len(numbers) + 1)
    return scores, classes


def _first_words(words: Ints32, offsets: Ints, width: int) -> Ints32:
    """Return each phrase's first words, int32 ``[n_pairs, width]``, padded with -1."""
    positions = offsets[:-1, None] + np.arange(width)
    inside = positions < offsets[1:, None]
    padded = np.append(words, np.int32(-1))
    return padded[np.where(inside, positions, len(words))]
