"""Let the decoder of a run compute templates: feature functions in its moses.ini."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from formats.errors import FormatError
from formats.moses.ini import (
    add_features,
    explain_unfit_value,
    parse_moses_ini,
    read_moses_ini,
    with_absolute_paths,
)
from formats.text import open_text, read_lines, write_atomic
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.servers.folded_entries import read_entry_points
from mosesplug.decoders.servers.sentence_tables import list_settings
from mosesplug.errors import DataError, UsageError
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.settings.configuration import Configuration
from mosesplug.templates.declaration import Templates, read_templates
from mosesplug.templates.derivation import PhrasePair
from mosesplug.templates.moses import check_factors, format_ini_functions
from mosesplug.templates.reading import split_words
from mosesplug.tuning.workdir.workspace import Workspace


def check_functions(configuration: Configuration) -> None:
    """Check feature functions and templates of a run, before anything is written.

    Raises:
        UsageError: templates cannot be read; the decoder is not called as Moses is, or cannot
            compute one; the configuration has a feature of the same name; the algorithm would leave
            their weights at 0; the source, or the phrase table, has no word of a vocabulary; or
            no phrase pair has a feature of a template.
        FormatError: a feature function for Moses lacks factors; a vocabulary cannot be read, or is
            empty; or a template needs alignments, and an entry of a text phrase table has none, or
            has a point outside its phrases.
        DataError: a link or a file has the name of the directory of the copies.
    """
    if isinstance(configuration.decoding.decoder, MosesDecoder):
        check_factors(read_moses_ini(configuration.config))
    path = configuration.decoding.templates
    if path is None:
        return
    templates = read_templates(path)
    _extend(configuration, templates)
    has_weights = configuration.sparse_weights is not None or configuration.start_from is not None
    if not (has_weights or read_moses_ini(configuration.config).section("weight-file")):
        optimization = configuration.optimization
        algorithm = find_algorithm(optimization.algorithm)
        algorithm.require_sparse(f"{{--templates}} {path}", optimization.selection)
    if (source := configuration.source_text) is not None:
        templates.check_sources(read_lines(source), str(source))
    _check_tables(configuration, templates)


def _check_tables(configuration: Configuration, templates: Templates) -> None:
    """Check that decoders can make features from text phrase tables.

    Raises:
        UsageError: no table has a word of a vocabulary of target words, or a phrase pair with a
            feature of a template.
        FormatError: an entry with a translation has no alignment, or a point outside its phrases.
    """
    config = configuration.config
    ini = read_moses_ini(config)
    settings = list_settings(ini, configuration.decoding.decoder.flags)
    # A decoder aligns an unknown word with itself, or drops it. XML markup can add any pair.
    unknown = [PhrasePair(("a",), ("a",), ((0, 0),))]
    if "drop-unknown" in settings:
        unknown.append(PhrasePair(("a",), ()))
    idle = [
        one
        for one in templates.local
        if "alignment" in one.needs and "xml-input" not in settings
        if not any(map(one.count_pair, unknown))
    ]
    needing = [one.name for one in templates.templates if "alignment" in one.needs]
    absent = {
        one.name: one.target_vocabulary for one in templates.templates if one.target_vocabulary
    }
    tables: list[Path] = []
    for feature in ini.features:
        if not feature.kind.startswith("PhraseDictionary") or feature.path is None:
            continue
        names = (config.parent / feature.path, config.parent / f"{feature.path}.gz")
        table = next((name for name in names if name.is_file()), None)
        if feature.kind != "PhraseDictionaryMemory" or table is None:
            # The entries of this table are unknown; the decoder reports a missing one.
            absent, idle = {}, []
            continue
        tables.append(table)
        with open_text(table) as file:
            for number, line in enumerate(file, 1):
                if not (needing or absent):
                    break
                fields = line.split(b"|||", 4)
                # A deleted phrase has no word to align.
                target = fields[1].strip() if len(fields) > 1 else b""
                points = read_entry_points(fields, str(table), number) if needing else set()
                if needing and not points and target:
                    raise FormatError(
                        f"the entry has no word alignment, so {' and '.join(needing)} in "
                        f"{templates.path} would not have its features",
                        path=table,
                        line=number,
                        remedy="Write alignment points such as 0-0 into its fourth field (train "
                        "the table with alignments), or remove the template",
                    )
                if idle:
                    source = split_words(fields[0])
                    pair = PhrasePair(source, split_words(target), tuple(sorted(points)))
                    idle = [template for template in idle if not template.count_pair(pair)]
                if absent:
                    words = split_words(target)
                    absent = {
                        name: vocabulary
                        for name, vocabulary in absent.items()
                        if vocabulary.isdisjoint(words)
                    }
    for name, vocabulary in absent.items() if tables else ():
        raise UsageError(
            f"{templates.path}: [{name}]: {' and '.join(map(str, tables))} has no word of its "
            f"vocabulary of target words, such as {min(vocabulary)}. Give words of the target "
            "language"
        )
    for template in idle if tables else ():
        raise UsageError(
            f"{templates.path}: [{template.name}]: no phrase pair of "
            f"{' and '.join(map(str, tables))} has a feature of this template. Remove it"
        )


def add_templates(configuration: Configuration) -> Configuration:
    """Return a configuration whose moses.ini declares the templates; write that file.

    Raises:
        UsageError, FormatError, DataError: as ``check_functions``.
    """
    path = configuration.decoding.templates
    if path is None:
        return configuration
    folder, content, files = _extend(configuration, read_templates(path))
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in files.items():
        write_atomic(folder / name, words)
    config = folder / "moses.ini"
    write_atomic(config, content)
    return replace(
        configuration, config=config, decoding=replace(configuration.decoding, templates=None)
    )


def _extend(
    configuration: Configuration, templates: Templates
) -> tuple[Path, bytes, Mapping[str, bytes]]:
    """Return the folder, the extended moses.ini, and the vocabularies that it names."""
    description = configuration.decoding.decoder
    if description.reads_weight_file or description.stored_graphs is not None:
        raise UsageError(
            "{--templates} requires a decoder that is called as Moses is. For n-best lists of "
            "others, use mosesplug optimize --templates and mosesplug rerank --templates"
        )
    root = Workspace(configuration.working_directory, 0).templates
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise DataError(
            f"{root} is a link or a file, but {{--templates}} writes into a directory of this"
            " name. Remove it, or choose another {--working-dir}"
        )
    if why := explain_unfit_value(f"{root}/"):
        raise UsageError(
            f"{{--templates}}: moses.ini would name files in {root}, and there {why}. Use "
            "another {--working-dir}"
        )
    ini = read_moses_ini(configuration.config)
    known = {feature.name for feature in ini.features}
    for template in templates.templates:
        if template.name in known:
            raise UsageError(
                f"{templates.path}: [{template.name}]: {configuration.config} has a feature of "
                "this name. Remove or rename one of the two"
            )
    # The file lies in another folder, from which relative names of models would count.
    located = parse_moses_ini(with_absolute_paths(ini), ini.path)
    lines, files = format_ini_functions(templates, "")
    # By its content: a call with other templates that is refused must not change the earlier run.
    digest = sha256(repr((add_features(located, lines), sorted(files.items()))).encode())
    folder = root / digest.hexdigest()[:8]
    lines, files = format_ini_functions(templates, str(folder))
    return folder, add_features(located, lines), files
