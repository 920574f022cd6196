"""The file of a declaration of templates, which is read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mosesplug.templates.declaration import Templates


@dataclass(frozen=True)
class TemplateFile:
    """A declaration of templates that settings name.

    All lists that are read with the same settings have the same templates, which are those that
    weights record, even if the file or a vocabulary changes meanwhile.
    """

    path: Path

    @classmethod
    def parse(cls, value: TemplateFile | Path | str) -> TemplateFile:
        """Return the file of a path."""
        return value if isinstance(value, TemplateFile) else cls(Path(value))

    @cached_property
    def templates(self) -> Templates:
        """The templates, read at the first access.

        Raises:
            UsageError, FormatError: they cannot be read.
        """
        # Imported here, since few commands need it.
        from mosesplug.templates.declaration import read_templates

        return read_templates(self.path)

    def __str__(self) -> str:
        return str(self.path)
