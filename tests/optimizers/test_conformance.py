"""Conformance tests of every registered optimizer, which plug-ins share."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mosesplug.errors import UsageError
from mosesplug.optimizers.registry import Algorithm, algorithm, algorithms
from mosesplug.testing import ALGORITHM_CHECKS

pytestmark = [
    pytest.mark.parametrize("tuner", algorithms().values(), ids=lambda each: each.name),
    pytest.mark.usefixtures("few_restarts"),
]


@pytest.mark.parametrize("check", ALGORITHM_CHECKS.values(), ids=ALGORITHM_CHECKS.keys())
def test_conformance(tuner: Algorithm, check: Callable[[Algorithm], None]) -> None:
    check(tuner)


def test_is_found_by_name(tuner: Algorithm) -> None:
    assert algorithm(tuner.name).options is tuner.options
    with pytest.raises(UsageError, match=re.escape(tuner.name)):
        algorithm("no-such-thing")
