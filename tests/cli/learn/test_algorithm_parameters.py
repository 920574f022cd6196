"""Help of the options that algorithms share, or have under one name."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from mosesplug.cli.learn.algorithm_parameters import settings_of, with_algorithm_options
from mosesplug.cli.main import main
from mosesplug.optimizers import algorithms


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> str:
    """The help, without the breaks of lines, which may be after a hyphen."""
    with pytest.raises(SystemExit):
        main(["optimize", "--help"])
    return "".join(capsys.readouterr().out.split())


def about_option(said: str, setting: str) -> str:
    """The help from that option on, and not from another whose name begins with its name."""
    found = re.search(rf"--{setting.replace('_', '-')}(?!-)", said)
    assert found, setting
    return said[found.start() :]


def test_each_algorithm_says_its_own(said: str) -> None:
    """Of one name with several meanings, all are there, each with those that mean it."""
    for tuner in algorithms().values():
        defaults = tuner.options()
        for setting in fields(tuner.options):
            option = about_option(said, setting.name)
            text = "".join(f"{setting.metadata['help']}.".split())
            assert text in option, (tuner.name, setting.name)
            default = str(getattr(defaults, setting.name))
            source = "".join(setting.metadata["source"].split())
            about = rf"\[{re.escape(default)};[^\]]*{re.escape(source)}\]"
            assert re.search(about, option), (tuner.name, setting.name)


def test_slack_of_mira_is_not_that_of_relative_margin(said: str) -> None:
    slack = said[said.index("--slack") :]
    assert slack.index("mira:C:weightoftheviolatedmargins") < slack.index("rm-pa,rm-cp:C:")


def test_words_that_a_setting_can_be_are_in_its_place(said: str) -> None:
    for tuner in algorithms().values():
        for name, hint in get_type_hints(tuner.options).items():
            if get_origin(hint) is not None:
                option = about_option(said, name)
                words = option[: option.index(".")]
                assert all(word in words for word in get_args(hint)), (tuner.name, name)


def test_a_setting_with_the_name_of_another_parameter_is_told_from_it() -> None:
    """Of ``chosen``, what the command has itself under a name is another thing."""

    def command(window: str = "mine", **chosen: Any) -> None:
        seen.append((window, settings_of(chosen)))

    seen: list[tuple[str, dict[str, Any]]] = []
    name = next(field.name for tuner in algorithms().values() for field in fields(tuner.options))
    signature = inspect.signature(with_algorithm_options(command))
    assert name in signature.parameters
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)]
    )
    signature = inspect.signature(with_algorithm_options(command))
    assert f"algorithm_{name}" in signature.parameters
    with_algorithm_options(command)(window="w", **{f"algorithm_{name}": 3, "other": None})
    assert seen == [("w", {name: 3})]
