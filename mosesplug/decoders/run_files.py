"""The files of decoders in a working directory, named as Moses names them."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

GRAPH_FILE = re.compile(r"\d+(\.(txt|gz|bz2))?|weights|\.(\d+\.|weights\.).+")
"""What decoders write into a directory of search graphs, finished or not."""


@dataclass(frozen=True)
class RunFiles:
    """Paths of one run.

    Attributes:
        directory: absolute path of the working directory, the current directory of decoders.
        nbest_size: length of the n-best lists, part of their file names.
    """

    directory: Path
    nbest_size: int

    def run(self, iteration: int, what: str) -> Path:
        """Return a file of one iteration, as ``run3.dense``."""
        return self.directory / f"run{iteration}.{what}"

    def nbest(self, iteration: int) -> Path:
        """Return the n-best list as the decoder writes it."""
        return self.run(iteration, f"best{self.nbest_size}.out")

    def packed_nbest(self, iteration: int) -> Path:
        """Return the compressed n-best list."""
        return self.run(iteration, f"best{self.nbest_size}.out.gz")

    def samples(self, iteration: int, size: int) -> Path:
        """Return the samples of the search lattice, in n-best format."""
        return self.run(iteration, f"lsamp{size}.out")

    @property
    def graphs(self) -> Path:
        """Directory of the newest search graphs, as in ``mert-moses.pl``."""
        return self.directory / "hypergraph"

    def remove_graphs(self) -> None:
        """Remove the search graphs, but no other files beside them and no link target."""
        if self.graphs.is_symlink():
            self.graphs.unlink()
        if not self.graphs.is_dir():
            return
        for path in self.graphs.iterdir():
            if GRAPH_FILE.fullmatch(path.name):
                path.unlink()
        with contextlib.suppress(OSError):
            self.graphs.rmdir()

    @property
    def features_list(self) -> Path:
        """The decoder's answer to ``-show-weights``."""
        return self.directory / "features.list"

    @property
    def filtered_model(self) -> Path:
        """Directory of the filtered model."""
        return self.directory / "filtered"
