"""Where Numba keeps compiled kernels of a copied checkout: by the code that they were made from.

Numba looks at a kernel's own file only and keeps it by the file's path. Here it is kept by a digest
of all code that it depends on (``sources.py`` writes the digests), so that checkouts share kernels
and a constant that changes in another file is seen.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator


class Locator(UserProvidedCacheLocator):
    """Numba takes it from ``NUMBA_CACHE_LOCATOR_CLASSES``."""

    def __init__(self, py_func, py_file):
        super().__init__(py_func, py_file)
        root = os.environ["GOLDEN_SOURCE"]
        name = os.path.relpath(py_file, root)
        self._digest = _digests(root)[name]
        directory = f"{name.removesuffix('.py').replace('/', '.')}-{self._digest}"
        self._cache_path = str(Path(os.environ["NUMBA_CACHE_DIR"], directory))

    def get_source_stamp(self):
        return self._digest

    def get_disambiguator(self):
        return "0"


@cache
def _digests(root: str) -> dict[str, str]:
    return json.loads(Path(root, "kernels.json").read_text())
