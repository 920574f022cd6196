"""Every option of ``mert-moses.pl`` and what becomes of it here; help and README come from this.

An option is *honoured*, or *refused* at once with the reason and what to use instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mosesplug.cli.run.getopt import Kind, Specification

__all__ = [
    "ADDITIONS",
    "MARKERS",
    "OPTIONS",
    "MertOption",
    "markdown_table",
    "refusal",
    "usage",
]

MARKERS = ("<!-- options:begin -->", "<!-- options:end -->")


@dataclass(frozen=True)
class MertOption:
    """One option.

    Attributes:
        name: canonical spelling without dashes.
        kind: what it takes.
        help: one line.
        note: what differs from the script; for a refused option why, and what to use instead.
        refused: True to refuse it always.
        algorithm: the optimizer that a flag chooses.
        forest: whether a flag asks for search graphs.
    """

    name: str
    kind: Kind
    help: str
    note: str = ""
    refused: bool = False
    algorithm: str | None = None
    forest: bool = False

    @property
    def specification(self) -> Specification:
        """For the command line reader."""
        return Specification(self.name, self.kind)

    @property
    def spelling(self) -> str:
        """As a person types it."""
        values = {
            Kind.STRING: "=STRING",
            Kind.STRINGS: "=STRING ...",
            Kind.INTEGER: "=N",
            Kind.REAL: "=X",
        }
        if self.kind is Kind.NEGATABLE:
            return f"--[no-]{self.name}"
        return f"--{self.name}{values.get(self.kind, '')}"

    @property
    def state(self) -> Literal["honoured", "refused"]:
        """What becomes of it."""
        return "refused" if self.refused else "honoured"


OPTIONS: tuple[MertOption, ...] = (
    MertOption("working-dir", Kind.STRING, "where all files are created [mert-work]"),
    MertOption("input", Kind.STRING, "text to decode (or the first of four arguments)"),
    MertOption(
        "inputtype", Kind.INTEGER, "0 text, 1 confusion network, 2 lattice, 3 tree; to the decoder"
    ),
    MertOption("refs", Kind.STRING, "references: a file or a prefix (or the second argument)"),
    MertOption("decoder", Kind.STRING, "the decoder (or the third argument)"),
    MertOption("config", Kind.STRING, "its moses.ini (or the fourth argument)"),
    MertOption("nbest", Kind.INTEGER, "length of the n-best lists [100]"),
    MertOption(
        "lattice-samples",
        Kind.INTEGER,
        "samples of the search lattice, merged into the lists (Chatterjee & Cancedda 2010)",
        "not together with --jobs: moses-parallel.pl does not join the samples",
    ),
    MertOption("queue-flags", Kind.STRING, "parameters for qsub, with --jobs [-hard]"),
    MertOption("jobs", Kind.INTEGER, "decode in N parallel jobs through moses-parallel.pl"),
    MertOption(
        "cache-model",
        Kind.STRING,
        "local directory into which the model is copied before decoding",
        "without --jobs, the decoder uses the copy too (the script copies and forgets it)",
    ),
    MertOption("decoder-flags", Kind.STRING, "more words for the decoder's command line"),
    MertOption(
        "continue",
        Kind.FLAG,
        "resume after the last finished iteration",
        "with any algorithm; an unfinished run of mert-moses.pl itself is taken over too",
    ),
    MertOption(
        "skip-decoder",
        Kind.FLAG,
        "take the first n-best list as it lies in the working directory",
    ),
    MertOption("shortest", Kind.FLAG, "the shortest reference counts for the brevity penalty"),
    MertOption("average", Kind.FLAG, "the average of the references' lengths counts"),
    MertOption("closest", Kind.FLAG, "the closest reference length counts [this one]"),
    MertOption("nocase", Kind.FLAG, "ignore case in the metric"),
    MertOption("nonorm", Kind.FLAG, "does nothing, as in the script: text is never normalised"),
    MertOption("help", Kind.FLAG, "this text", "printed to stdout with exit code 0"),
    MertOption("verbose", Kind.FLAG, "show each command that is run"),
    MertOption(
        "mertdir",
        Kind.STRING,
        "directory of Moses' optimizers",
        "not needed and not looked at: metrics and optimizers are built in",
    ),
    MertOption(
        "mertargs",
        Kind.STRING,
        "arguments of both extractor and mert",
        "--sctype, --scconfig, -n, -m, -r, -t, -o and --threads are read, and outweighed by the"
        " script's own options; the rest is refused",
    ),
    MertOption(
        "extractorargs",
        Kind.STRING,
        "arguments of extractor",
        "--sctype and --scconfig are read; the rest is refused",
    ),
    MertOption(
        "proargs",
        Kind.STRING,
        "arguments of pro",
        "with --pairwise-ranked or --pro-starting-point; -b and -r are read, the rest is refused;"
        " for more, --algorithm-option name=value",
    ),
    MertOption(
        "mertmertargs",
        Kind.STRING,
        "arguments of mert",
        "as --mertargs",
    ),
    MertOption(
        "rootdir",
        Kind.STRING,
        "Moses' scripts directory, for the helper scripts",
        "else $SCRIPTS_ROOTDIR, else ../scripts beside the decoder's directory",
    ),
    MertOption("filtercmd", Kind.STRING, "filter-model-given-input.pl, with its options"),
    MertOption("filterfile", Kind.STRING, "text to filter for, where it is not the input"),
    MertOption("qsubwrapper", Kind.STRING, "qsub-wrapper.pl, with --jobs"),
    MertOption("mosesparallelcmd", Kind.STRING, "moses-parallel.pl, with --jobs"),
    MertOption("old-sge", Kind.FLAG, "Grid Engine older than 6.0, with --jobs"),
    MertOption(
        "filter-phrase-table",
        Kind.NEGATABLE,
        "filter the model for the input before tuning",
        "the default is to filter if filter-model-given-input.pl is found, else to say that it is"
        " not; given, it must be found",
    ),
    MertOption(
        "transform-decoded-file",
        Kind.STRING,
        "rewrite n-best lists before scoring: a program or command, or bpe to join subwords",
    ),
    MertOption(
        "predictable-seeds",
        Kind.FLAG,
        "seed iteration N with 1000 N",
        "the seeds are the script's, the random numbers are not",
    ),
    MertOption("historic-bests", Kind.FLAG, "start also from all earlier weights"),
    MertOption("random-directions", Kind.FLAG, "search in random directions only"),
    MertOption("number-of-random-directions", Kind.INTEGER, "random directions a round"),
    MertOption("random-restarts", Kind.INTEGER, "random starting points [20]"),
    MertOption(
        "return-best-dev",
        Kind.FLAG,
        "end with the decoded weights of the best first-best score",
        "the last iteration counts too",
    ),
    MertOption(
        "activate-features",
        Kind.STRING,
        "comma-separated features to tune, as LM0_0",
        "a whole group (LM0) is a name too; unknown names are refused",
    ),
    MertOption(
        "range",
        Kind.STRINGS,
        "bounds for random starting weights: name:min..max,min..max",
        "names of no feature are refused",
    ),
    MertOption(
        "use-config-weights-for-first-run",
        Kind.FLAG,
        "decode first with the configuration's weights as they are",
    ),
    MertOption(
        "prev-aggregate-nbestlist",
        Kind.INTEGER,
        "earlier iterations whose lists are used, -1 for all [-1]",
    ),
    MertOption("maximum-iterations", Kind.INTEGER, "0 for no limit [25]"),
    MertOption(
        "pairwise-ranked",
        Kind.FLAG,
        "PRO (Hopkins & May 2011)",
        "excludes the other optimizers, of which the script silently takes one",
        algorithm="pro",
    ),
    MertOption(
        "pro-starting-point",
        Kind.FLAG,
        "start MERT from PRO's weights; sparse ones keep PRO's proportions",
        "MERT starts from the weights before, too",
        algorithm="pro+mert",
    ),
    MertOption(
        "historic-interpolation",
        Kind.REAL,
        "from iteration 4 on, share of the new weights against those before",
    ),
    MertOption(
        "batch-mira",
        Kind.FLAG,
        "k-best MIRA (Cherry & Foster 2012)",
        algorithm="kbmira",
    ),
    MertOption(
        "hg-mira",
        Kind.FLAG,
        "MIRA on search graphs",
        "on those of all iterations, by BLEU with case, against the shortest reference",
        algorithm="kbmira",
        forest=True,
    ),
    MertOption(
        "batch-mira-args",
        Kind.STRING,
        "arguments of kbmira",
        "with --batch-mira or --hg-mira; -J, -C, -D, -r, --no-shuffle, --streaming, --model-bg,"
        " --safe-hope, --hg-prune, --sctype and --scconfig are read, the rest is refused",
    ),
    MertOption(
        "promix-training",
        Kind.STRING,
        "train mixture weights of phrase tables with PRO",
        "not planned: mix the tables before tuning (tmcombine)",
        refused=True,
    ),
    MertOption(
        "promix-table",
        Kind.STRINGS,
        "phrase tables of the mixture",
        "not planned: mix the tables before tuning (tmcombine)",
        refused=True,
    ),
    MertOption("threads", Kind.INTEGER, "threads for optimising and scoring [1]"),
    MertOption(
        "spe-symal",
        Kind.STRING,
        "simulated post-editing with this alignment, through moses_sim_pe.py",
    ),
    MertOption("multi-moses", Kind.FLAG, "several decoder processes, through multi_moses.py"),
)
"""The options of ``mert-moses.pl``, in the order of its own table."""

ADDITIONS: tuple[MertOption, ...] = (
    MertOption("algorithm", Kind.STRING, "optimizer by name [mert]"),
    MertOption("algorithm-option", Kind.STRINGS, "an option of the optimizer: name=value"),
    MertOption(
        "epochs",
        Kind.INTEGER,
        "of an online learner: passes over the lists after each decoding; with --online, over"
        " the text",
    ),
    MertOption(
        "lattice-mert",
        Kind.FLAG,
        "MERT on search graphs (Macherey et al. 2008): --algorithm=mert --forest",
        algorithm="mert",
        forest=True,
    ),
    MertOption(
        "forest",
        Kind.FLAG,
        "have the decoder write search graphs, keep those of all iterations, and take the n-best"
        " lists out of them",
        "mert and kbmira learn from the graphs, other algorithms from the lists",
        forest=True,
    ),
    MertOption(
        "forest-edges",
        Kind.INTEGER,
        "edges of each search graph that are kept for each word of the reference, 0 for all [50]",
        "as kbmira's --hg-prune",
    ),
    MertOption(
        "redecode-every",
        Kind.INTEGER,
        "with --forest: decode in iterations 1, N+1, 2N+1, ... only [1]",
        "the others take their lists out of the graphs so far; with --online, graphs are made"
        " before these epochs and decode all mini-batches",
    ),
    MertOption(
        "online",
        Kind.FLAG,
        "learn while decoding: each mini-batch is decoded with the weights of the moment, then"
        " learnt from",
        "for online learners only; runN.best100.out.gz is not written, the lists are in the store",
    ),
    MertOption(
        "online-decoder",
        Kind.STRING,
        "with --online: server keeps the decoder running, process starts one for each batch [auto]",
        "auto takes the server where the decoder can be one",
    ),
    MertOption("online-servers", Kind.INTEGER, "with --online: servers, each with the model [1]"),
    MertOption(
        "strict-online",
        Kind.FLAG,
        "with --online: end with an error where a server does not follow new weights",
        "else it is restarted for each batch",
    ),
    MertOption(
        "heldout", Kind.STRING, "other text, translated after each iteration to choose weights"
    ),
    MertOption("heldout-refs", Kind.STRING, "its references: a file or a prefix"),
    MertOption(
        "heldout-decoder",
        Kind.STRING,
        "what translates it, if not the decoder: a program, or forest:DIR with its search graphs",
    ),
    MertOption(
        "heldout-every", Kind.INTEGER, "with --online: translate it after N mini-batches, too"
    ),
    MertOption("patience", Kind.INTEGER, "stop after N translations of it that are no better"),
    MertOption(
        "select",
        Kind.STRING,
        "weights to end with: best-dev, last, average or best-heldout",
        "default: best-heldout with --heldout; else last; with --online what the learner's"
        " averaging says",
    ),
    MertOption("sparse-weights", Kind.STRING, "file with starting weights of sparse features"),
    MertOption("start-from", Kind.STRING, "start from the result of the run in this directory"),
    MertOption("shards", Kind.INTEGER, "online learners: parts of the lists that learn at once"),
    MertOption(
        "mixing",
        Kind.STRING,
        "of shards: average, weighted, line-search or select [line-search]",
    ),
    MertOption("keep", Kind.INTEGER, "sparse features that --mixing=select keeps"),
    MertOption("async", Kind.FLAG, "online learners: all workers change one set of weights"),
    MertOption("async-order", Kind.STRING, "arrival, or fixed, which can be repeated [arrival]"),
    MertOption("workers", Kind.STRING, "of shards: threads or processes [threads]"),
    MertOption("scheduler", Kind.STRING, "address of a Dask scheduler whose workers learn"),
    MertOption("shard-directory", Kind.STRING, "directory that other processes see, for lists"),
    MertOption("seed", Kind.INTEGER, "seed of all random choices [drawn, and kept]"),
    MertOption("decoder-timeout", Kind.REAL, "seconds that a decoder may be silent, else killed"),
    MertOption("strict", Kind.FLAG, "end with an error where else there are warnings of the run"),
    MertOption("max-drop", Kind.REAL, "how far an iteration may score below the first [0.05]"),
    MertOption("keep-extractor-files", Kind.FLAG, "write runN.features.dat, runN.scores.dat"),
    MertOption("quiet", Kind.FLAG, "print errors only"),
)
"""Options that the script has not; no old abbreviation changes its meaning by them."""


def refusal(option: MertOption) -> str:
    """The sentence with which an option is refused."""
    return f"--{option.name} is refused: {option.note}"


def markdown_table() -> str:
    """The options as a Markdown table, for the README."""
    rows = ["| option | what it does | state | note |", "|---|---|---|---|"]
    rows += [
        f"| `{option.spelling}` | {option.help} | {option.state} | {option.note} |"
        for option in OPTIONS
    ]
    rows += [
        f"| `{option.spelling}` | {option.help} | added | {option.note} |" for option in ADDITIONS
    ]
    return "\n".join(rows) + "\n"


def usage() -> str:
    """The text of ``--help``."""
    lines = ["usage: mert-moses input-text references decoder-executable decoder.ini [options]", ""]
    lines += ["Options of mert-moses.pl:"]
    for option in OPTIONS:
        lines.append(f"  {option.spelling}\n      {option.help}")
        if option.note:
            lines.append(f"      {'REFUSED: ' if option.refused else ''}{option.note}")
    lines += ["", "Options that are new here:"]
    lines += [f"  {option.spelling}\n      {option.help}" for option in ADDITIONS]
    return "\n".join(lines) + "\n"
