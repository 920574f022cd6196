"""Settings of what a hypothesis is worth to an online learner."""

from __future__ import annotations

from dataclasses import dataclass

from mosesplug.errors import UsageError
from mosesplug.optimizers.costs import CostKind, Costs, Remembered
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.options import option

__all__ = ["CostOptions"]


@dataclass(frozen=True)
class CostOptions(OnlineOptions):
    """Settings of learners that weigh hypotheses by what they are worth."""

    cost: CostKind = option(
        "background",
        help="what a hypothesis is worth: corpus (the metric of the batch), lin-och, moses "
        "or nakov (smoothed BLEU of the sentence), pseudo-corpus (the metric of what was last "
        "chosen for every sentence, this one replaced), background (with decayed statistics "
        "of what was chosen before)",
        source="Neubig & Watanabe 2016, section 6.1",
    )
    remember: Remembered = option(
        "hope",
        help="whose statistics pseudo-corpus and background keep",
        source="Chiang 2012; Neubig & Watanabe 2016, section 6.1",
        only_with="cost=pseudo-corpus|background",
    )
    background_decay: float = option(
        0.999,
        help="what the background keeps of itself at each sentence",
        source="Cherry & Foster 2012, as kbmira --decay",
        only_with="cost=background",
        minimum=0.0,
    )

    def costs(self) -> Costs:
        """These settings as the costs that they describe.

        Raises:
            UsageError: a decay above 1, with which the background would grow without end.
        """
        if not 0.0 <= self.background_decay <= 1.0:
            raise UsageError(f"background_decay is from 0 to 1, not {self.background_decay:g}")
        return Costs(self.cost, self.remember, self.background_decay)
