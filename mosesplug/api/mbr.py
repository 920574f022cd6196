"""Choose hypotheses by minimum Bayes risk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList, concatenate
from mosesplug.api.initial_weights import InitialWeights
from mosesplug.api.keywords import LEARNING, ListKeywords
from mosesplug.api.lists.nbest import NBest
from mosesplug.api.lists.sources import ListSource
from mosesplug.api.numbers import check_number, convert_numbers
from mosesplug.api.progress import Progress, open_progress
from mosesplug.api.reranking import RerankedLists, find_lengths, load_weights, open_lists
from mosesplug.errors import DataError, UsageError
from mosesplug.forest.mbr import Criterion
from mosesplug.learning.lists.blocks import read_file_blocks
from mosesplug.learning.lists.transforming import pair_transformed
from mosesplug.metrics import Metric
from mosesplug.metrics.bleu.linear import LinearBleu
from mosesplug.metrics.registry import metric_of_text
from mosesplug.results.choices.mbr import check_utility, pairwise_scores, rank_by_risk, score_again

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
            settings, such as ``"CHRF"`` or ``"BLEU tokenize:13a"``, or a metric, such as one of
            ``command_metric``; a function of two lists of texts of equal length, hypotheses and
            what they are compared with, that returns a number for each pair, called once for each
            sentence; or numbers in the order of the hypotheses: ``[n, n]`` for each sentence,
            ``[hypotheses, width]``, of which a row holds the utilities of a hypothesis if each one
            of its sentence is right, or ``[hypotheses]``, which are maximized as they are. More is
            better. None: n-grams, see ``method``.
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
    source, ids, settings = open_lists(lists, reading)
    own = replace(settings, transform=None)
    if weights is None:
        blocks = read_file_blocks(source, own, ids=ids)
    else:
        named = load_weights(weights, sparse_weights)
        lengths = find_lengths(named, length_exponent, length_by)
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
            for first, last in pairwise(block.list_offsets.tolist()):
                texts = [compared.text(row) for row in range(first, last)]
                sentence = int(block.sentence_ids[first])
                utilities = None if take is None else partial(take, texts, sentence)
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
    whole = concatenate(parts)
    return RerankedLists(NBest.of_block(whole, ids.names), whole.list_offsets[:-1])


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
) -> Callable[[Sequence[bytes], int], NDArray[np.float64]] | None:
    """Return a function of a sentence's texts and number that returns utilities."""
    if utility is None:
        return None
    if isinstance(utility, str):
        utility = metric_of_text(utility)
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


def _call(function: UtilityFunction, texts: Sequence[bytes], sentence: int) -> NDArray[np.float64]:
    """Return the utilities of all pairs of ``n`` texts, float64 ``[n, n]``."""
    del sentence  # a function gets texts only
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

    def __call__(self, texts: Sequence[bytes], sentence: int) -> NDArray[np.float64]:
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
