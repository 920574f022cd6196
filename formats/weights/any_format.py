"""Read weights from a file of any format, detected by its content.

Where single values have names, as in the last four formats of ``weight_format``, the names do not
tell dense from sparse features. The file is read once, so it may be a pipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath

from formats.errors import FormatError, quote
from formats.graphs.hypergraph import hypergraph_names, infer_groups
from formats.moses.ini import MosesIni, parse_moses_ini
from formats.moses.ini_features import UNKNOWN_WORD, fixed_weights, list_features, sparse_weights
from formats.weights.encoding import decode
from formats.weights.files import (
    ShowWeights,
    WeightGroup,
    parse_weight_overwrite,
    read_dense,
    read_init_opt,
    read_show_weights,
    read_sparse,
    read_weights_txt,
)
from formats.weights.flat import parse_pairs, parse_tsv
from formats.weights.json_file import parse_json_weights
from formats.weights.lines import read_content_lines, read_weight_file
from formats.weights.list_changes import ListChanges, parse_list_changes
from formats.weights.weight_format import FORMATS, Format, recognize_format
from formats.weights.yaml_file import parse_yaml

_FLAT: tuple[Format, ...] = ("sparse", "graph", "json-flat", "equals", "yaml", "tsv")
"""Formats in which a name does not tell a dense from a sparse feature."""


@dataclass(frozen=True)
class WeightFile:
    """The content of a file of weights.

    Attributes:
        show: dense features by name; empty if the file has only numbers or only sparse weights.
        sparse: sparse weights by name; for a ``moses.ini`` see ``all_sparse``.
        fixed_weights: weights of features that are not tuned, by their names in search graphs.
        numbers: dense weights without names.
        minima, maxima: the ranges of random restarts.
        ini: the configuration, if the file is one.
        second: sparse weights of a second file, which replace those of this one; None without a
            second file.
        changes: how the lists were changed that the weights were learned from.
    """

    path: str
    format: Format
    show: ShowWeights = field(default_factory=lambda: ShowWeights(()))
    sparse: Mapping[str, float] = field(default_factory=dict)
    fixed_weights: Mapping[str, float] = field(default_factory=dict)
    numbers: tuple[float, ...] = ()
    minima: tuple[float, ...] | None = None
    maxima: tuple[float, ...] | None = None
    ini: MosesIni | None = None
    second: Mapping[str, float] | None = None
    changes: ListChanges = field(default_factory=ListChanges)

    @property
    def is_flat(self) -> bool:
        """Whether the file leaves open which features are dense and which are sparse."""
        return self.format in _FLAT

    @property
    def groups(self) -> Mapping[str, tuple[float, ...]]:
        """The tuned weights of each dense feature."""
        return {
            group.name: tuple(value for value in group.values if value is not None)
            for group in self.show.groups
            if group.is_tuneable
        }

    @property
    def dense(self) -> tuple[float, ...]:
        """The tuned dense weights, with names or without."""
        return self.numbers or self.show.values

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of single values: the dense features of lists that name every value.

        A file with one name and one number a line makes no difference between dense and sparse
        features, so all of its names are dense.
        """
        named = tuple(hypergraph_names((n, len(v)) for n, v in self.groups.items()))
        return (*named, *self.sparse) if self.is_flat else named

    @cached_property
    def single_values(self) -> Mapping[str, float]:
        """The weights by names of single values, as ``TM0_1``, which other decoders use."""
        names = hypergraph_names((name, len(values)) for name, values in self.groups.items())
        values = (value for group in self.groups.values() for value in group)
        return {**self.sparse, **dict(zip(names, values, strict=True))}

    @cached_property
    def all_sparse(self) -> Mapping[str, float]:
        """The sparse weights, including those in files that a ``moses.ini`` names."""
        if self.second is not None:
            return self.second
        return self.sparse if self.ini is None else sparse_weights(self.ini)

    @property
    def sparse_by_name(self) -> Mapping[str, float]:
        """The weights of sparse features, of which a flat file may have any name."""
        return {**self.single_values, **self.all_sparse} if self.is_flat else self.all_sparse

    def with_sparse(self, path: str | PathLike[str] | None) -> WeightFile:
        """Return these weights with the sparse ones of a second file, if it is given."""
        return self if path is None else replace(self, second=read_sparse(path))


def read_weights(path: str | PathLike[str], formats: Sequence[Format] = FORMATS) -> WeightFile:
    """Read a file of weights; errors as for ``parse_weights``."""
    return parse_weights(read_weight_file(path), path, formats)


def parse_weights(
    text: bytes, path: str | PathLike[str], formats: Sequence[Format] = FORMATS
) -> WeightFile:
    """Parse the weights in the text of a file of any format.

    Raises:
        FormatError: the format is unknown or not accepted, or a line is invalid.
    """
    path = fspath(path)
    lines = [line for _, line in read_content_lines(path, text, comments=True)]
    if not lines:
        raise FormatError("the file has no weights", path=path, remedy="Give a file of weights")
    format = recognize_format(text, lines)
    if format is None:
        raise FormatError(
            f"{quote(lines[0])} is not a line of a file of weights",
            path=path,
            remedy="Give Name= value lines, name value lines, name=value words, a line of numbers, "
            "YAML, JSON, or a moses.ini",
        )
    if format not in formats:
        raise FormatError(
            f"weights in the format {format} are not accepted here",
            path=path,
            remedy=f"Give one of the formats {', '.join(formats)}",
        )
    parsed = _parse(format, text, path)
    return parsed if parsed.changes else replace(parsed, changes=parse_list_changes(text))


def name_as_in_graphs(show: ShowWeights, fixed: Mapping[str, float], path: str) -> dict[str, float]:
    """Dense weights, tuned or not, by the names that search graphs have.

    Args:
        fixed: weights of those that are not tuned, as far as they are known.

    Raises:
        FormatError: a component is not tuned, and its weight is not known.
    """
    known: dict[str, float] = {}
    for group in show.groups:
        names = hypergraph_names([(group.name, len(group.values))])
        for name, value in zip(names, group.values, strict=True):
            if value is None and name not in fixed:
                raise FormatError(
                    f"the file has no weight of {name}, which is not tuned",
                    path=path,
                    remedy="Search graphs have that feature, too: give the moses.ini",
                )
            known[name] = fixed[name] if value is None else value
    return {**known, **fixed}


def _parse(format: Format, text: bytes, path: str) -> WeightFile:
    """Parse a file of a known format."""
    match format:
        case "moses.ini":
            ini = parse_moses_ini(text, path)
            return WeightFile(
                path, format, list_features(ini), fixed_weights=fixed_weights(ini), ini=ini
            )
        case "show-weights":
            return WeightFile(path, format, read_show_weights(text, path))
        case "dense":
            dense_lines, sparse_lines = _split_dense(text)
            sparse = read_sparse(path, sparse_lines)
            return WeightFile(
                path, format, _make_show_weights(read_dense(path, dense_lines)), sparse
            )
        case "overwrite":
            return WeightFile(path, format, _make_show_weights(_overwritten(text, path).items()))
        case "sparse" | "graph" | "kbmira":
            return _split_weights(path, format, read_sparse(path, text))
        case "init.opt":
            init = read_init_opt(path, text)
            return WeightFile(
                path, format, numbers=init.start, minima=init.minima, maxima=init.maxima
            )
        case "weights.txt":
            return WeightFile(path, format, numbers=read_weights_txt(path, text))
        case "equals":
            return _split_weights(path, format, parse_pairs(path, text))
        case "tsv":
            return _split_weights(path, format, parse_tsv(path, text))
        case "yaml":
            document = parse_yaml(path, text)
            return _split_names(path, format, document.weights, document.changes)
        case "json" | "json-flat":
            json = parse_json_weights(path, text)
            if json.is_flat:
                return _split_names(path, "json-flat", json.dense, json.changes)
            show = _make_show_weights(json.dense.items())
            return WeightFile(path, format, show, json.sparse, changes=json.changes)


def _split_dense(text: bytes) -> tuple[bytes, bytes]:
    """Split dense lines from sparse ones.

    A sparse line has an underscore in the name and no ``=``. Each part has empty lines in place of
    the other's, so that line numbers stay.
    """
    lines = text.split(b"\n")
    words = [line.split() for line in lines]
    is_sparse = [
        len(word) == 2 and b"_" in word[0] and not word[0].endswith(b"=") for word in words
    ]
    pairs = list(zip(lines, is_sparse, strict=True))
    dense, sparse = ([line if flag == kept else b"" for line, flag in pairs] for kept in (0, 1))
    return b"\n".join(dense), b"\n".join(sparse)


def _make_show_weights(groups: Iterable[tuple[str, Sequence[float | None]]]) -> ShowWeights:
    return ShowWeights(tuple(WeightGroup(name, tuple(values)) for name, values in groups))


def _overwritten(text: bytes, path: str) -> Mapping[str, tuple[float | None, ...]]:
    lines = [decode(line) for _, line in read_content_lines(path, text, comments=True)]
    try:
        return parse_weight_overwrite(" ".join(lines))
    except FormatError as error:
        raise FormatError(error.message, path=path, line=1, remedy=error.remedy) from None


def _split_weights(path: str, format: Format, known: Mapping[str, float]) -> WeightFile:
    """Split weights by name into dense and sparse ones, as search graphs name them."""
    if format == "sparse":
        return WeightFile(path, format, sparse=known)
    if format == "kbmira":
        numbers = {name: value for name, value in known.items() if "_" not in name}
        rest = {name: value for name, value in known.items() if name not in numbers}
        return WeightFile(path, format, sparse=rest, numbers=tuple(numbers.values()))
    fixed = {name: value for name, value in known.items() if name.startswith(UNKNOWN_WORD)}
    groups = infer_groups(tuple(known), tuple(fixed))
    dense = dict(zip(hypergraph_names(groups), _spread(groups), strict=True))
    values: dict[str, list[float]] = {name: [] for name, _ in groups}
    for name, group in dense.items():
        values[group].append(known[name])
    rest = {name: v for name, v in known.items() if name not in dense and name not in fixed}
    return WeightFile(path, format, _make_show_weights(values.items()), rest, fixed)


def _split_names(
    path: str, format: Format, known: Mapping[str, tuple[float | None, ...]], changes: ListChanges
) -> WeightFile:
    """Split weights by name: sparse ones have one value and an underscore."""
    dense: dict[str, tuple[float | None, ...]] = {}
    sparse: dict[str, float] = {}
    for name, values in known.items():
        if "_" in name and len(values) == 1 and values[0] is not None:
            sparse[name] = values[0]
        else:
            dense[name] = values
    return WeightFile(path, format, _make_show_weights(dense.items()), sparse, changes=changes)


def _spread(groups: Iterable[tuple[str, int]]) -> list[str]:
    return [name for name, width in groups for _ in range(width)]
