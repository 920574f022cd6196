"""The settings of MERT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from mosesplug.errors import UsageError
from mosesplug.options import Opt


@dataclass(frozen=True)
class MertOptions:
    """Settings of MERT; those of ``mert-moses.pl`` have its defaults.

    Raises:
        UsageError: ``method=exact`` has ``l2`` or ``interval``.
    """

    restarts: Annotated[
        int,
        Opt(
            "number of random starting points, drawn from the box of the ranges",
            details="With up to 1,000 hypotheses and a polish, up to 20 times as many, until 20 "
            "have found the best score.",
            source="mert-moses.pl --random-restarts",
            minimum=0,
        ),
    ] = 20
    method: Annotated[
        Literal["powell", "random-direction", "random", "exact"],
        Opt(
            "search method",
            details="powell: the best of all axes in each round. random-direction: random lines "
            "only. random: random points. exact: the optimum, for up to 6 features and 1,000 "
            "hypotheses.",
            source="mert -t; exact: after Galley & Quirk 2011",
        ),
    ] = "powell"
    random_directions: Annotated[
        int,
        Opt(
            "number of random directions per round besides the axes",
            details="With random-direction: stop after this many in a row without a gain (0: 50).",
            source="mert -m; Cer et al. 2008",
            minimum=0,
            maximum=1000,
        ),
    ] = 0
    directions: Annotated[
        Literal["box", "symmetric"],
        Opt(
            "distribution of random directions",
            details="box: drawn from the box of the ranges, as in Moses' mert. symmetric: "
            "from -1/2 to 1/2; with random-direction, this is stochastic search.",
            source="mert -t random-direction; Cer et al. 2008",
        ),
    ] = "box"
    interval: Annotated[
        Literal["best", "average", "minimum"],
        Opt(
            "how intervals of a line are compared",
            details="By their own score, or the average or minimum of the scores around them.",
            source="Cer et al. 2008",
        ),
    ] = "best"
    neighbors: Annotated[
        int,
        Opt(
            "number of neighboring intervals on either side",
            source="Cer et al. 2008",
            only_with="interval=average|minimum",
            minimum=0,
        ),
    ] = 3
    tolerance: Annotated[
        float,
        Opt("smallest gain of a round that continues a search", source="Moses mert", minimum=0.0),
    ] = 1e-4
    give_up: Annotated[
        float,
        Opt(
            "abandon a search if this many gains like its last would not reach the best",
            details="With 500 or more sentences, restarts begin on a tenth of them, and the polish "
            "uses 1.5 at most. 0: neither. Restarts on up to 1,000 hypotheses are not abandoned.",
            source="mosesplug's",
            minimum=0.0,
        ),
    ] = 5.0
    graph_search: Annotated[
        Literal["lists", "graphs"],
        Opt(
            "what restarts and the polish search if there are search graphs",
            details="lists: n-best lists made from the graphs, then the graphs once. graphs: the "
            "graphs, far slower.",
            source="mosesplug's",
        ),
    ] = "lists"
    l2: Annotated[
        float,
        Opt(
            "penalty on the distance from the first weights, such as 0.1",
            details="Factor of the squared sine of their angle, in units of each feature's spread "
            "within sentences.",
            source="after Galley et al. 2013",
            only_with="interval=best",
            minimum=0.0,
        ),
    ] = 0.0
    polish: Annotated[
        int,
        Opt(
            "number of failed perturbations that end the final polish",
            details="It searches from small perturbations of the best point until this many "
            "in a row find nothing better. 0: no polish, as Moses' mert.",
            source="iterated local search",
            minimum=0,
        ),
    ] = 8

    def __post_init__(self) -> None:
        if self.method == "exact" and (self.l2 or self.interval != "best"):
            raise UsageError(
                "method=exact maximizes the score itself: leave out l2 and interval, or use"
                " method=powell"
            )
