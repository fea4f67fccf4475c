"""A strict schema is enforced with one more call of the worker that answered; images need a worker that sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wfdsl.server.json_schema import Schema, form_problem

from .conftest import POOL
from .provider import Provider
from .test_requests import PARTS
from .test_streams import events

SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer", "minimum": 0}, "rest": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
    "required": ["sum"],
    "additionalProperties": False,
}


def form(schema: Any = SCHEMA, *, strict: bool = True) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": strict, "schema": schema}}


class Corrected(Provider):
    """Answers in another form, once it is asked again."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self._left = list(answers)

    def text(self, body: dict[str, Any]) -> str:
        said = super().text(body)
        return self._left.pop(0) if body["model"] == "bob" else said


async def test_an_answer_of_another_form_is_asked_for_once_more_and_paid_for(app: Any) -> None:
    workers = Corrected('{"sum": "4"}', '{"sum": 4}')
    found = app(pool=POOL.replace("{url}", workers.url))
    reply = (await found.post(response_format=form())).json()
    workers.close()

    assert json.loads(reply["choices"][0]["message"]["content"]) == {"sum": 4}
    assert [body["model"] for body in workers.bodies] == ["ann", "bob", "bob"]
    assert workers.bodies[2]["messages"][-2] == {"role": "assistant", "content": '{"sum": "4"}'}
    assert workers.bodies[2]["response_format"] == form()
    assert reply["usage"]["prompt_tokens"] == 30
    assert [step["worker"] for step in reply["wfdsl"]["steps"]] == ["ann", "bob", "bob"]


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_of_a_stream_only_the_answer_in_the_right_form_is_sent(app: Any, path: str) -> None:
    workers = Corrected("Four.", '{"sum": 4}')
    found = app(pool=POOL.replace("{url}", workers.url))
    shape = {"format": {"type": "json_schema", **form()["json_schema"]}}
    more = {"response_format": form()} if path.startswith("chat") else {"input": "Why?", "text": shape}
    sent = events((await found.post(path, stream=True, **more)).content)
    workers.close()

    if path.startswith("chat"):
        said = [choice["delta"].get("content") or "" for chunk in sent for choice in chunk["choices"]]
    else:
        said = [event["delta"] for event in sent if event["type"] == "response.output_text.delta"]
    assert "".join(said) == '{"sum": 4}'


@pytest.mark.parametrize(
    ("answer", "shape"), [('{"sum": 4, "more": 1}', form()), ("Here it is: {", {"type": "json_object"})]
)
async def test_a_second_answer_of_another_form_is_an_error(
    app: Any, provider: Provider, answer: str, shape: dict[str, Any]
) -> None:
    provider.answers["bob"] = answer

    reply = await app().post(response_format=shape)

    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "response_format_not_kept")
    assert len(provider.asked("bob")) == 2


LOOP = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        (SCHEMA, {"sum": 4}, True),
        (SCHEMA, {"sum": 4, "rest": {"sum": 1, "rest": None}}, True),
        (SCHEMA, {"sum": 4, "rest": {"sum": -1}}, False),
        (SCHEMA, {"sum": True}, False),
        (SCHEMA, {}, False),
        (SCHEMA, {"sum": 4, "other": 1}, False),
        ({"type": ["array", "null"], "items": {"enum": ["a", "b"]}, "minItems": 1}, ["a"], True),
        ({"type": ["array", "null"], "items": {"enum": ["a", "b"]}, "minItems": 1}, [], False),
        ({"type": ["array", "null"], "items": {"enum": ["a", "b"]}}, ["c"], False),
        ({"const": None}, 0, False),
        ({"type": "string", "maxLength": 2}, "abc", False),
        ({"type": "number", "exclusiveMaximum": 1}, 1.0, False),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, None, True),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, 1, False),
        ({"$ref": "#/$defs/m", "$defs": {}}, 1, False),
        (LOOP, 1, False),
        ({"$ref": "#"}, 1, False),
    ],
)
def test_what_a_strict_schema_says_holds(schema: dict[str, Any], value: Any, fits: bool) -> None:
    Schema.model_validate(schema)

    assert (form_problem(form(schema), json.dumps(value)) == "") is fits
    assert form_problem(form(schema, strict=False), json.dumps(value)) == ""


async def test_an_image_is_refused_where_no_worker_of_the_workflow_sees_it(app: Any) -> None:
    sees = POOL.replace('model = "{conductor}"', 'model = "{conductor}"\nimages = true')

    reply = await app(pool=sees).post(messages=[{"role": "user", "content": PARTS}])

    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "unsupported_parameter")
