"""Gradient learners: a loss, a scale and a regularizer, which combine freely.

    sgd      w <- w - eta_k g,          eta_k = eta_1 / (1 + (k - 1) / T)   (survey, 6.5)
    adagrad  w <- w - eta g / sqrt(G),  G <- G + g^2          (Green et al. 2013, eq. 4-5)
    pegasos  w <- (1 - eta_k lambda) w - eta_k g,  eta_k = 1 / (lambda k), then into a ball

with ``g`` the gradient of the mini-batch (``gradients``) and ``T`` the updates of the whole run.

By forward-backward splitting (Duchi & Singer 2009), the regularizer of sgd and adagrad is applied
exactly after a gradient step, and only when a feature is used:

    argmin_v  |v - w|^2 / 2 + rate * strength * r(v)

with ``r`` the L1 norm (each weight moves towards 0 by ``rate * strength``, at most to 0) or half
the squared L2 norm (each weight is divided by ``1 + rate * strength``). Between two gradients, a
feature only has such steps, and they add up: as distances for L1, as logarithms for L2. The size
of a step is called its *dose*. Learners apply the sum of doses when the feature is updated or its
weight is read, without approximation (Green et al. 2013, section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np

from mosesplug.arrays import Columns, ColumnValues, Weights
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.costs import CostKind
from mosesplug.optimizers.online import ball
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.gradients import (
    DescentOptions,
    Loss,
    RateOptions,
    loss_gradient,
)
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.options import CostOptions, OnlineOptions
from mosesplug.optimizers.problem import LARGEST
from mosesplug.options import Opt, same_as

Norm = Literal["l1", "l2"]
Some = Columns | slice
"""Some features of a state; the slice of all reads without a copy of the columns."""

ALL = slice(None)


@dataclass(frozen=True)
class SgdOptions(RateOptions):
    """Settings of stochastic gradient descent."""

    rate: Annotated[
        float,
        Opt(
            "learning rate of the first update, eta",
            source="Neubig & Watanabe 2016, eq. 70; value: found on recorded lists of Moses",
            minimum=0.0,
        ),
    ] = 0.02
    regularization: Annotated[
        float,
        Opt("strength of the regularizer, lambda", source="Watanabe 2012, section 5", minimum=0.0),
    ] = 1e-5
    norm: Annotated[
        Norm,
        Opt(
            "the regularizer: l1 makes weights zero, l2 makes them small",
            source="Duchi & Singer 2009",
        ),
    ] = "l2"


_GREEN: Mapping[str, object] = MappingProxyType(
    {
        "batch": 20,
        "averaging": "last",
        "start_spread": 0.0,
        "keep_state": True,
        "cost": "lin-och",
        "loss": "logistic",
        "kept_pairs": 15,
        "minimum_count": 0,
        "rate": 0.02,
        "regularization": 0.1,
        "norm": "l1",
    }
)


@dataclass(frozen=True)
class AdagradOptions(RateOptions):
    """Settings of AdaGrad."""

    variant: Annotated[
        Literal["mosesplug", "paper"],
        Opt(
            "defaults of the other settings: mosesplug's, or the paper's",
            details="paper: pairs by BLEU+1 of the sentence, starting weights at their own scale, "
            "and the last weights. Settings that are given keep their values.",
            source="Green et al. 2013, Algorithm 1 and section 4.2",
            presets={"paper": _GREEN},
        ),
    ] = "mosesplug"
    batch: Annotated[
        int, same_as(OnlineOptions, "batch", source="Green et al. 2013, section 4.2")
    ] = 20
    rate: Annotated[
        float, Opt("learning rate, eta", source="Green et al. 2013, section 4.2", minimum=0.0)
    ] = 0.02
    regularization: Annotated[
        float,
        Opt(
            "strength of the regularizer, lambda",
            source="Green et al. 2013, section 4.2",
            minimum=0.0,
        ),
    ] = 0.1
    norm: Annotated[Norm, same_as(SgdOptions, "norm", source="Green et al. 2013, section 3.2")] = (
        "l1"
    )


@dataclass(frozen=True)
class PegasosOptions(DescentOptions):
    """Settings of Pegasos."""

    cost: Annotated[
        CostKind,
        same_as(
            CostOptions,
            "cost",
            source="Lin & Och 2004; measured: the first steps remove the starting weights, and a "
            "background of such output ended 7 BLEU lower on the demo",
        ),
    ] = "lin-och"
    loss: Annotated[
        Loss,
        same_as(
            DescentOptions, "loss", source="Shalev-Shwartz et al. 2007; Watanabe 2012, eq. 5-6"
        ),
    ] = "hinge"
    regularization: Annotated[
        float,
        Opt(
            "strength of the L2 regularizer, lambda",
            source="Shalev-Shwartz et al. 2007; value: found on recorded lists of Moses",
            minimum=1e-30,
        ),
    ] = 0.02


def regularization_dose(rates: ColumnValues, strength: float, norm: Norm) -> ColumnValues:
    """Return the dose of one step at these rates: one per feature, or one for all."""
    return rates * strength if norm == "l1" else np.log1p(rates * strength)


def shrink(weights: ColumnValues, doses: ColumnValues, norm: Norm) -> ColumnValues:
    """Return the weights after sums of doses; L1 as in Green et al. (2013), eq. 15."""
    if norm == "l1":
        return np.copysign(np.maximum(np.abs(weights) - doses, 0.0), weights)
    return weights * np.exp(-doses)


def divide_rate(rate: float, squares: ColumnValues) -> ColumnValues:
    """Return AdaGrad's rates; a feature without a gradient so far has none."""
    return np.divide(rate, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0.0)


@dataclass(frozen=True)
class _Scale:
    """The rates of a chain, and the regularization that is still due.

    Attributes:
        vectors: the state's vectors beside weights and ``since``, with values of unseen features.
        memory: what the state remembers beside vectors.
        rates: returns the rates of an update, of which it also takes note in the state.
        due: returns the sum of doses of some features since their last update.
        now: returns the state after a dose, and what ``since`` of an updated feature is then.
        owes_unseen: whether features that never had a gradient are marked as updated when all
            regularization is applied. They have no rate, so it changes the state's bytes only.
    """

    vectors: Mapping[str, float]
    memory: Mapping[str, Weights]
    rates: Callable[[LearnerState, Columns, ColumnValues, Step], ColumnValues]
    due: Callable[[LearnerState, Some], ColumnValues]
    now: Callable[[LearnerState, ColumnValues], tuple[LearnerState, float | Weights]]
    owes_unseen: bool


def sgd_learner(options: SgdOptions) -> Learner:
    """Return stochastic gradient descent on the mean loss of a batch.

    The rate is the same for all features, so the regularization that is due for a feature is the
    difference of two sums of doses: the memory's ``doses`` and the state's ``since``. The former
    starts at 1; ``since`` is 0 for features that were never updated, which are not regularized.
    """

    def rates(
        state: LearnerState, columns: Columns, gradient: ColumnValues, step: Step
    ) -> ColumnValues:
        total = max(1, options.epochs * step.per_epoch)
        return np.array([options.rate / (1.0 + (step.number - 1) / total)])

    def due(state: LearnerState, columns: Some) -> ColumnValues:
        since = state.vectors["since"][columns]
        return np.where(since > 0.0, state.memory["doses"] - since, 0.0)

    def now(state: LearnerState, dose: ColumnValues) -> tuple[LearnerState, Weights]:
        doses = state.memory["doses"] + dose
        return replace(state, memory={**state.memory, "doses": doses}), doses

    scale = _Scale({}, {"doses": np.ones(1)}, rates, due, now, owes_unseen=False)
    return _splitting_learner(options, scale, summed=False)


def adagrad_learner(options: AdagradOptions) -> Learner:
    """Return AdaGrad on the summed loss of a batch (Green et al. 2013, Algorithm 1).

    ``G`` (``squares``) of a feature is constant while its gradient is 0, so the regularization that
    is due is one equal dose per update since its last gradient, whose number is ``since``.
    """

    def rates(
        state: LearnerState, columns: Columns, gradient: ColumnValues, step: Step
    ) -> ColumnValues:
        state.vectors["squares"][columns] += gradient * gradient
        return divide_rate(options.rate, state.vectors["squares"][columns])

    def due(state: LearnerState, columns: Some) -> ColumnValues:
        own = divide_rate(options.rate, state.vectors["squares"][columns])
        missed = state.updates - state.vectors["since"][columns]
        return missed * regularization_dose(own, options.regularization, options.norm)

    def now(state: LearnerState, dose: ColumnValues) -> tuple[LearnerState, float]:
        return state, state.updates

    scale = _Scale({"squares": 0.0}, {}, rates, due, now, owes_unseen=True)
    return _splitting_learner(options, scale, summed=True)


def _splitting_learner(
    options: SgdOptions | AdagradOptions, scale: _Scale, *, summed: bool
) -> Learner:
    """Return ``loss | scale | prox`` by forward-backward splitting, applied lazily.

    The state's vectors are ``weights``, complete up to each feature's last update, ``since``, and
    those of the scale. At the end of an epoch, all regularization is applied.
    """
    strength, norm = options.regularization, options.norm

    def present(state: LearnerState, columns: Some) -> ColumnValues:
        return shrink(state.vectors["weights"][columns], scale.due(state, columns), norm)

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        change = drop_rare_features(state, change, step, options.minimum_count)
        columns, gradient, vectors = change.columns, change.values, state.vectors
        before = present(state, columns)  # at the rates before this gradient
        rates = scale.rates(state, columns, gradient, step)
        dose = regularization_dose(rates, strength, norm)
        vectors["weights"][columns] = require_usable(shrink(before - rates * gradient, dose, norm))
        state = replace(state, memory={**state.memory, **change.memory}, updates=state.updates + 1)
        state, updated = scale.now(state, dose)
        vectors["since"][columns] = updated
        if step.ends_epoch:
            vectors["weights"][:] = present(state, ALL)
            vectors["since"][ALL if scale.owes_unseen else vectors["since"] > 0.0] = updated
        return state

    fills = {"weights": 0.0, **scale.vectors, "since": 0.0, **count_vectors(options)}
    return Learner(
        fills=fills,
        init=lambda weights: LearnerState(initial_vectors(fills, weights), scale.memory),
        change=loss_gradient(
            options, lambda state, columns, step: present(state, columns), summed=summed
        ),
        apply=ignore_overflow(apply),
        weights=lambda state: present(state, ALL),
        initial_memory=options.costs().memory,
        makes_zeros=norm == "l1" and strength > 0.0,
    )


def pegasos_learner(options: PegasosOptions) -> Learner:
    """Return Pegasos (Shalev-Shwartz et al. 2007) on the mean loss of a batch.

    (Watanabe 2012, Algorithm 2, lines 7 and 8, with Pegasos' own rate). The first step removes the
    initial weights: they only affect its gradient. If that gradient is 0, they are kept.
    """

    def init(weights: Weights) -> LearnerState:
        state = ball.init_state(weights)
        return replace(state, vectors={**initial_vectors(fills, weights), **state.vectors})

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        rate = 1.0 / (options.regularization * step.number)
        change = drop_rare_features(state, change, step, options.minimum_count)
        change = replace(change, values=-rate * change.values)
        return ball.take_step(state, change, step, rate=rate, regularization=options.regularization)

    fills = {**ball.FILLS, **count_vectors(options)}
    return Learner(
        fills=fills,
        init=init,
        change=loss_gradient(options, ball.present_weights, summed=False),
        apply=apply,
        weights=ball.all_weights,
        project=ball.project_all,
        initial_memory=options.costs().memory,
    )


def count_vectors(options: DescentOptions) -> dict[str, float]:
    """Return the vectors that count features, with their values for unseen features."""
    return {"seen": 0.0, "seen_in": 0.0} if options.minimum_count else {}


def initial_vectors(fills: Mapping[str, float], weights: Weights) -> dict[str, Weights]:
    """Return a copy of the weights, and vectors of fill values."""
    vectors = {name: np.full(len(weights), fill) for name, fill in fills.items()}
    vectors["weights"] = np.array(weights, dtype=np.float64)
    return vectors


def drop_rare_features(state: LearnerState, change: Change, step: Step, minimum: int) -> Change:
    """Drop features that fewer than ``minimum`` sentences have.

    The counts of the batch, ``change.more["sentences"]``, are added to the state in place. Counts
    restart in every epoch, so that a rare feature does not become frequent by repetition. An
    admitted feature stays admitted.
    """
    if not minimum:
        return change
    seen, seen_in = state.vectors["seen"], state.vectors["seen_in"]
    columns = change.columns
    have = np.where(seen_in[columns] == step.epoch, seen[columns], 0.0)
    have = np.where(seen[columns] >= minimum, seen[columns], have + change.more["sentences"])
    seen[columns], seen_in[columns] = have, step.epoch
    enough = have >= minimum
    return replace(change, columns=columns[enough], values=change.values[enough], more={})


def require_usable(weights: ColumnValues) -> ColumnValues:
    """Return the weights if they are usable as starting weights."""
    if not (np.abs(weights) <= LARGEST).all():
        raise OptimizerError(
            "the weights overflow. Choose a lower learning rate or smaller starting weights."
        )
    return weights


def ignore_overflow(
    apply: Callable[[LearnerState, Change, Step], LearnerState],
) -> Callable[[LearnerState, Change, Step], LearnerState]:
    """Return ``apply`` without overflow warnings; ``require_usable`` raises."""

    def quiet(state: LearnerState, change: Change, step: Step) -> LearnerState:
        with np.errstate(over="ignore", invalid="ignore"):
            return apply(state, change, step)

    return quiet


ALGORITHMS = (
    online_algorithm(
        name="sgd",
        summary="Run stochastic gradient descent on a selectable loss.",
        source="Neubig & Watanabe 2016",
        options=SgdOptions,
        learner=sgd_learner,
    ),
    online_algorithm(
        name="adagrad",
        summary="Adapt each feature's step size.",
        source="Green et al. 2013",
        options=AdagradOptions,
        learner=adagrad_learner,
    ),
    online_algorithm(
        name="pegasos",
        summary="Take sub-gradient steps of size 1/(lambda k).",
        source="Shalev-Shwartz et al. 2007",
        options=PegasosOptions,
        learner=pegasos_learner,
    ),
)
