"""What to tune and how: everything the loop is told from outside, as immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mosesplug.decoders.moses import Decoder
from mosesplug.metrics import Metric
from mosesplug.settings.sharding import Sharding

__all__ = [
    "Configuration",
    "Decoding",
    "Filtering",
    "Graphs",
    "HeldOut",
    "Online",
    "OnlineDecoder",
    "Optimising",
    "Select",
]

OnlineDecoder = Literal["auto", "server", "process"]
Select = Literal["best-dev", "last", "average", "best-heldout"]


@dataclass(frozen=True)
class Filtering:
    """Cutting the model down to the phrases of the input before tuning.

    Attributes:
        command: words of ``filter-model-given-input.pl`` with its own options; the target
            directory, the configuration and the input are put behind them.
        input: text to filter for.
    """

    command: tuple[str, ...]
    input: Path


@dataclass(frozen=True)
class Graphs:
    """Search graphs from the decoder; the n-best lists are taken out of them.

    Attributes:
        edges: how many edges of a graph are kept for each word of the shortest reference: those
            on the best derivations by the weights that were decoded with. 0 keeps all.
        every: decode in the first of so many iterations, or epochs; the others take their lists
            out of the graphs that there are.
    """

    edges: int = 50
    every: int = 1


@dataclass(frozen=True)
class Decoding:
    """How n-best lists are made.

    Attributes:
        decoder: the program and how to call it; nothing but a name where there is a forest.
        nbest: hypotheses a sentence.
        lattice_samples: samples of the search lattice a sentence, merged into the lists.
        filtering: filter the model first, or None.
        cache: words of a command that copies the model to a local disk and prints the path of
            the copy's configuration, or None; the configuration is put after the first word.
        transform: rewrite the lists before they are scored: a shell command that reads one list
            and writes another, or ``bpe`` to join subwords at ``@@``. None for no change.
        config_weights_first: decode first with the configuration's own weights, not with these
            L1-normalised.
        forest: where search graphs of the input are, which are the decoder; or None. The working
            directory of a run that stored them, its store, or a directory of Moses' files.
        graphs: have the decoder write search graphs, in place of lists, and keep them; or None.
    """

    decoder: Decoder
    nbest: int = 100
    lattice_samples: int = 0
    filtering: Filtering | None = None
    cache: tuple[str, ...] | None = None
    transform: str | None = None
    config_weights_first: bool = False
    forest: Path | None = None
    graphs: Graphs | None = None


@dataclass(frozen=True)
class Optimising:
    """How weights are found in the lists.

    Attributes:
        algorithm: name in the registry.
        options: values of the algorithm's options, by field name.
        active: features to tune (``LM0_0``, or a whole group ``LM0``); None for all.
        ranges: bounds for random starting weights, as ``name:min..max,min..max``.
        window: how many earlier iterations' lists are used beside the newest; -1 for all.
        historic_bests: start also from the weights at which these lists were decoded.
        interpolation: from the fourth iteration on, new weights are this share of the optimum
            and the rest of the weights before; 0 for the optimum itself.
        threads: for optimising and for counting statistics.
        seed: of all random choices; None draws one.
        predictable_seeds: seed iteration N with ``1000 N``, as ``mert-moses.pl`` can.
        sharding: learn on several parts of the lists at once, or None.
    """

    algorithm: str = "mert"
    options: Mapping[str, object] = field(default_factory=dict)
    active: tuple[str, ...] | None = None
    ranges: tuple[str, ...] = ()
    window: int = -1
    historic_bests: bool = False
    interpolation: float = 0.0
    threads: int = 1
    seed: int | None = None
    predictable_seeds: bool = False
    sharding: Sharding | None = None


@dataclass(frozen=True)
class Online:
    """Learning while decoding: each mini-batch is decoded with the weights of the moment.

    Attributes:
        decoder: ``server`` keeps the decoder running, ``process`` starts one for each batch,
            ``auto`` takes the server where the decoder can be one.
        strict: end with an error where the server's lists depend on the weights that it was
            started with; else it is restarted for each batch.
        servers: how many are kept running; each loads the model.
    """

    decoder: OnlineDecoder = "auto"
    strict: bool = False
    servers: int = 1


@dataclass(frozen=True)
class HeldOut:
    """Text that is only translated and scored, to choose weights and to know when to stop.

    Attributes:
        input: source text.
        references: its translations: a file, or the prefix of several.
        every: online, translate it after so many mini-batches, too; 0 for after each epoch only.
        patience: end the run after so many scores in a row that are no better than the best
            before, that of the starting weights left out; 0 for never.
        decoder: that translates it, where it is not the one of the tuning set; or None.
        forest: where search graphs of it are, which are its decoder; or None.
    """

    input: Path
    references: Path
    every: int = 0
    patience: int = 0
    decoder: Decoder | None = None
    forest: Path | None = None


@dataclass(frozen=True)
class Configuration:
    """One tuning run.

    Attributes:
        input: the tuning set's source text.
        references: its translations: a file, or the prefix of several.
        config: the decoder's ``moses.ini`` with the starting weights.
        working_directory: where all files go; the decoder's current directory.
        metric: what is optimised.
        decoding, optimising: see there.
        maximum_iterations: 0 for no limit. Online, the learner's epochs are a limit, too.
        minimum_change: stop when no weight moved by this much.
        select: which weights are the result. ``best-dev``: the decoded ones whose first-best
            scored highest; ``last``; ``average``: the mean of those after all iterations, or
            online after all updates; ``best-heldout``. None: ``best-heldout`` where there is
            held-out text; else ``last``, or online what the learner's ``averaging`` says.
        existing: what to do with an earlier run in the working directory: ``continue`` it,
            ``overwrite`` it, or ``refuse`` to touch it.
        skip_decoder: take the first iteration's n-best list as it lies in the working directory.
        keep_extractor_files: write ``runN.features.dat`` and ``runN.scores.dat`` too.
        online: learn while decoding, or None.
        held_out: other text to judge weights by, or None.
        sparse_weights: file with starting weights of sparse features, on top of those that the
            configuration names, or None.
        start_from: working directory of a finished run whose weights to start from, or None.
        strict: end with an error at signs that the run goes wrong; else they are warned of.
        max_drop: by how much the score of an iteration may be below that of the first.
    """

    input: Path
    references: Path
    config: Path
    working_directory: Path
    metric: Metric
    decoding: Decoding
    optimising: Optimising = field(default_factory=Optimising)
    maximum_iterations: int = 25
    minimum_change: float = 1e-5
    select: Select | None = None
    existing: Literal["refuse", "overwrite", "continue"] = "refuse"
    skip_decoder: bool = False
    keep_extractor_files: bool = False
    online: Online | None = None
    held_out: HeldOut | None = None
    sparse_weights: Path | None = None
    start_from: Path | None = None
    strict: bool = False
    max_drop: float = 0.05
