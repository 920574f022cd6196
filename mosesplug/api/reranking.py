"""Rank n-best lists by other weights, or by minimum Bayes risk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import hypergraph_names
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import SentenceIds
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.api.initial_weights import InitialWeights, make_weight_file, unknown_feature_error
from mosesplug.api.keywords import LEARNING, ListKeywords, check_lengths, make_list_keywords
from mosesplug.api.lists.nbest import NBest
from mosesplug.api.lists.sources import ListSource, convert_single
from mosesplug.api.numbers import check_number
from mosesplug.api.progress import log_formats
from mosesplug.api.tables.records import Tabular
from mosesplug.api.tables.table import Table
from mosesplug.api.weights import WeightTable
from mosesplug.errors import UsageError
from mosesplug.learning.lengths import find_length_range
from mosesplug.learning.lists.transforming import pair_transformed
from mosesplug.results.choices.mbr import choose_least_risk, rank_sentences, score_again
from mosesplug.results.weights.sources import read_weights_of
from mosesplug.settings.lengths import LengthRange
from mosesplug.settings.lists import NO_SETTINGS, ListSettings


@dataclass(frozen=True, eq=False, repr=False)
class RerankedLists(Tabular):
    """Ranked n-best lists, and the hypothesis that was chosen of each.

    It prints as a table of the chosen hypotheses.

    Attributes:
        lists: the hypotheses of each sentence by descending score, with the added features.
        rows: int64 ``[n_sentences]``, the row of the chosen hypothesis of each sentence: the first
            one, or that of least risk.
    """

    lists: NBest
    rows: NDArray[np.int64]

    @property
    def sentence_ids(self) -> NDArray[np.int64]:
        """The sentence of each chosen hypothesis, int64 ``[n_sentences]``."""
        return self.lists.sentence_ids[self.rows]

    @property
    def ids(self) -> list[str]:
        """The id of the sentence of each chosen hypothesis, as its file has it."""
        return [self.lists.name_sentence(number) for number in self.sentence_ids.tolist()]

    @property
    def texts(self) -> list[str]:
        """The text of each chosen hypothesis."""
        return [self.lists.texts[row] for row in self.rows.tolist()]

    @property
    def table(self) -> Table:
        """The chosen hypotheses, as ``NBest.table`` has them."""
        return self.lists.take(self.rows).table

    def __repr__(self) -> str:
        return f"chosen hypotheses of {self.lists!r}\n{self.table!r}"

    def _repr_html_(self) -> str:
        return f"<p>chosen hypotheses of {self.lists!r}</p>{self.table._repr_html_()}"

    def lines(self) -> dict[int, bytes]:
        """Return the bytes of the chosen hypotheses by sentence id."""
        rows = zip(self.sentence_ids.tolist(), self.rows.tolist(), strict=True)
        return {sentence: self.lists.block.text(row) for sentence, row in rows}


@LEARNING.in_messages()
def rerank(
    lists: ListSource,
    weights: InitialWeights,
    *,
    sparse_weights: str | PathLike[str] | None = None,
    mbr: bool = False,
    scale: float = 1.0,
    length_exponent: float | str | None = None,
    length_by: str = "words",
    **reading: Unpack[ListKeywords],
) -> RerankedLists:
    """Rank n-best lists by other weights, and choose the best hypothesis of each.

    Args:
        lists: the lists: an ``NBest``, a file, a data frame, or nested lists, as for ``optimize``.
        weights: those of all dense and all added features: a mapping, such as ``fit.weights``; a
            vector of the dense ones; a file of any format; a working directory, for its result; or
            a text ``"lm=0.5 tm=0.3"``. Sparse
            weights that are missing count as 0.
        sparse_weights: a file of sparse weights, which replace those of ``weights``.
        mbr: choose the hypothesis with the highest expected BLEU+1 (minimum Bayes risk, Kumar &
            Byrne 2004) instead of the first.
        scale: with ``mbr``, scale of the model scores.
        length_exponent: exponent of the length that scores are divided by, or ``"NAME,...:X"`` to
            divide some features. None: the one that the weights record, in their file or in
            ``WEIGHTS.length`` beside it, or none.
        length_by: with ``length_exponent``, the length: ``words``, or a dense feature.
        reading: see ``ListKeywords``. ``derive`` must agree with what the weights record; recorded
            features that the lists lack are derived without it. ``transform`` changes the
            hypotheses before they are compared (``mbr``). Without ``dense``, the dense features of
            a file that names every value are those of ``weights``.

    Returns:
        The ranked lists, and the choice.

    Raises:
        FormatError: a file cannot be read, a weight is missing, a file or a table of weights has
            one of a dense feature that the lists lack, or two length exponents are recorded.
        UsageError: an added feature has another number of values, or a name that is taken; or a
            mapping names a feature that the lists lack.
        DataError: a value is not finite.

    Example:
        >>> import mosesplug
        >>> lists = mosesplug.read_nbest("run1.best100.out.gz")
        >>> weights = {"LM0": 0.5, "WordPenalty0": 0.1, "Length": 0.4}
        >>> lengths = [len(text.split()) for text in lists.texts]
        >>> ranked = mosesplug.rerank(lists, weights, add_features={"Length": lengths})
        >>> ranked.texts[0]
        'the house is small'
        >>> ranked.lists.names
        ('LM0', 'WordPenalty0', 'Length')
    """
    scale = check_number(scale, "scale", 0.0)
    named = load_weights(weights, sparse_weights)
    lengths = find_lengths(named, length_exponent, length_by)
    source, ids, settings = open_lists(lists, reading)
    is_mapping = isinstance(weights, Mapping) and not isinstance(weights, WeightTable)
    parts: list[RerankedLists] = []
    for part in rerank_blocks(
        source,
        named,
        settings,
        scale=scale if mbr else None,
        ids=ids,
        lengths=lengths,
        uses_all=not is_mapping,
    ):
        if not parts and is_mapping and isinstance(weights, Mapping):
            _check_known(weights, named, part.lists)
        parts.append(part)
    begins = np.cumsum([0, *(len(part.lists) for part in parts)])
    rows = [part.rows + begin for part, begin in zip(parts, begins, strict=False)]
    whole = concatenate([part.lists.block for part in parts])
    return RerankedLists(NBest.of_block(whole, ids.names), np.concatenate(rows))


def open_lists(
    lists: ListSource, reading: ListKeywords
) -> tuple[Path | NBestList, SentenceIds, ListSettings]:
    """Return lists or their file, their sentence ids, and how they are read."""
    source = convert_single(lists, reading.get("columns"))
    settings = make_list_keywords(reading)
    if isinstance(source, NBest):
        check_lengths(reading.get("add_features"), len(source))
        return source.block, SentenceIds(source.ids), settings
    log_formats([source], settings)
    return Path(source), SentenceIds(), settings


def find_lengths(
    weights: WeightFile, exponent: float | str | None, length_by: str
) -> LengthRange | None:
    return find_length_range(weights, None if exponent is None else str(exponent), length_by)


def load_weights(weights: InitialWeights, sparse_weights: str | PathLike[str] | None) -> WeightFile:
    """Return weights as a file has them; see ``rerank``.

    Raises:
        UsageError: sparse weights without a file of weights, or something else than weights.
        DataError: a weight is not finite.
        FormatError: a file cannot be read.
    """
    if isinstance(weights, str | PathLike):
        return read_weights_of(
            fspath(weights), None if sparse_weights is None else Path(sparse_weights)
        )
    if sparse_weights is not None:
        raise UsageError("sparse_weights requires a file of weights")
    return make_weight_file(weights, "weights")


def rerank_blocks(
    lists: StrPath | NBestList,
    weights: WeightFile,
    settings: ListSettings = NO_SETTINGS,
    *,
    scale: float | None = None,
    ids: SentenceIds | None = None,
    lengths: LengthRange | None = None,
    uses_all: bool = True,
) -> Iterator[RerankedLists]:
    """Yield the ranked lists block by block, so that memory is bounded by a block.

    Args:
        lists: the lists, or their file.
        weights: those of all features.
        settings, ids, lengths, uses_all: as for ``score_again``; ``transform`` changes only the
            texts that are compared for minimum Bayes risk.
        scale: scale of the scores for minimum Bayes risk; None: choose the first.

    Raises:
        UsageError: ``transform`` without minimum Bayes risk.
    """
    ids = SentenceIds() if ids is None else ids
    if settings.transform is not None and scale is None:
        raise UsageError("{--transform} requires {--mbr}: nothing else here depends on the texts")
    own = replace(settings, transform=None)
    blocks = score_again(lists, weights, own, ids=ids, lengths=lengths, uses_all=uses_all)
    for block, compared in pair_transformed(blocks, settings.transform):
        order = [np.zeros(0, dtype=np.int64)]
        chosen: list[int] = []
        first = 0
        for _, rows in rank_sentences(block):
            place = 0 if scale is None else choose_least_risk(compared, rows, scale)
            chosen.append(first + place)
            order.append(rows)
            first += len(rows)
        ranked = NBest.of_block(block, ids.names).take(np.concatenate(order))
        yield RerankedLists(ranked, np.array(chosen, dtype=np.int64))


def _check_known(weights: Mapping[str, Any], named: WeightFile, lists: NBest) -> None:
    """Check that the lists have every feature of a mapping, which may be misspelled.

    Sparse features may be missing if the lists have others.
    """
    known = [name for name, _ in lists.space.groups]
    for place, name in enumerate(weights):
        values = named.groups.get(name)
        # Lists that name every value have TM_1 and TM_2 for the two weights of TM.
        if values is not None and not {name, *hypergraph_names([(name, len(values))])} & {*known}:
            raise unknown_feature_error("weights", name, place, known)
        if name in named.sparse and not lists.space.sparse and name not in lists.space.columns:
            raise unknown_feature_error("weights", name, place, known)
