"""Checks for authors of plug-ins: what mosesplug expects of metrics and so on.

Each ``check_*`` raises ``AssertionError`` with a message for the first check that fails; call it in
a test of any framework. ``*_CHECKS`` have the single checks by name, to run each as a test of its
own. mosesplug tests its own metrics, formats, decoders and algorithms by the same checks.
"""

from __future__ import annotations

from mosesplug.testing.algorithms import ALGORITHM_CHECKS, check_algorithm
from mosesplug.testing.decoders import (
    DECODER_CHECKS,
    DecoderCase,
    check_batch_decoder,
    check_decoder,
)
from mosesplug.testing.list_formats import LIST_FORMAT_CHECKS, ListFormatCase, check_list_format
from mosesplug.testing.metrics import METRIC_CHECKS, check_metric

__all__ = [
    "ALGORITHM_CHECKS",
    "DECODER_CHECKS",
    "LIST_FORMAT_CHECKS",
    "METRIC_CHECKS",
    "DecoderCase",
    "ListFormatCase",
    "check_algorithm",
    "check_batch_decoder",
    "check_decoder",
    "check_list_format",
    "check_metric",
]
