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
from mosesplug.errors import DataError, UsageError
from mosesplug.settings.configuration import Configuration
from mosesplug.templates.declaration import read_templates
from mosesplug.templates.moses import format_ini_functions
from mosesplug.tuning.workdir.workspace import Workspace


def check_templates(configuration: Configuration) -> None:
    """Check the templates of a run, before anything is written.

    Raises:
        UsageError: they cannot be read, the decoder is not called as Moses is, or cannot compute
            one; the configuration has a feature of the same name; or the run would overwrite the
            configuration or the declaration.
        FormatError: a vocabulary cannot be read, or is empty.
        DataError: a link or a file has the name of the directory of the copies.
    """
    if configuration.decoding.templates is not None:
        _extend(configuration, configuration.decoding.templates)


def add_templates(configuration: Configuration) -> Configuration:
    """Return a configuration whose moses.ini declares the templates; write that file.

    Raises:
        UsageError, FormatError, DataError: as ``check_templates``.
    """
    if configuration.decoding.templates is None:
        return configuration
    content, files = _extend(configuration, configuration.decoding.templates)
    folder = _folder(configuration)
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
    folder = _folder(configuration)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise DataError(
            f"{folder} is a link or a file, but {{--templates}} writes into a directory of this"
            " name. Remove it, or choose another {--working-dir}"
        )
    for file in (configuration.config, path):
        if file.resolve().parent == folder.resolve():
            raise UsageError(
                f"{file} lies in {folder}, where {{--templates}} writes. Choose another"
                " {--working-dir}, or copy that file elsewhere"
            )
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


def _folder(configuration: Configuration) -> Path:
    return Workspace(configuration.working_directory, 0).templates
