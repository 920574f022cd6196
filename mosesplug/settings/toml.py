"""Settings files: the settings of a run as TOML, with a table for each panel."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from formats.text import write_atomic
from mosesplug.errors import UsageError, suggest
from mosesplug.options import PANELS, Kind, Opt, list_options
from mosesplug.settings.checks import check_settings
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.paths import require_file

SETTINGS_FILE = "settings.toml"
"""Name of the file that every run leaves in its working directory."""

_HEADER = """\
# The settings of a tuning run. `mosesplug tune --settings FILE --working-dir DIR` repeats it.
"""
_EXPECTED: Mapping[Kind, str] = {
    "flag": "true or false",
    "integer": "an integer",
    "real": "a number",
    "texts": "a list of strings",
    "table": "a table of values by name",
}
_Values = Mapping[str, Any]


def write_settings(path: Path, values: _Values) -> None:
    """Write the settings of a run, at once and deterministically."""
    # A path that is not UTF-8 is kept byte for byte; such a file is not TOML, but is read here.
    write_atomic(path, (_HEADER + format_settings(values)).encode(errors="surrogateescape"))


def format_settings(values: _Values, cls: type = RunPlan) -> str:
    """Return settings as TOML, in the order of their declaration."""
    lines: list[str] = []
    for panel in PANELS:
        own = [
            option
            for option in list_options(cls)
            if option.panel == panel and option.name in values
        ]
        plain = [option for option in own if option.kind != "table"]
        if plain:
            lines += ["", f"[{panel.lower()}]"]
            lines += [f"{option.name} = {_format_value(values[option.name])}" for option in plain]
        for option in own:
            if option.kind == "table" and values[option.name]:
                lines += ["", f"[{panel.lower()}.{option.name}]"]
                table = values[option.name]
                lines += [f"{_key(name)} = {_format_value(value)}" for name, value in table.items()]
    return "".join(f"{line}\n" for line in lines)


def format_template(cls: type = RunPlan) -> str:
    """Return all settings with help and defaults as TOML.

    Settings without a fixed default are comments.
    """
    lines = ["# All settings of `mosesplug tune`, with their defaults.", ""]
    for panel in PANELS:
        lines += [f"[{panel.lower()}]"]
        for option in (
            option for option in list_options(cls) if option.panel == panel and option.is_saved
        ):
            lines.append(
                f"# {option.help}" + (f" [{option.default_text}]" if option.default_text else "")
            )
            if option.tune_default is not None:  # it may depend on other settings
                lines.append(f"# {option.name} = {_format_value(option.tune_default)}")
            elif (
                option.default in (None, (), {})
                or option.default_text
                or option.requires
                or option.is_argument
            ):
                lines.append(f"# {option.name} = {_EXAMPLES.get(option.kind, _format_value(''))}")
            else:
                lines.append(f"{option.name} = {_format_value(option.default)}")
        lines.append("")
    return "\n".join(lines)


_EXAMPLES: Mapping[Kind, str] = {
    "flag": "true",
    "integer": "1",
    "real": "1.0",
    "texts": "[]",
    "table": "{}",
}


def read_settings(path: str | Path, cls: type = RunPlan) -> dict[str, Any]:
    """Read a settings file; returns values by the names of the settings.

    Raises:
        UsageError: there is no such file, it is not TOML, or it holds an unknown setting or a value
            of another type. The message names the file and the key.
    """
    file = require_file(path, "the settings file")
    try:
        document = tomllib.loads(file.read_bytes().decode(errors="surrogateescape"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
    settings = {spelling: option for option in list_options(cls) for spelling in option.accepted}
    tables = [panel.lower() for panel in PANELS]
    values: dict[str, Any] = {}
    for table, content in document.items():
        if table in settings and not isinstance(content, dict):
            raise UsageError(
                f"{path}: {table} belongs in the table [{settings[table].panel.lower()}]"
            )
        if table not in tables or not isinstance(content, dict):
            raise UsageError(f"{path}: unknown table [{table}]{suggest(table, tables)}")
        for key, value in content.items():
            place = f"{path}: [{table}] {key}"
            if key not in settings:
                raise UsageError(f"{place}: unknown setting{suggest(key, settings)}")
            option = settings[key]
            if option.panel.lower() != table:
                raise UsageError(f"{place}: belongs in the table [{option.panel.lower()}]")
            if option.name in values:
                raise UsageError(f"{place}: the setting {option.name} is given twice")
            values[option.name] = check_type(option, value, place)
    return values


def overlay_settings(file: _Values, given: _Values, cls: type = RunPlan) -> dict[str, Any]:
    """Return the settings of a file with those of the command line, which win.

    What is given replaces settings of the file that it excludes, and those that require a setting
    which it turns off.
    """
    file = dict(file)
    for name in ("select", "select-run") if given.get("last") else ():
        file.pop(name, None)
    if "epochs" in file:
        file["option"] = {**file.get("option", {}), "epochs": file.pop("epochs")}
    both = {**file, **given}
    if "option" in file and "option" in given:
        both["option"] = {**file["option"], **given["option"]}
    for option in list_options(cls):
        if option.name in file and option.name not in given:
            if _is_accepted(option, file) and not _is_accepted(option, both):
                del both[option.name]
        elif option.name in given:
            for condition in option.excludes:
                excluded = condition.partition("=")[0]
                if excluded in file and excluded not in given:
                    both.pop(excluded, None)
    return both


def _is_accepted(setting: Opt, values: _Values) -> bool:
    try:
        check_settings([setting], values)
    except UsageError:
        return False
    return True


def check_type(setting: Opt, value: Any, place: str) -> Any:
    """Return a value of the type that its setting has.

    Raises:
        UsageError: it has another type; the message names ``place``.
    """
    match setting.kind:
        case "flag":
            is_right = isinstance(value, bool)
        case "integer":
            is_right = isinstance(value, int) and not isinstance(value, bool)
        case "real":
            is_right = isinstance(value, int | float) and not isinstance(value, bool)
        case "texts":
            is_right = isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "table":
            is_right = isinstance(value, dict)
        case "path" if setting.parse is not None:
            is_right = isinstance(value, str | list)  # the content of the file
        case _:
            is_right = isinstance(value, str)
    if not is_right:
        expected = _EXPECTED.get(setting.kind, "a string")
        raise UsageError(f"{place}: expected {expected}, not {_format_value(value)}")
    return float(value) if setting.kind == "real" else value


def _format_value(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        items = ", ".join(f"{_key(name)} = {_format_value(item)}" for name, item in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_format_value, value))}]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if is_bare else _format_value(name)
