"""Replace ``<!-- generated: NAME ARGUMENT ... -->`` in a page by text made from the package.

So every fact about commands, algorithms and public names has one place, the code.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from line_chart import render_chart, render_legend
from live_example import PAGE as LIVE_EXAMPLE
from live_example import PICTURES, TAKEN

import mosesplug
from mosesplug.cli.main import main
from mosesplug.experiments.keys import ExperimentKeys, FeatureKeys, SystemKeys, TextKeys
from mosesplug.optimizers import algorithm, algorithms
from mosesplug.options import list_options
from mosesplug.settings.algorithm_options import describe_options
from mosesplug.templates.declaration import FUNCTIONS

_MARK = re.compile(r"^<!-- generated: (\S+)(.*?) -->$", re.MULTILINE)
_DOCS = Path(__file__).parents[1]
_API = _DOCS / "api"
_COMMANDS = _DOCS / "reference" / "commands"
_BENCHMARKS = _DOCS / "benchmarks"
_MEASURED = _BENCHMARKS / "learners.md"


def expand(text: str) -> str:
    """Return a page with the generated texts in the place of their marks."""

    def replace(match: re.Match[str]) -> str:
        return "\n".join(_GENERATORS[match[1]](*match[2].split()))

    return _MARK.sub(replace, text)


def list_commands(words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the words of every command, in the order of the help."""
    found: list[tuple[str, ...]] = []
    listing = show_help(words).partition("\nCommands:\n")[2].splitlines()
    for line in listing:
        match = re.match(r"  (\S+)", line)
        if match:
            command = (*words, match[1])
            found += [command, *list_commands(command)]
    return found


def show_help(words: tuple[str, ...], option: str = "--help") -> str:
    """Return what ``mosesplug WORDS --help`` prints, 80 columns wide, with all options."""
    printed = io.StringIO()
    os.environ["COLUMNS"] = "80"
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*words, option])
    text = printed.getvalue()
    return show_help(words, "--help-all") if text.rstrip().endswith("--help-all") else text


def read_marks(pages: Path, generator: str) -> dict[str, str]:
    """Return the page that a generator's mark puts each of its arguments on."""
    return {
        argument: page.name
        for page in sorted(pages.glob("*.md"))
        for match in _MARK.finditer(page.read_text("utf-8"))
        if match[1] == generator
        for argument in match[2].split()
    }


def _commands(*names: str) -> Iterator[str]:
    """Yield the help of commands; ``nbest/ls`` names a command of a group."""
    for name in names:
        words = tuple(name.split("/"))
        yield f"## mosesplug {' '.join(words)}"
        yield f"\n```text\n{show_help(words).strip()}\n```\n"


def _command_table() -> Iterator[str]:
    """Yield the table of all commands, each with a link to its help."""
    yield "| command | what it does |"
    yield "|---|---|"
    for name, page in sort_commands(read_marks(_COMMANDS, "commands")):
        words = name.split("/")
        heading = f"mosesplug {' '.join(words)}"
        summary = show_help(tuple(words)).split("\n\n")[1].split()
        yield f"| [`{' '.join(words)}`]({page}#{anchor(heading)}) | {' '.join(summary)} |"


def sort_commands(pages: dict[str, str]) -> list[tuple[str, str]]:
    """Return commands and their pages in the order of the help."""
    order = {"/".join(words): place for place, words in enumerate(list_commands())}
    return sorted(pages.items(), key=lambda item: order[item[0]])


def _templates() -> Iterator[str]:
    """Yield a section for each function of templates, with its keys."""
    for name, cls in FUNCTIONS.items():
        summary, *paragraphs = (inspect.getdoc(cls) or "").replace("``", "`").split("\n\n")
        yield f"### {name}\n"
        yield "\n\n".join((summary, *paragraphs))
        example = cls("NAME")
        scope = {
            "phrase": "one phrase pair",
            "source": "a phrase pair and the source sentence",
            "target": "the hypothesis",
        }[example.scope]
        needs = " and ".join(sorted(example.needs)) or "the text alone"
        without = " without contexts" if hasattr(example, "source_context") else ""
        yield f"\nDepends on {scope}{without}; needs {needs}.\n"
        if options := list_options(cls):
            yield "| key | default | meaning |"
            yield "|---|---|---|"
        for option in options:
            default = "all words" if option.default is None else str(option.default).lower()
            yield f"| `{option.name}` | {default} | {option.help} |"
        yield ""


def _algorithm_table() -> Iterator[str]:
    """Yield the table of all algorithms, each with a link to its section."""
    yield "| algorithm | what it does | search graphs | sparse | online |"
    yield "|---|---|---|---|---|"
    for each in algorithms().values():
        link = f"[{each.name}]({family_page(each.family)}#{anchor(each.name)})"
        abilities = (each.graphs, each.tunes_sparse, each.learner is not None)
        marks = " | ".join("yes" if able else "" for able in abilities)
        yield f"| {link} | {each.summary} | {marks} |"


def _algorithm(name: str) -> Iterator[str]:
    """Yield the facts about an algorithm, its measured scores and its settings."""
    entry = algorithm(name)
    learns_from = ["n-best lists"]
    if entry.graphs:
        learns_from.append("[search graphs](../howto/search-graphs.md)")
    if entry.learner is not None:
        learns_from.append("[mini-batches while decoding](../howto/online.md)")
    yield f"- Source: {entry.source}"
    yield f"- Learns from: {', '.join(learns_from)}"
    yield f"- Tunes: {'dense and sparse' if entry.tunes_sparse else 'dense'} features"
    yield f"- Metric: {'BLEU' if entry.needs_bleu else 'any'}"
    on_lists, seconds, first, third = read_measured(_MEASURED.read_text("utf-8"))[name]
    link = "[Measured](../benchmarks/learners.md#learners)"
    yield f"- {link} on seven lists: BLEU {on_lists}, {seconds} CPU s"
    if first:
        yield f"- Measured online on the demo: BLEU {first} after one epoch, {third} after three"
    yield f"\n<details><summary>Settings of {name}</summary>\n"
    for setting in describe_options(entry):
        default = str(setting["default"])
        default = default.lower() if isinstance(setting["default"], bool) else default
        if setting["tune_default"] != setting["default"]:
            default = f"{default}`, of `tune` `{setting['tune_default']}"
        values = ", ".join(f"`{choice}`" for choice in setting["choices"] or [])
        bounds = (("at least", setting["minimum"]), ("at most", setting["maximum"]))
        limits = "".join(f", {word} {bound:g}" for word, bound in bounds if bound is not None)
        condition = f" Only with `{setting['only_with']}`." if setting["only_with"] else ""
        details = f" {setting['details']}" if setting["details"] else ""
        yield f"`{setting['name']}`"
        yield f": {values or setting['type']}{limits}; default `{default}`."
        yield f"  {_sentence(setting['help'])}{details}{condition} ({setting['source']})\n"
    yield "</details>\n"


def read_measured(page: str) -> dict[str, list[str]]:
    """Return the cells of each row of the table "Learners", by the algorithm's name."""
    section = page.partition("\n## Learners\n")[2].partition("\n##")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return {name: cells for name, *cells in rows if name in algorithms()}


def _api(*names: str) -> Iterator[str]:
    """Yield the documentation of public names."""
    for name in names:
        value = getattr(mosesplug, name)
        if isinstance(value, type):
            kind = "autoexception" if issubclass(value, Exception) else "autoclass"
        else:
            kind = "autofunction"
        members = "\n   :members:" if kind == "autoclass" else ""
        yield f"```{{eval-rst}}\n.. {kind}:: mosesplug.{name}{members}\n```\n"


def _api_table(*pages: str) -> Iterator[str]:
    """Yield the table of the public names on pages, each with a link to its description."""
    yield "| name | what it is or does |"
    yield "|---|---|"
    found = read_marks(_API, "api")
    for name in sorted(found, key=lambda name: pages.index(Path(found[name]).stem)):
        summary = (inspect.getdoc(getattr(mosesplug, name)) or "").partition("\n\n")[0]
        yield f"| {{py:obj}}`~mosesplug.{name}` | {' '.join(summary.split())} |"


def read_scale(page: str) -> dict[str, list[dict[str, float]]]:
    """Return the rows of the table "A hundred million hypotheses" for each step."""
    section = page.partition("\n## A hundred million hypotheses\n")[2].partition("\n##")[0]
    heads, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    found: dict[str, list[dict[str, float]]] = {}
    for size, step, *cells in rows:
        values = [float(cell.replace(",", "")) for cell in (size.removesuffix(" %"), *cells)]
        found.setdefault(step, []).append(dict(zip((heads[0], *heads[2:]), values, strict=True)))
    return found


def _scale_figure() -> Iterator[str]:
    """Yield the table of sizes as a figure: a chart for each of three columns."""
    steps = read_scale((_BENCHMARKS / "scale.md").read_text("utf-8"))
    yield "<figure>"
    for column in ("CPU s", "anonymous MB", "RSS MB"):
        lines = {step: [(row["size"], row[column]) for row in rows] for step, rows in steps.items()}
        yield render_chart(column, "percent of 100 million hypotheses", lines)
    yield render_legend(list(steps))
    yield "</figure>\n"


def _live_example() -> Iterator[str]:
    """Yield the link to the report that ``live_example`` writes beside the first page."""
    yield (
        f'<p><a href="{LIVE_EXAMPLE}">Explore a run of the demo</a>: move a weight, and see how '
        "its score and its translations follow.</p>\n"
    )


def _live_picture(name: str) -> Iterator[str]:
    """Yield a picture of that report, for a page of a folder; nothing if the build has none."""
    if name in TAKEN:
        (width, height), shows = PICTURES[name][1:]
        yield (
            f'<p><img src="../demo-{name}.png" width="{width}" height="{height}" loading="lazy" '
            f'style="height: auto" alt="{shows}"></p>\n'
        )


def family_page(family: str) -> str:
    """Return the file in ``docs/algorithms`` with the algorithms of a family."""
    return f"{family.split()[0].lower()}.md"


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _sentence(text: str) -> str:
    """Return a help text as a sentence of its own."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _experiment_keys() -> Iterator[str]:
    """Yield the table of the keys of experiment files, beside settings of ``tune``."""
    yield "| table | key | what it is | default |"
    yield "|---|---|---|---|"
    for table, cls in (
        ("top of the file", ExperimentKeys),
        ("`[features.NAME]`", FeatureKeys),
        ("`[tuning.NAME]`, `[tests.NAME]`", TextKeys),
        ("`[systems.NAME]`", SystemKeys),
    ):
        for option in list_options(cls):
            default = option.default_text or _show_default(option.default)
            text = f"{option.help}. {option.details}".strip()
            yield f"| {table} | `{option.name}` | {text} | {default} |"
            table = ""


def _show_default(default: object) -> str:
    if default in (None, "", ()):
        return ""
    words = default if isinstance(default, tuple) else [default]
    return ", ".join(f"`{str(word).lower() if isinstance(word, bool) else word}`" for word in words)


_GENERATORS: dict[str, Callable[..., Iterator[str]]] = {
    "algorithm": _algorithm,
    "algorithm-table": _algorithm_table,
    "api": _api,
    "api-table": _api_table,
    "command-table": _command_table,
    "commands": _commands,
    "experiment-keys": _experiment_keys,
    "live-example": _live_example,
    "live-picture": _live_picture,
    "scale-figure": _scale_figure,
    "templates": _templates,
}


def setup(app: object) -> dict[str, bool]:
    """Expand every page as Sphinx reads it."""

    def read(app: object, name: str, source: list[str]) -> None:
        source[0] = expand(source[0])

    app.connect("source-read", read)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
