"""Weights by name, as tables that print, and as files of any format."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formats.moses.ini import MosesIni, read_moses_ini
from formats.weights.any_format import WeightFile
from formats.weights.files import ShowWeights, WeightGroup
from formats.weights.list_changes import UNCHANGED, ListChanges
from formats.weights.named import read_named_weights, sparse_companion
from formats.weights.weight_format import Format, find_weight_format
from mosesplug.api.keywords import LEARNING
from mosesplug.api.tables.records import Tabular
from mosesplug.api.tables.table import Table
from mosesplug.errors import DataError, Message, UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.features import FeatureSpace
from mosesplug.results.render.tables import format_table, render_table

if TYPE_CHECKING:
    from mosesplug.results.weights.convert import ConvertedWeights

_ONE_VALUE_EACH: tuple[Format, ...] = ("graph", "equals", "tsv")
"""Formats that name each value, as ``TM0_1``."""

_WITH_ANY_NAME: tuple[Format, ...] = ("json", "json-flat", "yaml")
"""Formats that take a name that begins with # for a name."""

_SHOWN_SPARSE = 20
"""Sparse weights that a table shows of itself, the largest ones."""

_HEAD = ("feature", "weight")


class WeightTable(Mapping[str, float | tuple[float, ...]], Tabular):
    """Weights by the name of their feature: a number, or several of one dense feature.

    A table is a read-only mapping, dense features first, and prints as a table.

    Args:
        space: the features.
        vector: float64 ``[n_features]``, in their order.
        fixed: bool ``[n_features]``, features that are not tuned and therefore not in the mapping;
            None if there are none.
        config: the configuration of the decoder, whose weights ``save`` replaces in a
            ``moses.ini``; None: unknown.
        changes: how the lists were changed that the weights were learned from; None: not at all.

    Example:
        >>> import mosesplug
        >>> table = mosesplug.WeightTable.of_mapping({"LM": 0.5, "TM": (0.25, -0.25)})
        >>> table
        feature  weight
        LM       0.5
        TM       0.25 -0.25
        >>> table["LM"], table.vector.tolist()
        (0.5, [0.5, 0.25, -0.25])
        >>> table.save("weights.json")
        >>> mosesplug.WeightTable.read("weights.json") == table
        True
    """

    def __init__(
        self,
        space: FeatureSpace,
        vector: NDArray[np.float64],
        *,
        fixed: NDArray[np.bool_] | None = None,
        config: MosesIni | None = None,
        changes: ListChanges | None = None,
    ) -> None:
        values = np.array(vector, dtype=np.float64)
        if values.shape != (len(space),):
            raise UsageError(f"vector has the shape {values.shape} for {len(space)} features")
        values.flags.writeable = False
        self._space, self._vector, self._config, self._changes = (
            space,
            values,
            config,
            changes or UNCHANGED,
        )
        numbers: list[float] = values.tolist()
        tuned = np.ones(len(space), dtype=np.bool_) if fixed is None else ~fixed
        first = 0
        self._dense: dict[str, tuple[float, ...]] = {}
        for name, width in space.groups:
            self._dense[name] = tuple(numbers[first : first + width])
            first += width
        tail = zip(space.sparse, numbers[first:], tuned[first:].tolist(), strict=True)
        self._sparse: dict[str, float] = {name: value for name, value, is_tuned in tail if is_tuned}

    @classmethod
    def of_mapping(
        cls,
        dense: Mapping[str, float | Sequence[float]],
        sparse: Mapping[str, float] | None = None,
    ) -> WeightTable:
        """Return a table of dense features with one or several values, and of sparse ones.

        Raises:
            UsageError: a value is not a number.
        """
        groups = {name: _convert_weights(name, value) for name, value in dense.items()}
        sparse = sparse or {}
        space = FeatureSpace(tuple((n, len(v)) for n, v in groups.items()), tuple(sparse))
        numbers = [*(value for values in groups.values() for value in values), *sparse.values()]
        return cls(space, np.array(numbers, dtype=np.float64))

    @classmethod
    @LEARNING.in_messages()
    def read(cls, path: str | PathLike[str]) -> WeightTable:
        """Read weights with names from a file of any format.

        Sparse weights in ``PATH.sparse``, which ``save`` may have written, are read, too.

        Raises:
            FormatError: the file cannot be read.
            UsageError: it has numbers without names.
        """
        from mosesplug.learning.lengths import with_recorded_length

        file = with_recorded_length(read_named_weights(path))
        if file.numbers:
            raise UsageError(f"{fspath(path)} has numbers without names")
        table = cls.of_mapping(file.groups, file.all_sparse)
        table._config, table._changes = file.ini, file.changes
        return table

    @property
    def space(self) -> FeatureSpace:
        """The features in the order of ``vector``."""
        return self._space

    @property
    def vector(self) -> NDArray[np.float64]:
        """All weights, float64 ``[n_features]``, read-only: dense features first."""
        return self._vector

    @property
    def file(self) -> WeightFile:
        """The weights as ``formats`` reads them from a file."""
        groups = tuple(WeightGroup(name, values) for name, values in self._dense.items())
        show = ShowWeights(groups)
        return WeightFile("the table", "dense", show, self._sparse, changes=self._changes)

    @property
    def table(self) -> Table:
        """A row for each weight: ``feature``, with a number if several, and ``weight``."""
        labels = FeatureSpace(tuple((n, len(v)) for n, v in self._dense.items()), ()).labels
        names = [mark_invalid_utf8(name) for name in (*labels, *self._sparse)]
        values = [value for group in self._dense.values() for value in group]
        weights = np.array([*values, *self._sparse.values()], dtype=np.float64)
        return Table.of_columns({"feature": ("text", names), "weight": ("float64", weights)})

    def __getitem__(self, name: str) -> float | tuple[float, ...]:
        if name in self._sparse:
            return self._sparse[name]
        values = self._dense[name]
        return values[0] if len(values) == 1 else values

    def __iter__(self) -> Iterator[str]:
        yield from self._dense
        yield from self._sparse

    def __len__(self) -> int:
        return len(self._dense) + len(self._sparse)

    def __repr__(self) -> str:
        return "\n".join([*format_table([_HEAD, *self._rows()], left=2), *self._rest()])

    def _repr_html_(self) -> str:
        omitted = "".join(f"<p>{line}</p>" for line in self._rest())
        return render_table(_HEAD, self._rows(), range(2)) + omitted

    @LEARNING.in_messages()
    def save(
        self,
        path: str | PathLike[str],
        format: str | None = None,
        *,
        config: str | PathLike[str] | None = None,
    ) -> None:
        """Write the weights, with as many digits as are needed to read them back exactly.

        Sparse weights of 0 are left out. Those that a format cannot hold go to ``PATH.sparse``. The
        length exponent is recorded in the file, if its format can hold it, and in ``PATH.length``.
        A format that does not record added or derived features is logged as a warning.

        Args:
            path: the file.
            format: ``dense``, ``json``, ``json-flat`` (a number for each name), ``yaml``, ``tsv``,
                ``equals`` (``a=b c=d`` on one line), ``lines`` (``name value``), ``moses.ini``,
                ``show-weights``, ``overwrite``, ``sparse``, ``graph``, ``kbmira``, ``init.opt`` or
                ``weights.txt``. None: by the name of the file (``.json``, ``.yaml``, ``.tsv``,
                ``.ini``), else ``dense``.
            config: the configuration that a ``moses.ini`` is made from; None: the file that the
                weights came from, if it was one.

        Raises:
            UsageError: an unknown format, or one that needs a configuration.
            DataError: weights are all 0 or not finite, or the configuration has other features.
        """
        from mosesplug.learning.made_features import spell_made_features
        from mosesplug.learning.weights import write_weights
        from mosesplug.results.weights.convert import RECORDING

        path = Path(path)
        to = find_format(path, format if self._dense else format or "sparse")
        ini = self._config if config is None else read_moses_ini(config)
        beside = sparse_companion(path)
        converted = convert_table(self, to, config=ini, path=path, sparse_output=beside)
        write_weights(path, converted.text, converted.sparse, self._changes)
        for feature in spell_made_features(self._changes) if to not in RECORDING else ():
            logging.getLogger("mosesplug").warning(
                "warning: %s does not record that the score needs %s: keep that, or save json, yaml"
                " or dense",
                path,
                Message(feature, LEARNING),
            )

    def _rows(self) -> Iterable[tuple[str, str]]:
        """Return name and values of the dense features and the heaviest sparse ones."""
        for name, values in self._dense.items():
            yield name, " ".join(f"{value:.6g}" for value in values)
        for name in self._heaviest:
            yield name, f"{self._sparse[name]:.6g}"

    @property
    def _heaviest(self) -> list[str]:
        names = (name for name, value in self._sparse.items() if value != 0.0)
        return sorted(names, key=lambda name: -abs(self._sparse[name]))[:_SHOWN_SPARSE]

    def _rest(self) -> list[str]:
        """Return a line about the sparse weights that are not shown."""
        hidden = len(self._sparse) - len(self._heaviest)
        return [f"and {hidden} more sparse features"] if hidden else []


def convert_table(
    table: WeightTable,
    to: Format,
    *,
    config: MosesIni | None,
    path: Path | None,
    sparse_output: Path,
) -> ConvertedWeights:
    """Return the text of a file with the weights of a table.

    Args:
        table: the weights.
        to: the format.
        config: the configuration that a ``moses.ini`` is made from.
        path: the file, for messages.
        sparse_output: the file of the sparse weights that the format cannot hold.

    Raises:
        UsageError, DataError: as for ``WeightTable.save``.
    """
    from mosesplug.results.weights.convert import convert_weights
    from mosesplug.results.weights.sources import ResolvedWeights
    from mosesplug.tuning.weights import Weights

    if to == "moses.ini" and config is None:
        raise UsageError(f"{path}: a moses.ini is made from another one: give config=FILE")
    if to in _ONE_VALUE_EACH:
        for name, width in table.space.groups:
            if "_" in name and width > 1:
                raise DataError(f"{to} takes {name!r} for a sparse feature: use format='json'")
    if to not in _WITH_ANY_NAME and (names := [name for name in table if name.startswith("#")]):
        raise DataError(f"{to} takes {names[0]!r} for a comment: use format='json'")
    file = table.file
    weights = Weights(
        file.dense, {name: value for name, value in file.sparse.items() if value != 0.0}
    )
    resolved = ResolvedWeights("the table", "dense", file.show, weights, changes=file.changes)
    return convert_weights(resolved, to, config=config, sparse_output=sparse_output)


def _convert_weights(name: str, value: Any) -> tuple[float, ...]:
    """Return one or several weights of a feature."""
    try:
        return tuple(np.atleast_1d(np.asarray(value, dtype=np.float64)).tolist())
    except (TypeError, ValueError):
        raise UsageError(f"the weight of {name} is {value!r}: give numbers") from None


def find_format(path: Path, format: str | None) -> Format:
    """Return the format of a file of weights.

    Args:
        path: the file.
        format: its name; None: by the name of the file.

    Raises:
        UsageError: an unknown format.
    """
    try:
        return find_weight_format(format, path)
    except ValueError as error:
        raise UsageError(f"{error}") from None
