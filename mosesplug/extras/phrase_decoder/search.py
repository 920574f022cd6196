"""Beam search for phrase-based translations of one sentence, as a search graph.

Hypotheses cover source words in any order and produce the target from left to right. Hypotheses
that cover the same number of words compete in one stack, by score plus an estimate for the
uncovered words (Koehn, Och & Marcu 2003; Koehn 2004). Hypotheses that no feature can distinguish
are recombined: they become one node, with an edge for each.

All hypotheses of a stack are expanded at once, as arrays. Thousands of them share a few language
model states, and many phrases begin with the same words; only the first words of a phrase depend on
the words before it. ``Boundary`` computes each score at the boundary of phrases once per sentence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Bools, Floats, Ints, Ints32
from mosesplug.extras.phrase_decoder.coverage import Coverages, find_phrase_pairs
from mosesplug.extras.phrase_decoder.model import Model
from mosesplug.extras.phrase_decoder.search_graph import (
    DISCONTINUOUS,
    MONOTONE,
    N_DIRECTION,
    SWAP,
    PhraseGraph,
)
from mosesplug.extras.phrase_decoder.target_features import TargetFeatures


@dataclass(frozen=True)
class Limits:
    """The limits of the beam search.

    Attributes:
        stack: maximum number of hypotheses in a stack, 0 for all.
        beam_threshold: minimum probability relative to the best of the stack; 0 for all.
        distortion_limit: the longest jump, -1 for any.
    """

    stack: int = 200
    beam_threshold: float = 1e-5
    distortion_limit: int = -1


@dataclass(frozen=True)
class _Expansions:
    """Columns of candidate hypotheses; ``total`` is score plus estimate."""

    total: Floats
    tail: Ints
    option: Ints
    span: Ints
    coverage: Ints
    state: Ints32
    history: Ints32
    language_model: Floats
    jump: Ints
    orientation: Ints

    def take(self, rows: Ints | Bools) -> _Expansions:
        return _Expansions(*(column[rows] for column in vars(self).values()))


@dataclass(frozen=True)
class _Edges:
    """Edges into the nodes of one stack; ``score`` is that of the best path over each."""

    found: _Expansions
    head: Ints
    score: Floats


@dataclass(frozen=True)
class _Stack:
    """The nodes of one stack, best first."""

    node: Ints
    score: Floats
    coverage: Ints
    state: Ints32
    history: Ints32
    pair: Ints
    start: Ints
    end: Ints


def search(model: Model, words: Sequence[bytes], limits: Limits) -> PhraseGraph:
    """Translate a sentence.

    Args:
        model: a model loaded for an input with this sentence.
    """
    return _Search(model, words, limits).run()


class _Search:
    """The state of one search: options, pending stacks, and nodes and edges so far."""

    def __init__(self, model: Model, words: Sequence[bytes], limits: Limits) -> None:
        self.model = model
        self.length = len(words)
        self.limits = limits
        self.options = find_phrase_pairs(model, words)
        self.widths = sorted(set(self.options.width.tolist()))
        self.boundary = Boundary(model, self.options.pairs)
        self.targets: TargetFeatures | None = None
        if model.features.target_templates:
            self.targets = TargetFeatures(model.features, self.options.phrases)
        self.coverages = Coverages(self.options, self.length, limits.distortion_limit)
        features = model.features
        self.distortion = float(features.weights_of("Distortion")[0])
        self.lm_weight = float(features.weights_of("KENLM")[0])
        self.best = [-math.inf] * (self.length + 1)
        self.pending: list[list[_Expansions]] = [[] for _ in range(self.length + 1)]
        self.stacks: list[_Stack] = []
        self.edges: list[_Edges] = []
        self.n_nodes = 1
        floor = limits.beam_threshold
        self.beam = math.log(floor) if floor > 0 else -math.inf

    def run(self) -> PhraseGraph:
        self.stacks.append(self._first_stack())
        for covered in range(self.length):
            self._expand(self.stacks[covered], covered)
            self.stacks.append(self._select(covered + 1))
        return self._graph()

    def _first_stack(self) -> _Stack:
        """Return the empty hypothesis; its last phrase ends just before the sentence."""
        zero, before = np.zeros(1, dtype=np.int64), np.full(1, -1, dtype=np.int64)
        return _Stack(
            node=zero,
            score=np.zeros(1),
            coverage=np.array([self.coverages.number(0, 0)]),
            state=np.array([self.model.language_model.start_state], dtype=np.int32),
            history=np.zeros(1, dtype=np.int32),
            pair=before,
            start=before,
            end=before,
        )

    def _expand(self, stack: _Stack, covered: int) -> None:
        """Extend every hypothesis of a stack by every applicable phrase pair."""
        if not len(stack.node) or not len(self.options.pairs):
            return
        options, model = self.options, self.model
        coverages, of_hypothesis = np.unique(stack.coverage, return_inverse=True)
        numbers, rest = self.coverages.after(coverages)
        jumps = np.abs(stack.end[:, None] + 1 - options.start)
        hypothesis, span = np.nonzero(
            (numbers[of_hypothesis] >= 0) & (jumps <= self.coverages.reach)
        )
        jump = jumps[hypothesis, span]
        backward = np.where(
            options.start[span] == stack.end[hypothesis] + 1,
            MONOTONE,
            np.where(options.end[span] + 1 == stack.start[hypothesis], SWAP, DISCONTINUOUS),
        )
        before = stack.pair[hypothesis]
        forward = np.where(before < 0, N_DIRECTION, backward)
        base = (
            stack.score[hypothesis]
            + rest[of_hypothesis[hypothesis], span]
            - self.distortion * jump
            + np.where(before < 0, 0.0, model.turn_score[before, N_DIRECTION + backward])
        )

        counts = options.counts[span]
        row = np.repeat(np.arange(len(span)), counts)
        option = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        option += options.first[span[row]]
        pair = options.pairs[option]
        final = (options.width[span] + covered == self.length)[row]
        score, state = self.boundary.extend(stack.state, hypothesis[row], option, final)
        total = base[row] + options.score[option] + model.turn_score[pair, backward[row]]
        total += self.lm_weight * score
        history = stack.history[hypothesis[row]]
        if self.targets is not None:
            sparse, history = self.targets.extend(self.targets.number(history, option, final))
            total += sparse
        self._push(
            covered,
            _Expansions(
                total=total,
                tail=stack.node[hypothesis[row]],
                option=option,
                span=span[row],
                coverage=numbers[of_hypothesis[hypothesis], span][row],
                state=state,
                history=history,
                language_model=score,
                jump=jump[row],
                orientation=(backward + N_DIRECTION * forward)[row],
            ),
        )

    def _push(self, covered: int, found: _Expansions) -> None:
        """Add expansions to their stacks, except those already outside the beam."""
        width = self.options.width[found.span]
        for words in self.widths:
            rows = np.flatnonzero(width == words)
            if not len(rows):
                continue
            stack = covered + words
            self.best[stack] = max(self.best[stack], float(found.total[rows].max()))
            rows = rows[found.total[rows] >= self.best[stack] + self.beam]
            self.pending[stack].append(found.take(rows))

    def _select(self, covered: int) -> _Stack:
        """Recombine the candidates of a stack and keep its best nodes with their edges."""
        found = _concatenate(self.pending[covered])
        self.pending[covered] = []
        found = found.take(found.total >= self.best[covered] + self.beam)
        order, group = self._recombine(found)
        found = found.take(order)
        heads = np.flatnonzero(np.diff(group, prepend=-1))
        ranked = np.argsort(-found.total[heads], kind="stable")
        rank = np.empty(len(heads), dtype=np.int64)
        rank[ranked] = np.arange(len(heads))
        size = self.limits.stack or len(heads)
        kept = np.flatnonzero(rank[group] < size)
        kept = kept[np.argsort(rank[group[kept]], kind="stable")]
        return self._add(found.take(heads[ranked[:size]]), found.take(kept), rank[group[kept]])

    def _recombine(self, found: _Expansions) -> tuple[Ints, Ints]:
        """Return the order by node, best first within a node, and the node of each row."""
        classes = self.model.forward_class[self.options.pairs[found.option]].astype(np.int64)
        if self.model.features.of_kind("LexicalReordering") is None:
            last = self.options.end[found.span]
        else:
            last = found.span * (int(classes.max(initial=0)) + 1) + classes
        keys = [
            found.coverage * np.int64(len(self.model.language_model.state)) + found.state,
            last,
        ]
        if self.targets is not None:
            keys.append(found.history)
        order = np.lexsort((-found.total, *keys))
        changes = np.zeros(len(order), dtype=np.bool_)
        for key in keys:
            changes[1:] |= np.diff(key[order]) != 0
        return order, np.cumsum(changes)

    def _add(self, heads: _Expansions, edges: _Expansions, rank: Ints) -> _Stack:
        """Add the heads as nodes, and the edges into them."""
        rest = np.array([self.coverages.rest[number] for number in heads.coverage])
        nodes = self.n_nodes + np.arange(len(heads.total))
        stack = _Stack(
            node=nodes,
            score=heads.total - rest,
            coverage=heads.coverage,
            state=heads.state,
            history=heads.history,
            pair=self.options.pairs[heads.option],
            start=self.options.start[heads.span],
            end=self.options.end[heads.span],
        )
        self.edges.append(_Edges(edges, nodes[rank], edges.total - rest[rank]))
        self.n_nodes += len(nodes)
        return stack

    def _graph(self) -> PhraseGraph:
        """Return the nodes and edges of all stacks."""
        found = _concatenate([edges.found for edges in self.edges])
        head = np.concatenate([np.zeros(0, dtype=np.int64), *(edges.head for edges in self.edges)])
        path_score = np.concatenate([np.zeros(0), *(edges.score for edges in self.edges)])
        node_score = np.concatenate([stack.score for stack in self.stacks])
        sizes = [len(stack.node) for stack in self.stacks]
        first_edge = np.zeros(self.n_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(head, minlength=self.n_nodes), out=first_edge[1:])
        node_covered = np.repeat(np.arange(self.length + 1), sizes)
        extension = np.zeros(0, dtype=np.int64)
        if self.targets is not None:
            history = np.concatenate([stack.history for stack in self.stacks])[found.tail]
            is_final = node_covered[head] == self.length
            extension = self.targets.number(history, found.option, is_final)
        return PhraseGraph(
            model=self.model,
            targets=self.targets,
            node_score=node_score,
            node_covered=node_covered,
            node_pair=np.concatenate([stack.pair for stack in self.stacks]),
            goals=self.stacks[-1].node,
            first_edge=first_edge,
            head=head,
            tail=found.tail,
            pair=self.options.pairs[found.option],
            contextual=[self.options.contextual[option] for option in found.option.tolist()]
            if self.options.contextual
            else (),
            extension=extension,
            start=self.options.start[found.span],
            end=self.options.end[found.span],
            language_model=found.language_model,
            jump=found.jump,
            orientation=found.orientation,
            score=path_score - node_score[found.tail],
        )


def _concatenate(parts: Sequence[_Expansions]) -> _Expansions:
    """Concatenate expansions."""
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        state = np.zeros(0, dtype=np.int32)
        return _Expansions(
            np.zeros(0), *(nothing,) * 4, state, state, np.zeros(0), nothing, nothing
        )
    return _Expansions(
        *(np.concatenate(columns) for columns in zip(*map(_columns, parts), strict=True))
    )


def _columns(part: _Expansions) -> list[Floats]:
    return list(vars(part).values())


class Boundary:
    """A table of phrase scores by language model state, filled on demand.

    Args:
        pairs: int64 ``[n_options]``; the phrase pairs of a sentence.
    """

    def __init__(self, model: Model, pairs: Ints) -> None:
        self.language_model = model.language_model
        self.own_state = model.end_state[pairs]
        self.beginnings, beginning = np.unique(
            model.first_words[pairs], axis=0, return_inverse=True
        )
        self.beginning = beginning.reshape(-1)
        self.rows: dict[int, int] = {}
        self.score = np.zeros((0, len(self.beginnings)))
        self.after = np.zeros((0, len(self.beginnings)), dtype=np.int32)

    def extend(
        self, states: Ints32, hypothesis: Ints, option: Ints, final: Bools
    ) -> tuple[Floats, Ints32]:
        """Score each option's first words after a state, and return the next state.

        Args:
            states: int32 ``[n_hypotheses]``.
            hypothesis: int64 ``[m]``; positions in ``states``.
            option: int64 ``[m]``; positions in ``pairs``.
            final: bool ``[m]``; whether the sentence ends after the option, so that ``</s>`` is
                scored too.

        Returns:
            log probabilities, float64 ``[m]``, and states, int32 ``[m]``.
        """
        row = self._rows(states)[hypothesis]
        column = self.beginning[option]
        score = self.score[row, column]
        missing = np.isnan(score)
        if missing.any():
            self._fill(row[missing], column[missing])
            score = self.score[row, column]
        own = self.own_state[option]
        state = np.where(own >= 0, own, self.after[row, column])
        ends = np.flatnonzero(final)
        if len(ends):
            last, inverse = np.unique(state[ends], return_inverse=True)
            end_words = np.full(len(last), self.language_model.end_word, dtype=np.int32)
            more, after = self.language_model.advance(last, end_words)
            score[ends] += more[inverse]
            state[ends] = after[inverse]
        return score, state

    def _rows(self, states: Ints32) -> Ints:
        """Return the table row of each state; rows of new states are empty (NaN)."""
        rows = [self.rows.setdefault(state, len(self.rows)) for state in states.tolist()]
        lacking = len(self.rows) - len(self.score)
        if lacking > 0:
            # Grow by half, so that copies stay rare.
            new = np.full((lacking + len(self.rows) // 2, self.score.shape[1]), np.nan)
            self.score = np.concatenate([self.score, new])
            self.after = np.concatenate([self.after, np.zeros(new.shape, dtype=np.int32)])
        return np.array(rows, dtype=np.int64)

    def _fill(self, row: Ints, column: Ints) -> None:
        """Compute cells of the table; a cell may be listed more than once."""
        wanted = np.zeros(self.score.shape, dtype=np.bool_)
        wanted[row, column] = True
        row, column = np.nonzero(wanted)
        state = np.array(list(self.rows), dtype=np.int32)[row]
        score = np.zeros(len(row))
        for words in self.beginnings[column].T:
            longer = np.flatnonzero(words >= 0)
            more, after = self.language_model.advance(state[longer], words[longer])
            score[longer] += more
            state[longer] = after
        self.score[row, column] = score
        self.after[row, column] = state
