"""Laws of the completion form, on texts that hypothesis draws."""

from __future__ import annotations

from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.fuzz.fuzz_completion import check_completion, check_file
from wfdsl import Workflow, analyze, dumps, parse
from wfdsl.language.codes import CODES
from wfdsl.testing import Written, completions, near_misses, repairable_completions, workflow_files, workflows
from wfdsl.testing.generators import TOKENS

ANY_TEXT = st.text(st.characters(), max_size=200)
TOKEN_SOUP = st.lists(st.one_of(st.sampled_from(TOKENS), st.text(st.characters(), max_size=3)), max_size=40).map(
    "".join
)
HOSTILE = st.one_of(ANY_TEXT, TOKEN_SOUP, near_misses())
REPAIRS = {name for name, code in CODES.items() if code.kind == "repair"}


@given(workflows(max_steps=8, dead_steps=True))
def test_reading_a_workflow_printed_in_either_form_gives_it_back(workflow: Workflow) -> None:
    assert parse(dumps(workflow), max_steps=None) == workflow
    assert analyze(dumps(workflow, form="wf"), form="wf").raise_for_errors().workflow == workflow


@given(workflow_files())
def test_a_file_in_any_layout_means_its_workflow(written: Written) -> None:
    checked = analyze(written.text, form="wf")

    assert checked.raise_for_errors().workflow == written.workflow


@given(workflows(dead_steps=False, min_steps=2))
def test_workflows_without_dead_steps_get_no_warning(workflow: Workflow) -> None:
    checked = analyze(dumps(workflow), pool=7)

    assert {found.severity for found in checked.diagnostics} <= {"note"}


@given(completions())
def test_a_completion_in_any_style_means_its_workflow_in_both_profiles(written: Written) -> None:
    strict = analyze(written.text)
    lenient = analyze(written.text, profile="lenient")

    assert strict.raise_for_errors().workflow == written.workflow
    assert lenient.workflow == strict.workflow
    assert lenient.diagnostics == strict.diagnostics
    assert not {found.code for found in strict.diagnostics} & REPAIRS


@given(repairable_completions())
def test_a_repair_keeps_every_step_and_edge_and_is_reported_by_its_code(written: Written) -> None:
    strict = analyze(written.text)
    lenient = analyze(written.text, profile="lenient")
    # A draft and then an answer in another order are refused, since their lists may belong together otherwise.
    assume("lists-ambiguous" not in {found.code for found in lenient.diagnostics})

    assert lenient.raise_for_errors().workflow == written.workflow
    assert {found.code for found in lenient.diagnostics} & REPAIRS == written.repairs
    assert strict.workflow is None
    assert {found.code for found in strict.diagnostics if found.is_error} == written.repairs
    assert [found.span for found in strict.diagnostics] == [found.span for found in lenient.diagnostics]


@given(st.one_of(HOSTILE, near_misses(workflow_files().map(lambda written: written.text))))
@example("")
@example("\ud800")
@example("model_id = [\ud800")
@example("step x by 0:")
@example("\ufeffwfdsl 1")
def test_every_text_keeps_the_promises_that_the_fuzzer_checks(text: str) -> None:
    check_completion(text)
    check_file(text)


@given(near_misses(), near_misses(), st.sampled_from(["strict", "lenient"]))
def test_reading_depends_on_nothing_but_the_text(first: str, second: str, profile: str) -> None:
    before = analyze(first, profile=profile)
    analyze(second)

    after = analyze(first, profile=profile)

    assert after == before
