"""Programs through which Moses is called."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Queue:
    """Decode in parallel through ``moses-parallel.pl`` and Grid Engine.

    Attributes:
        command: path of ``moses-parallel.pl``.
        jobs: number of parts into which the input is cut.
        flags: parameters for ``qsub``, one string.
        old_sge: Grid Engine older than 6.0.
        cache: directory on the nodes' local disks into which the model is copied, or None.
        wrapper: path of ``qsub-wrapper.pl``, for other commands than decoding; None runs them on
            this machine.
    """

    command: Path
    jobs: int
    flags: str = "-hard"
    old_sge: bool = False
    cache: str | None = None
    wrapper: Path | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its settings by name."""
        return {
            "jobs": self.jobs,
            "queue-flags": self.flags,
            "old-sge": self.old_sge,
            "moses-parallel": str(self.command),
            "qsub-wrapper": str(self.wrapper),
            "cache-model": self.cache,
        }

    def make_submission(
        self, wrapper: Path, command: Sequence[str], stdout: Path, stderr: Path
    ) -> tuple[str, ...]:
        """Return the command that submits ``command`` by ``wrapper`` and waits for it."""
        old = ("-old-sge",) if self.old_sge else ()
        return (
            str(wrapper),
            *old,
            f"-command={shlex.join(command)}",
            f"-queue-parameter={self.flags}",
            f"-stdout={stdout}",
            f"-stderr={stderr}",
        )


@dataclass(frozen=True)
class PostEditing:
    """Decode with simulated post-editing, through ``moses_sim_pe.py``.

    Attributes:
        command: path of ``moses_sim_pe.py``.
        reference: the first reference.
        alignment: word alignment of input and reference.
        scratch: directory for temporary files.
    """

    command: Path
    reference: Path
    alignment: Path
    scratch: Path
