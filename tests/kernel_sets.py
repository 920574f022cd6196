"""Which kernels this process has loaded or compiled."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from mosesplug import kernels

Kernels = set[tuple[str, str, str]]


def _every() -> Iterator[kernels._Kernel]:
    for name, module in list(sys.modules.items()):
        if name.startswith("mosesplug."):
            for value in list(vars(module).values()):
                if isinstance(value, kernels._Kernel) and value.__module__ == name:
                    yield value


def forget_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process load its kernels anew, as a process does that has just started."""
    for each in _every():
        monkeypatch.setattr(each, "_dispatcher", None)


def loaded_kernels() -> Kernels:
    """Module, name and types of each kernel that was called since."""
    return {
        (each.__module__, each.py_func.__name__, str(types))
        for each in _every()
        if each._dispatcher is not None
        for types in each._dispatcher.signatures
    }
