"""Settings that all online learners share; each learner adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from mosesplug.candidates import OracleUpdates
from mosesplug.errors import UsageError
from mosesplug.optimizers.costs import CostKind, Costs, Remembered, UnitOfCosts
from mosesplug.options import Opt

Averaging = Literal["last", "all", "best"]


@dataclass(frozen=True)
class OnlineOptions:
    """Settings of all online learners."""

    epochs: Annotated[
        int,
        Opt(
            "number of passes over the sentences after each decoding",
            source="Watanabe 2012, section 5",
            minimum=1,
        ),
    ] = 30
    batch: Annotated[
        int, Opt("number of sentences per mini-batch", source="Watanabe 2012, section 5", minimum=1)
    ] = 16
    averaging: Annotated[
        Averaging,
        Opt(
            "result: last weights, mean over all updates, or best epoch",
            details="The mean is over the weights after every update; weights that L1 has made 0 "
            "at the end are 0. While decoding, best is the best on the held-out set; without one, "
            "it is the mean, because the scores of epochs cannot be compared.",
            source="Neubig & Watanabe 2016, section 6.2",
        ),
    ] = "best"
    start_spread: Annotated[
        float,
        Opt(
            "scale starting weights to this spread of model scores; 0: no",
            details="The spread is the root mean square difference from the mean of the n-best "
            "list. Only on stored lists, for a new learner.",
            source="mosesplug's",
            minimum=0.0,
        ),
    ] = 0.0
    keep_state: Annotated[
        bool,
        Opt(
            "keep rates, sums and the scale of weights between decodings",
            details="If false, every decoding starts a new learner from the last weights. Epochs "
            "that decode always keep the state.",
            source="Green et al. 2013, Algorithm 1, which never restarts",
        ),
    ] = True


@dataclass(frozen=True)
class CostOptions(OnlineOptions):
    """Settings of learners that use the costs of hypotheses."""

    cost: Annotated[
        CostKind,
        Opt(
            "cost of a hypothesis, by corpus or sentence score",
            details="corpus: metric of the batch. lin-och, moses, nakov: smoothed sentence BLEU. "
            "pseudo-corpus: metric of the last choices for all sentences, with this one replaced. "
            "background: metric with the decayed statistics of earlier choices.",
            source="Neubig & Watanabe 2016, section 6.1",
        ),
    ] = "background"
    remember: Annotated[
        Remembered,
        Opt(
            "hypothesis whose statistics pseudo-corpus and background keep",
            source="one-best: Neubig & Watanabe 2016, section 6.1.2; hope: Cherry & Foster 2012",
            only_with="cost=pseudo-corpus|background",
        ),
    ] = "one-best"
    background_decay: Annotated[
        float,
        Opt(
            "factor of the background statistics at each sentence",
            source="Cherry & Foster 2012, as kbmira --decay",
            only_with="cost=background",
            minimum=0.0,
        ),
    ] = 0.999

    cost_unit: UnitOfCosts = "sentence"

    def costs(self) -> Costs:
        """Return the costs that these settings describe.

        Raises:
            UsageError: ``background_decay`` is not from 0 to 1.
        """
        if not 0.0 <= self.background_decay <= 1.0:
            raise UsageError(f"background_decay must be from 0 to 1, not {self.background_decay:g}")
        return Costs(self.cost, self.remember, self.background_decay, self.cost_unit)


@dataclass(frozen=True)
class GraphCostOptions(CostOptions):
    """Settings of learners of hope and fear, which can be found in search graphs."""

    graph_best: Annotated[
        int,
        Opt(
            "translations of each kind from a search graph",
            details="On search graphs, each mini-batch has the best translations at the current "
            "weights, and the best hopes and fears by sentence BLEU (BLEU+1), this many of each. "
            "The cost chooses among them. The searches keep as many partial translations of a "
            "node, at least 3.",
            source="Chiang 2012; measured",
            minimum=1,
        ),
    ] = 1
    oracles: Annotated[
        OracleUpdates,
        Opt(
            "update towards the hope or oracle, or towards the reference",
            details="local: the hope (or oracle) among the listed translations. bold: the best "
            "derivation of a search graph that yields a reference; sentences without one are left "
            "out. hybrid: bold where there is one, else local. bold and hybrid need search graphs.",
            source="Liang et al. 2006; Neubig & Watanabe 2016, sections 2.4 and 4.1",
        ),
    ] = "local"
