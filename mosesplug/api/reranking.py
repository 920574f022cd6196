"""Rank n-best lists by other weights, or by minimum Bayes risk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import hypergraph_names
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import SentenceIds
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.api.arrays import convert_numbers
from mosesplug.api.keywords import (
    LEARNING,
    ListKeywords,
    check_lengths,
    check_number,
    make_list_keywords,
)
from mosesplug.api.list_sources import ListSource, convert_single
from mosesplug.api.nbest import NBest
from mosesplug.api.progress import Progress, log_formats, open_progress
from mosesplug.api.table import Table, Tabular
from mosesplug.api.weights import (
    InitialWeights,
    WeightTable,
    make_weight_file,
    unknown_feature_error,
)
from mosesplug.errors import DataError, UsageError
from mosesplug.forest.mbr import Criterion
from mosesplug.learning.lengths import find_length_range
from mosesplug.learning.lists.blocks import names_values, read_file_blocks
from mosesplug.learning.lists.transforming import pair_transformed
from mosesplug.metrics import Metric, metric
from mosesplug.metrics.linear_bleu import LinearBleu
from mosesplug.results.choices.mbr import (
    check_utility,
    choose_least_risk,
    pairwise_scores,
    rank_by_risk,
    rank_sentences,
    score_again,
)
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
        reading: see ``ListKeywords``. ``derive`` are the features that the weights were learned
            with. ``transform`` changes the hypotheses before they are compared (``mbr``). Without
            ``dense``, the dense features of a file that names every value are those of ``weights``.

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
    lengths = _find_lengths(named, length_exponent, length_by)
    source, ids, settings = _open_lists(lists, reading)
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


def _open_lists(
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


def _find_lengths(
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


UtilityFunction = Callable[[list[str], list[str]], Any]
"""Returns a number for each pair of a hypothesis and the text that it is compared with."""

Utility = str | Metric | UtilityFunction | Sequence[Any] | NDArray[Any]
"""The name of a metric, a metric, a function, or numbers."""

_METHODS = ("consensus", "list", "lattice")


@LEARNING.in_messages()
def mbr(
    lists: ListSource,
    weights: InitialWeights | None = None,
    *,
    utility: Utility | None = None,
    method: Literal["consensus", "list", "lattice"] = "consensus",
    scale: float = 1.0,
    sparse_weights: str | PathLike[str] | None = None,
    length_exponent: float | str | None = None,
    length_by: str = "words",
    progress: Progress = None,
    **reading: Unpack[ListKeywords],
) -> RerankedLists:
    """Choose the hypothesis of each n-best list with the highest expected utility.

    This is minimum Bayes risk decoding (Kumar & Byrne 2004). The probability of a hypothesis is
    proportional to ``exp(scale * score)``.

    Args:
        lists: the lists, as for ``rerank``.
        weights: weights that score the hypotheses, as for ``rerank``. None: the model scores of the
            lists; with a utility, lists without scores count all hypotheses alike.
        utility: what a hypothesis is worth if another one is right: the name of a metric with its
            settings, such as ``"CHRF"`` or ``"BLEU tokenize:13a"``, or a metric; a function of two
            lists of texts of equal length, hypotheses and what they are compared with, that returns
            a number for each pair, called once for each sentence; or numbers in the order of the
            hypotheses: ``[n, n]`` for each sentence, ``[hypotheses, width]``, of which a row holds
            the utilities of a hypothesis if each one of its sentence is right, or ``[hypotheses]``,
            which are maximized as they are. More is better. None: n-grams, see ``method``.
        method: without ``utility``: ``"consensus"``, BLEU with the expected n-grams of the list
            (DeNero et al. 2009); ``"list"``, expected BLEU+1; ``"lattice"``, linear BLEU (Tromble
            et al. 2008).
        scale: factor of the model scores; 0 counts all hypotheses alike. Learned weights are
            normalized, for which 1 is too flat.
        sparse_weights, length_exponent, length_by: as for ``rerank``.
        progress: as for ``optimize``; counts sentences.
        reading: see ``ListKeywords``. ``transform`` changes the hypotheses before they are
            compared.

    Returns:
        The chosen hypotheses (``texts``), and the lists by descending expected utility, which is
        their score (``lists.scores``).

    Raises:
        UsageError: the utility has another shape than the lists, or lists have no model scores.
        DataError: a utility is not finite.
        FormatError: a file cannot be read, or a weight is missing.

    Example:
        >>> import mosesplug
        >>> lists = [["a small house", "the small house", "the house"], ["yes", "yes yes"]]
        >>> mosesplug.mbr(lists, utility="CHRF").texts
        ['the small house', 'yes yes']
        >>> def overlap(hypotheses, references):
        ...     pairs = zip(hypotheses, references)
        ...     return [len({*one.split()} & {*other.split()}) for one, other in pairs]
        >>> mosesplug.mbr(lists, utility=overlap).lists.scores.round(2).tolist()
        [2.33, 2.0, 1.67, 1.0, 1.0]
    """
    if method not in _METHODS:
        raise UsageError(f"method is {method!r}: give one of {', '.join(_METHODS)}")
    scale = check_number(scale, "scale", 0.0)
    if weights is None and sparse_weights is not None:
        raise UsageError("sparse_weights requires weights")
    criterion = Criterion(method, scale, 1, None, LinearBleu.of_precisions(0.8, 0.6))
    source, ids, settings = _open_lists(lists, reading)
    own = replace(settings, transform=None)
    if weights is None:
        dense = () if names_values(source, own) and own.dense is None else None
        blocks = read_file_blocks(source, own, dense=dense, ids=ids)
    else:
        named = load_weights(weights, sparse_weights)
        lengths = _find_lengths(named, length_exponent, length_by)
        blocks = score_again(source, named, own, ids=ids, lengths=lengths)
    parts: list[NBestList] = []
    with open_progress(progress) as report:
        take = _find_utilities(utility)
        done = 0
        for block, compared in pair_transformed(blocks, settings.transform):
            if not block.has_texts:
                raise UsageError("the lists have no texts to choose from by minimum Bayes risk")
            scores = _find_scores(block, scale, has_utility=utility is not None)
            order: list[NDArray[np.int64]] = []
            gains = np.empty(len(block))
            bounds = np.flatnonzero(np.diff(block.sentence_ids, prepend=-1, append=-1)).tolist()
            for first, last in pairwise(bounds):
                texts = [compared.text(row) for row in range(first, last)]
                utilities = None if take is None else partial(take, texts)
                words = [text.split() for text in texts] if utilities is None else []
                ranked, own_gains = rank_by_risk(words, scores[first:last], utilities, criterion)
                order.append(first + ranked)
                gains[first:last] = own_gains
                done += 1
                report(done, done, "sentences")
            rows = np.concatenate(order)
            scored = replace(block, scores=gains)
            parts.append(NBest.of_block(scored, ids.names).take(rows).block)
        if isinstance(take, _GivenUtilities):
            take.finish()
    whole = NBest.of_block(concatenate(parts), ids.names)
    starts = np.flatnonzero(np.diff(whole.sentence_ids, prepend=-1))
    return RerankedLists(whole, starts.astype(np.int64))


def _find_scores(block: NBestList, scale: float, *, has_utility: bool) -> NDArray[np.float64]:
    """Return finite model scores of hypotheses; zeros if all count alike."""
    is_known = np.isfinite(block.scores)
    if is_known.all():
        return block.scores
    if scale == 0.0 or (has_utility and not is_known.any()):
        return np.zeros(len(block))
    row = int(np.argmin(is_known))
    sentence = int(block.sentence_ids[row])
    raise UsageError(
        f"a hypothesis of sentence {sentence} has no model score: give weights, or scale=0 to count"
        " all hypotheses alike"
    )


def _find_utilities(
    utility: Utility | None,
) -> Callable[[Sequence[bytes]], NDArray[np.float64]] | None:
    """Return a function of the texts of a sentence that returns their utilities."""
    if utility is None:
        return None
    if isinstance(utility, str):
        name, _, settings = utility.strip().partition(" ")
        utility = metric(name, settings)
    if hasattr(utility, "prepare"):
        scorer = cast(Metric, utility)
        check_utility(scorer)
        return partial(pairwise_scores, scorer)
    if callable(utility):
        return partial(_call, utility)
    if isinstance(utility, Mapping) or not hasattr(utility, "__len__"):
        raise UsageError(
            f"utility is a {type(utility).__name__}: give the name of a metric, a metric, a "
            "function of hypotheses and references, or numbers"
        )
    return _GivenUtilities(utility)


def _call(function: UtilityFunction, texts: Sequence[bytes]) -> NDArray[np.float64]:
    """Return the utilities of all pairs of ``n`` texts, float64 ``[n, n]``."""
    distinct = list(dict.fromkeys(text.decode("utf-8", "surrogateescape") for text in texts))
    n = len(distinct)
    hypotheses = [one for one in distinct for _ in distinct]
    pairs = convert_numbers(function(hypotheses, distinct * n), "the result of utility")
    if pairs.shape != (n * n,):
        raise UsageError(
            f"utility returned the shape {pairs.shape} for {n * n} pairs: it gets two lists of "
            "texts of equal length, and returns a number for each pair"
        )
    values = pairs.astype(np.float64)
    if not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(values)))
        raise DataError(
            f"utility returned {values[place]} for {hypotheses[place]!r} compared with "
            f"{distinct[place % n]!r}: return finite numbers"
        )
    places = {text: place for place, text in enumerate(distinct)}
    rows = [places[text.decode("utf-8", "surrogateescape")] for text in texts]
    return values.reshape(n, n)[np.ix_(rows, rows)]


class _GivenUtilities:
    """Utilities in the order of the hypotheses, taken sentence by sentence.

    Args:
        values: see ``mbr``.
    """

    def __init__(self, values: Any) -> None:
        self._values = values
        self._taken = self._sentences = 0
        first = values[0] if len(values) else 0.0
        self._dimensions = np.ndim(values) if hasattr(values, "ndim") else 1 + np.ndim(first)
        # A list of one array for each sentence, or an array [sentences, width, width].
        self._is_nested = self._dimensions == 3

    def __call__(self, texts: Sequence[bytes]) -> NDArray[np.float64]:
        count = len(texts)
        if self._is_nested:
            begin, end, what = self._sentences, self._sentences + 1, "sentences"
        else:
            begin, end, what = self._taken, self._taken + count, "hypotheses"
        if end > len(self._values):
            raise UsageError(f"utility has {len(self._values)} entries, and there are more {what}")
        place = f"utility[{begin}]"
        if self._dimensions == 1:
            values = convert_numbers(self._values[begin:end], place)
        elif self._is_nested:
            values = self._cut(convert_numbers(self._values[begin], place), count, place)
        else:
            rows = [
                self._cut(convert_numbers(self._values[row], f"utility[{row}]"), count, place)
                for row in range(begin, end)
            ]
            values = np.array(rows)
        values = values.astype(np.float64)
        if values.shape not in ((count,), (count, count)):
            raise UsageError(
                f"{place} has the shape {values.shape}, but the sentence has {count} hypotheses: "
                "give a number for each pair"
            )
        if not np.isfinite(values).all():
            raise DataError(f"{place} has a number that is not finite: give finite numbers")
        self._taken, self._sentences = self._taken + count, self._sentences + 1
        return values

    def _cut(self, values: NDArray[Any], count: int, place: str) -> NDArray[Any]:
        """Return values without the columns beyond those of the sentence."""
        has_exact_size = self._is_nested and not hasattr(self._values, "ndim")
        if any(size < count or (has_exact_size and size > count) for size in values.shape):
            raise UsageError(
                f"{place} has the shape {values.shape}, but the sentence has {count} hypotheses: "
                "give a number for each pair"
            )
        return values[(slice(count),) * values.ndim]

    def finish(self) -> None:
        """Check that no utilities are left.

        Raises:
            UsageError: there are more than hypotheses or sentences.
        """
        used = self._sentences if self._is_nested else self._taken
        if used < len(self._values):
            what = "sentences" if self._is_nested else "hypotheses"
            raise UsageError(f"utility has {len(self._values)} entries for {used} {what}")
