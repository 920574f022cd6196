"""Let the decoder of a run compute templates: feature functions in its moses.ini."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from formats.moses.ini import (
    add_features,
    explain_unfit_value,
    parse_moses_ini,
    read_moses_ini,
    with_absolute_paths,
)
from formats.text import write_atomic
from mosesplug.errors import UsageError
from mosesplug.settings.configuration import Configuration
from mosesplug.templates.declaration import read_templates
from mosesplug.templates.moses import format_ini_functions

FOLDER = "templates"
"""Directory of the extended moses.ini and its vocabularies, in the working directory."""


def check_templates(configuration: Configuration) -> None:
    """Check the templates of a run, before anything is written.

    Raises:
        UsageError: they cannot be read, the decoder is not called as Moses is, or cannot compute
            one; or the configuration has a feature of the same name.
        FormatError: a vocabulary cannot be read, or is empty.
    """
    if configuration.decoding.templates is not None:
        _extend(configuration, configuration.decoding.templates)


def add_templates(configuration: Configuration) -> Configuration:
    """Return a configuration whose moses.ini declares the templates; write that file.

    Raises:
        UsageError, FormatError: as ``check_templates``.
    """
    if configuration.decoding.templates is None:
        return configuration
    content, files = _extend(configuration, configuration.decoding.templates)
    folder = configuration.working_directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in files.items():
        write_atomic(folder / name, words)
    config = folder / "moses.ini"
    write_atomic(config, content)
    return replace(
        configuration, config=config, decoding=replace(configuration.decoding, templates=None)
    )


def _extend(configuration: Configuration, path: Path) -> tuple[bytes, dict[str, bytes]]:
    """Return the extended moses.ini, and the vocabularies that it names."""
    description = configuration.decoding.decoder
    if description.reads_weight_file or description.stored_graphs is not None:
        raise UsageError(
            "{--templates} requires a decoder that is called as Moses is. For n-best lists of "
            "others, use mosesplug optimize --templates and mosesplug rerank --templates"
        )
    templates = read_templates(path)
    folder = configuration.working_directory / FOLDER
    if why := explain_unfit_value(f"{folder}/"):
        raise UsageError(
            f"{{--templates}}: moses.ini would name files in {folder}, and there {why}. Use "
            "another {--working-dir}"
        )
    lines, files = format_ini_functions(templates, str(folder))
    ini = read_moses_ini(configuration.config)
    known = {feature.name for feature in ini.features}
    for template in templates.templates:
        if template.name in known:
            raise UsageError(
                f"{path}: [{template.name}]: {configuration.config} has a feature of this name. "
                "Remove or rename one of the two"
            )
    # The file lies in another folder, from which relative names of models would count.
    located = parse_moses_ini(with_absolute_paths(ini), ini.path)
    return add_features(located, lines), dict(files)
