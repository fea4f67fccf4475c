"""The options of a check are written down once: as fields of `CheckConfig`."""

from __future__ import annotations

import typing

import pytest

from wfdsl import CheckConfig, UsageError, analyze, load, parse

TWO_STEPS = 'model_id = [0, 1]\nsubtasks = ["Plan it.", "Do it."]\naccess_list = [[], [0]]'
SEVEN_STEPS = "".join(f'step s{step} by 0 sees all: "Do part {step}."\n' for step in range(7))


def test_keywords_count_instead_of_the_fields_of_a_config() -> None:
    config = CheckConfig(pool=1, max_steps=1)

    assert [found.code for found in analyze(TWO_STEPS, config).diagnostics] == ["too-many-steps", "worker-not-in-pool"]
    assert [found.code for found in analyze(TWO_STEPS, config, pool=2).diagnostics] == ["too-many-steps"]
    assert analyze(TWO_STEPS, config, pool=2, max_steps=None).ok
    assert config == CheckConfig(pool=1, max_steps=1)


def test_each_form_has_its_own_limit_of_steps_unless_one_is_given() -> None:
    assert analyze(SEVEN_STEPS, form="wf").ok
    assert not analyze(SEVEN_STEPS, form="wf", max_steps=5).ok
    assert not analyze(SEVEN_STEPS, CheckConfig(), form="wf").ok
    assert analyze(TWO_STEPS, form="completion").ok
    assert not analyze(TWO_STEPS, form="completion", max_steps=1).ok


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({"max_steps": 0}, "max_steps must be at least 1 (got 0)"),
        ({"max_chars": 0}, "max_chars must be at least 1 (got 0)"),
        ({"depth_left": -1}, "depth_left must be at least 0 (got -1)"),
        ({"profile": "loose"}, "profile must "),
        ({"recursion": 1}, "recursion must "),
        ({"max_step": 3}, "there is no option 'max_step'. Did you mean max_steps?"),
    ],
)
def test_an_option_outside_its_limits_is_refused(options: typing.Any, start: str) -> None:
    for read in (analyze, parse, load):
        with pytest.raises(UsageError) as error:
            read(TWO_STEPS, **options)
        assert str(error.value).startswith(start)
