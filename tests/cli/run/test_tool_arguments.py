"""Arguments of mert and extractor, and metric settings given twice."""

from __future__ import annotations

import pytest

from mosesplug.cli.run.tool_arguments import (
    ToolArguments,
    merge_metric_settings,
    read_tool_arguments,
)
from mosesplug.errors import UsageError


def test_defaults() -> None:
    assert read_tool_arguments("", "mertargs") == ToolArguments()
    assert read_tool_arguments("", "extractorargs") == ToolArguments()


def test_mert() -> None:
    text = "--sctype BLEU --scconfig=case:false -n5 -m 7 -t random-direction --rseed 3 -o LM0_0,d_0"
    assert read_tool_arguments(text + " --threads 4 -v 1 -b", "mertargs") == ToolArguments(
        "BLEU",
        "case:false",
        {"restarts": 5, "random_directions": 7, "method": "random-direction"},
        "LM0_0,d_0",
        3,
        4,
    )


def test_extractor() -> None:
    assert read_tool_arguments("--binary -s BLEU", "extractorargs") == ToolArguments("BLEU")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--shard-count 3", "--shard-count is not supported"),
        ("-n x", "must be an integer"),
        ("-t simplex", "-t takes powell, random-direction or random"),
        ("--frob", "unknown option --frob"),
        ("-n", "-n needs a value"),
        ("stray", "'stray' belongs to no option"),
        ("'", "No closing quotation"),
    ],
)
def test_rejected_mert_arguments(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        read_tool_arguments(text, "mertmertargs")
    assert "--mertmertargs" in str(caught.value)


def test_kbmira() -> None:
    text = "-J60 -C 0.1 --decay=0.9 --streaming --safe-hope --type nbest --verbose --sctype BLEU"
    assert read_tool_arguments(text + " -c case:false", "batch-mira-args") == ToolArguments(
        "BLEU",
        "case:false",
        {
            "epochs": "60",
            "step_cap": "0.1",
            "decay": "0.9",
            "shuffle": False,
            "safe_hope": True,
        },
    )


def test_kbmira_on_search_graphs() -> None:
    found = read_tool_arguments("--hg-prune 20 -J 5", "batch-mira-args")
    assert found == ToolArguments(options={"epochs": "5"}, edges=20)


def test_pro() -> None:
    assert read_tool_arguments("", "proargs") == ToolArguments()
    assert read_tool_arguments("--smooth -r5", "proargs") == ToolArguments(
        options={"smooth_brevity_penalty": True}, seed=5
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--type hypergraph", "--type is not supported"),
        ("--dense-init x", "--dense-init is not supported"),
        ("--streaming-out", "--streaming-out is not supported"),
        ("--random-seed x", "must be an integer"),
        ("--st", "--st may be any of --streaming, --streaming-out"),
    ],
)
def test_rejected_kbmira_arguments(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        read_tool_arguments(text, "batch-mira-args")
    assert "--batch-mira-args" in str(caught.value)


def test_rejected_pro_arguments() -> None:
    with pytest.raises(UsageError, match=r"--scfile is not supported\. Supported: -b, -r"):
        read_tool_arguments("--scfile x", "proargs")


def test_rejected_extractor_arguments() -> None:
    with pytest.raises(UsageError, match="--transform-decoded-file"):
        read_tool_arguments("--filter cat", "extractorargs")


def test_first_setting_counts() -> None:
    assert (
        merge_metric_settings("case:false reflen:average", "case:true")
        == "case:false,reflen:average"
    )
    assert merge_metric_settings("", "reflen:closest", "case:true") == "reflen:closest,case:true"
