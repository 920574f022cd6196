"""Print the public names with their signatures: ``python -m tests.api.signatures``.

The output is kept in ``signatures.txt``, so that a change of the API shows in a review.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, is_typeddict

import mosesplug

__all__ = ["list_signatures"]


def list_signatures() -> Iterator[str]:
    """Yield one line for each public name, and for each public member of a class."""
    for name in mosesplug.__all__:
        value = getattr(mosesplug, name)
        if not callable(value):
            yield name
        elif is_typeddict(value):
            yield f"{name}(TypedDict)"
            yield from _list_keywords(value)
        elif inspect.isclass(value) and issubclass(value, Exception):
            yield f"{name}({value.__base__.__name__})"
        else:
            yield f"{name}{_spell(value)}"
            if match := re.search(r"Unpack\[(\w+)\]", _spell(value)):
                yield from _list_keywords(inspect.unwrap(value).__globals__[match[1]])
        if inspect.isclass(value) and not issubclass(value, Exception | dict):
            for member in sorted(vars(value)):
                if not member.startswith("_"):
                    yield f"    {member}{_spell(inspect.getattr_static(value, member))}"


def _list_keywords(keywords: Any) -> Iterator[str]:
    """Yield the keys of a typed dictionary with their types."""
    for key, kind in sorted(keywords.__annotations__.items()):
        yield f"    {key}: {kind.__forward_arg__}"


class _Plain:
    """An annotation that shows without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _spell(value: Any) -> str:
    value = getattr(value, "__func__", value)
    if not callable(value):
        return ""
    signature = inspect.signature(value)
    empty = inspect.Parameter.empty
    return str(
        signature.replace(
            parameters=[
                each if each.annotation is empty else each.replace(annotation=_plain(each))
                for each in signature.parameters.values()
            ],
            return_annotation=_Plain(str(signature.return_annotation)),
        )
    )


def _plain(parameter: inspect.Parameter) -> _Plain:
    return _Plain(str(parameter.annotation))


if __name__ == "__main__":
    print("\n".join(list_signatures()))
