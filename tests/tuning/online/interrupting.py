"""Interrupt an online run inside an epoch."""

from __future__ import annotations

import pytest

from mosesplug.events import EpochProgress, Event
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning import tune


def interrupt(configuration: Configuration, batches: int, epoch: int | None = None) -> None:
    """Tune until so many mini-batches of an epoch, or of the first that runs, are done."""

    def stop(event: Event) -> None:
        if (
            isinstance(event, EpochProgress)
            and event.batches == batches
            and epoch in (None, event.iteration)
        ):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(configuration, stop)
