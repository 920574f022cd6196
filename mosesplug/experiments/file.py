"""Read an experiment file: what to tune, on what, with what, and how to test it.

Everything that can be wrong with it is found here or in ``planning``, before anything is decoded.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from formats.errors import FormatError
from mosesplug.errors import MosesplugError, OptionName, UsageError, suggest
from mosesplug.experiments.keys import (
    ExperimentKeys,
    FeatureKeys,
    SystemKeys,
    TextKeys,
)
from mosesplug.options import Opt, list_options
from mosesplug.settings.checks import check_settings, make_settings
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.paths import require_file, require_references
from mosesplug.settings.toml import check_type

Keys = TypeVar("Keys")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
"""Names of tables are names of directories, too."""

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")
"""A name in braces, which a value replaces."""

_TABLES = ("paths", "settings", "features", "tuning", "tests", "systems")

_SET_BY_THE_EXPERIMENT = {
    "input": "give it in [tuning.NAME]",
    "refs": "give it in [tuning.NAME]",
    "config": "give it in [features.NAME]",
    "working-dir": "each run has a directory of its own: leave it out",
    "seed": "give seeds",
    "runs": "give seeds",
    "select-run": "give select",
    "continue": "an experiment always continues: leave it out",
    "overwrite": "remove the directory of a run to repeat it",
    "quiet": "give --quiet on the command line",
    "verbose": "leave it out",
    "skip-decoder": "leave it out",
    "predictable-seeds": "leave it out",
}
"""Settings of ``tune`` that the experiment itself gives, and what to do instead."""


@dataclass(frozen=True)
class NamedTable(Generic[Keys]):
    """A table ``[KIND.NAME]`` of the file.

    Attributes:
        keys: its declared keys.
        values: its settings of ``tune`` by name, which replace those of ``[settings]``.
    """

    name: str
    keys: Keys
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """The content of an experiment file, with all names resolved.

    Attributes:
        path: the file, for messages.
        directory: of all runs and of the table.
        paths: the values of ``[paths]``, by which ``{NAME}`` was replaced.
        values: settings of ``tune`` that all systems share.
    """

    path: Path
    directory: Path
    keys: ExperimentKeys
    paths: Mapping[str, str]
    values: Mapping[str, Any]
    features: Mapping[str, NamedTable[FeatureKeys]]
    tuning: Mapping[str, NamedTable[TextKeys]]
    tests: Mapping[str, NamedTable[TextKeys]]
    systems: Mapping[str, NamedTable[SystemKeys]]

    def error(self, place: str, problem: object) -> UsageError:
        """Return the error about a place in the file; options are spelled as keys."""
        if isinstance(problem, MosesplugError | FormatError):
            problem.spell(_spell_key)
        return UsageError(f"{self.path}: {place}: {problem}")


def _spell_key(option: OptionName) -> str:
    return f"{option.name} = {option.value}" if option.value else option.name


def read_experiment(
    path: Path, *, paths: Mapping[str, str] | None = None, directory: Path | None = None
) -> Experiment:
    """Read an experiment file.

    Names of files count from the current directory.

    Args:
        paths: values that replace those of ``[paths]``, by name.
        directory: replaces the ``directory`` of the file.

    Raises:
        UsageError: it is missing or not TOML, a key or name is unknown, a value cannot be used, a
            file is missing, or a required key or table is. The message names file and key.
    """
    file = require_file(path, "the experiment")
    try:
        document = tomllib.loads(file.read_bytes().decode(errors="surrogateescape"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
    reader = _Reader(path)
    names = reader.read_paths(document.get("paths", {}), paths or {})
    own = {option.name: option for option in list_options(ExperimentKeys)}
    for key, value in document.items():
        if key not in own and (key not in _TABLES or not isinstance(value, Mapping)):
            known = [*own, *_TABLES]
            raise UsageError(f"{path}: {key}: unknown key{suggest_or_list(key, known)}")
    top = {key: value for key, value in document.items() if key in own}
    keys, _ = reader.read_keys(ExperimentKeys, top, "", takes_settings=False)
    _, values = reader.read_keys(_NoKeys, document.get("settings", {}), "[settings]")
    experiment = Experiment(
        path,
        Path(directory or keys.directory or file.stem).absolute(),
        keys,
        names,
        values,
        reader.read_tables("features", FeatureKeys, document),
        reader.read_tables("tuning", TextKeys, document),
        reader.read_tables("tests", TextKeys, document, takes_settings=False),
        reader.read_tables("systems", SystemKeys, document),
    )
    _check_names(experiment)
    return experiment


def _check_names(experiment: Experiment) -> None:
    """Check that what systems name exists, and that seeds are distinct."""
    _check_seeds(experiment, "seeds", experiment.keys.seeds)
    for system in experiment.systems.values():
        place = f"[systems.{system.name}]"
        for key, names, known in (
            ("features", system.keys.features, experiment.features),
            ("tuning", system.keys.tuning, experiment.tuning),
        ):
            for name in names:
                if name not in known:
                    table = f"there is no table [{key}.{name}]"
                    raise experiment.error(
                        f"{place} {key}", f"{table}{suggest_or_list(name, known)}"
                    )
            if len(set(names)) < len(names):
                raise experiment.error(f"{place} {key}", "a name is given twice: remove one")
        _check_seeds(experiment, f"{place} seeds", system.keys.seeds)


def _check_seeds(experiment: Experiment, place: str, seeds: Sequence[int]) -> None:
    if len(set(seeds)) < len(seeds):
        raise experiment.error(
            place,
            "a seed is given twice, and both runs would write into one directory: remove one",
        )


@dataclass(frozen=True)
class _NoKeys:
    """No keys beside settings of ``tune``."""


class _Reader:
    """Reads the tables of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._paths: dict[str, str] = {}
        self._settings = {
            spelling: option for option in list_options(RunPlan) for spelling in option.accepted
        }

    def read_paths(self, table: Any, given: Mapping[str, str]) -> Mapping[str, str]:
        """Return the values of ``[paths]``, with environment variables replaced."""
        if not isinstance(table, Mapping):
            raise self._error("paths", "expected a table of names and paths")
        for name in given:
            if name not in table:
                raise self._error(
                    "[paths]",
                    f"there is no {name} to replace{suggest_or_list(name, table)}",
                )
        for name, value in {**table, **given}.items():
            if not isinstance(value, str):
                raise self._error(f"[paths] {name}", "expected a string")
            place = f"[paths] {name}"
            for match in _VARIABLE.finditer(value):
                if (variable := match[1] or match[2]) not in os.environ:
                    raise self._error(
                        place,
                        f"the environment variable {variable} is not set: set it, or write the"
                        " path here",
                    )
            path = self._replace(os.path.expandvars(value), place)
            # Through Path only if needed: it turns ./moses into moses.
            self._paths[name] = str(Path(path).expanduser()) if path.startswith("~") else path
        return self._paths

    def _replace(self, text: str, place: str, *, leaves_unknown: bool = False) -> str:
        """Replace ``{NAME}`` by values of ``[paths]``."""

        def value(match: re.Match[str]) -> str:
            if match[1] in self._paths:
                return self._paths[match[1]]
            if leaves_unknown:
                return match[0]
            raise self._error(
                place,
                f"{match[0]} is not a name in [paths]"
                f"{suggest_or_list(match[1], self._paths) or '. Add it there'}",
            )

        return PLACEHOLDER.sub(value, text)

    def read_tables(
        self,
        kind: str,
        cls: type[Keys],
        document: Mapping[str, Any],
        *,
        takes_settings: bool = True,
    ) -> Mapping[str, NamedTable[Keys]]:
        """Return the tables ``[kind.NAME]``, of which there must be one or more."""
        tables = document.get(kind, {})
        if not isinstance(tables, Mapping) or not tables:
            raise self._error(f"[{kind}.NAME]", "there is no such table: add one or more")
        lower: dict[str, str] = {}
        named: dict[str, NamedTable[Keys]] = {}
        for name, table in tables.items():
            place = f"[{kind}.{name}]"
            if not isinstance(table, Mapping):
                raise self._error(
                    f"[{kind}] {name}", f"expected a table: write [{kind}.NAME] above"
                )
            if not _NAME.fullmatch(name):
                raise self._error(
                    place,
                    "the name is that of a directory, too: use letters, digits, and any of _.+-",
                )
            if name.lower() in lower:
                raise self._error(
                    place,
                    f"{lower[name.lower()]} and {name} would write into one directory where file"
                    " names ignore case: rename one",
                )
            lower[name.lower()] = name
            keys, values = self.read_keys(cls, table, place, takes_settings=takes_settings)
            named[name] = NamedTable(name, keys, values)
        return named

    def read_keys(
        self, cls: type[Keys], table: Any, place: str, *, takes_settings: bool = True
    ) -> tuple[Keys, dict[str, Any]]:
        """Return the declared keys of a table, and its settings of ``tune`` by name."""
        kind: type = cls
        own = {option.name: option for option in list_options(kind)}
        if not isinstance(table, Mapping):
            raise self._error(place, "expected a table")
        keys: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        for key, value in table.items():
            where = f"{place} {key}".strip()
            is_command = key == "command"
            text = self._replace_all(value, where, leaves_unknown=is_command or key in _COMMANDS)
            if key in own:
                keys[key] = self._check(own[key], text, where)
            elif takes_settings and key in _SET_BY_THE_EXPERIMENT:
                raise self._error(where, _SET_BY_THE_EXPERIMENT[key])
            elif takes_settings and key in self._settings:
                option = self._settings[key]
                if option.name in settings:
                    raise self._error(where, f"the setting {option.name} is given twice")
                settings[option.name] = self._check(option, text, where)
            else:
                known = [*own, *(self._settings if takes_settings else ())]
                raise self._error(where, f"unknown key{suggest_or_list(key, known, own)}")
        required = [declared.name for declared in fields(kind) if declared.default is MISSING]
        for name in required:
            if name not in keys:
                raise self._error(
                    f"{place} {name}".strip(), f"required key is missing. Add it: {own[name].help}"
                )
        try:
            check_settings(tuple(own.values()), keys)
        except UsageError as error:
            error.spell(lambda option: f"{place} {option.name} {option.value}".strip())
            raise UsageError(f"{self._path}: {error}") from error
        return make_settings(cls, keys, convert=_convert), settings

    def _replace_all(self, value: Any, place: str, *, leaves_unknown: bool) -> Any:
        if isinstance(value, str):
            return self._replace(value, place, leaves_unknown=leaves_unknown)
        if isinstance(value, list):
            return [self._replace_all(one, place, leaves_unknown=leaves_unknown) for one in value]
        if isinstance(value, Mapping):
            return {
                name: self._replace_all(one, place, leaves_unknown=leaves_unknown)
                for name, one in value.items()
            }
        return value

    def _check(self, option: Opt, value: Any, place: str) -> Any:
        """Return the checked value of a key; a list of texts may be given as one text."""
        if option.name == "seeds":
            return self._seeds(value, place)
        if option.kind == "texts" and isinstance(value, str) and option.path:
            value = [value]
        try:
            value = check_type(option, value, place)
            # Settings of tune stay texts: run.json records them.
            if option.exists == "file" and isinstance(value, str):
                return str(require_file(value, option.help.lower()))
            if option.exists == "references":
                return str(require_references(value))
        except UsageError as error:
            problem = str(error).removeprefix(f"{place}: ")
            raise self._error(place, problem) from error
        return value

    def _seeds(self, value: Any, place: str) -> tuple[int, ...]:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and value >= 1:
            return tuple(range(1, value + 1))
        if (
            isinstance(value, list)
            and value
            and all(type(seed) is int and seed >= 0 for seed in value)
        ):
            return tuple(value)
        raise self._error(place, f"expected a number of seeds, or a list of them, not {value}")

    def _error(self, place: str, problem: object) -> UsageError:
        return UsageError(f"{self._path}: {place}: {problem}")


_COMMANDS = ("decode-command", "heldout-decoder")
"""Settings with placeholders of their own."""


def _convert(option: Opt, value: Any) -> Any:
    """Return the value of a key in the type of its field."""
    if option.kind == "path":
        return Path(value)
    return tuple(value) if option.kind == "texts" else value


def suggest_or_list(word: str, known: Iterable[str], listed: Iterable[str] | None = None) -> str:
    """Return a question that suggests the most similar known word, or else list them.

    Args:
        listed: the words to list, if that is not all of ``known``.
    """
    names = ", ".join(known if listed is None else listed)
    return suggest(word, known) or (f". Known are {names}" if names else "")
