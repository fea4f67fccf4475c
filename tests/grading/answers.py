"""Tasks for the tests of grading, in one line each."""

from __future__ import annotations

from wfdsl.tasks.task import Task


def math_task(gold: str) -> Task:
    return Task(id="1", question="How much?", gold=gold)


def choice_task(gold: str, *choices: str) -> Task:
    return Task(
        id="1", question="Which?", gold=gold, kind="choice", choices=choices or ("north", "east", "south", "west")
    )


def text_task(gold: str) -> Task:
    return Task(id="1", question="Who?", gold=gold, kind="text")


def custom_task(grader: str) -> Task:
    return Task(id="1", question="Well?", gold="", kind="custom", grader=grader)
