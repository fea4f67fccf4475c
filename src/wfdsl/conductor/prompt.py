"""The prompt builder: question, workers, examples and limits in; chat messages out. It is the only one.

Inference, training and `wfdsl solve --dry-run` all build their messages here, from a named, versioned template set.
The hash covers everything that shapes a prompt except the question, the workers and the limits, and is part of every
trace.

What workers and users wrote is quoted: a template says with `{mark}` where a quotation ends, and the mark is chosen so
that it is in no text that is filled in. So no text can end its own quotation, and the same texts give the same prompt.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from wfdsl.conductor.config import DEFAULT_EFFORT, EFFORTS, MAX_RESPONSE_CHARS, Effort
from wfdsl.conductor.examples import ExampleSet, load_examples, read_toml, row_of
from wfdsl.conductor.listing import WorkerListing
from wfdsl.errors import UsageError
from wfdsl.interpreter.context import Question, QuestionFor
from wfdsl.language.check import AccessScheme
from wfdsl.protocols import Message

SHIPPED: Final = Path(__file__).parent / "templates"
DEFAULT_PROMPT: Final = "paper"

_NEEDED: Final = {
    "ask": ("question", "workers", "examples"),
    "example": ("question",),
    "worker": ("ordinal", "description"),
    "revise": ("response",),
    "reask": ("problems",),
}
"""The placeholders that a text has to have. `Prompt` says with its calls of `_filled` which others it may have."""
_EFFORT_TEXTS: Final = tuple(f"effort_{effort}" for effort in EFFORTS)
_OPTIONAL: Final = (
    *("question_for_all", "question_for_first", "access_lists", "access_binary", "footing"),
    *_EFFORT_TEXTS,
)
"""Texts that are kept only where a set has them, so that the hash of a set without them stays what it is."""
_TEXTS: Final = ("system", "heading", *_NEEDED, *_OPTIONAL)
_AROUND_EXAMPLES: Final = ("heading", "example", "footing")
"""Texts that keep their first line breaks, which separate them from what is before them."""
_MARK_CHARS: Final = 8


@dataclass(frozen=True)
class Prompt:
    """A template set with its examples."""

    name: str
    version: int
    texts: dict[str, str]
    """The templates by name: system, ask, heading, example, footing, worker, revise, reask and `question_for_...`."""
    examples: ExampleSet

    @classmethod
    def load(cls, name: str = DEFAULT_PROMPT, *, examples: str | None = None) -> Prompt:
        """A shipped set (`paper`, `tiny`) or the set in a file; `examples` replaces the set's own.

        Raises:
            UsageError: there is none, it lacks something, or a response could end its own quotation.
        """
        path = SHIPPED / f"{name}.toml" if name in shipped_prompts() else Path(name)
        tables = read_toml(path, "template set", shipped_prompts())
        check_texts(path, tables)
        if "{mark}" not in tables["revise"] and tables["revise"].partition("{response}")[2].strip():
            raise UsageError(
                f"{path}: revise: a response could imitate the text after it: "
                "write {mark} in a line before the response, and in the line that ends it"
            )
        fields = [field for field in _TEXTS if field in tables or field not in _OPTIONAL]
        texts = {field: tables.get(field, "").strip("\n") for field in fields}
        texts |= {field: tables.get(field, "").rstrip("\n") for field in fields if field in _AROUND_EXAMPLES}
        return cls(tables["name"], tables["version"], texts, load_examples(examples or tables["examples"]))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of templates and examples, in hexadecimal."""
        examples = [list(row_of(example).values()) for example in self.examples.examples]
        content = json.dumps([self.name, self.version, self.texts, self.examples.name, examples], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What identifies it in traces and manifests: name, version, examples and hash."""
        return {"name": self.name, "version": self.version, "examples": self.examples.name, "hash": self.hash}

    def ask(
        self,
        question: Question,
        listing: WorkerListing,
        *,
        max_steps: int,
        question_for: QuestionFor = "all",
        access: AccessScheme = "lists",
        effort: Effort | None = None,
    ) -> tuple[Message, ...]:
        """The messages of the first round.

        Args:
            question: what is to be answered.
            listing: the workers that are offered.
            max_steps: the most steps of a workflow.
            question_for: which steps are shown the question.
            access: what an access entry may be.
            effort: how much to spend, for a template set that says it; None: medium.
        """
        workers = self.written_workers(listing)
        examples = self.shown_examples(listing.indices, max_steps, access)
        mark = mark_outside(question_text(question))
        template = self.texts["ask"]
        content = _filled(
            template,
            question=_quoted(question, mark if "{mark}" in template else ""),
            workers=workers,
            examples=examples,
            max_steps=str(max_steps),
            question_for=self.texts.get(f"question_for_{question_for}", ""),
            access=self.texts.get(f"access_{access}", ""),
            effort=self.texts.get(f"effort_{effort or DEFAULT_EFFORT}", ""),
            mark=mark,
        )
        user: Message = {"role": "user", "content": content}
        system = self.texts["system"]
        return ({"role": "system", "content": system}, user) if system else (user,)

    def revise(
        self, response: str, *, max_steps: int, rounds_left: int, max_chars: int = MAX_RESPONSE_CHARS
    ) -> Message:
        """The message that asks for a revision.

        Args:
            response: the answer so far; one of more than `max_chars` characters is abridged in the middle.
            max_steps: the most steps of the new workflow.
            rounds_left: the number of rounds after it.
            max_chars: the most characters that are shown of the response.
        """
        shown = abridged(response, max_chars)
        limits = {"max_steps": str(max_steps), "rounds_left": str(rounds_left)}
        content = _filled(self.texts["revise"], response=shown, mark=mark_outside(shown), **limits)
        return {"role": "user", "content": content}

    def reask(self, problems: str) -> Message:
        """The message that asks for the same workflow again, with what was wrong."""
        content = _filled(self.texts["reask"], problems=problems, mark=mark_outside(problems))
        return {"role": "user", "content": content}

    def written_workers(self, listing: WorkerListing) -> str:
        """The workers, a line each; one without a description is shown with its index only."""
        worker = self.texts["worker"]
        before = worker.partition("{description}")[0]
        bare = before.rstrip(" :-,(") if "{ordinal}" in before else "{ordinal}"
        shown = zip(listing.indices, listing.descriptions, strict=True)
        return "\n".join(
            [_filled(worker if text else bare, ordinal=str(index), description=text) for index, text in shown]
        )

    def shown_examples(self, indices: tuple[int, ...], max_steps: int, access: AccessScheme = "lists") -> str:
        """The examples that fit the workers offered and the limits, under their heading; empty if none fits."""
        texts = tuple(self.texts.get(field, "") for field in _AROUND_EXAMPLES)
        return _shown(self.examples, texts, indices, max_steps, access)


@lru_cache(maxsize=1024)
def _shown(
    examples: ExampleSet, texts: tuple[str, ...], indices: tuple[int, ...], max_steps: int, access: AccessScheme
) -> str:
    """What `shown_examples` gives: of a pool there are few sets of indices and limits, and many questions."""
    heading, template, footing = texts
    fitting = [example.fitting(indices, max_steps, access) for example in examples.examples]
    written = [
        _filled(
            template,
            number=str(number),
            question=example.question,
            completion=example.completion,
            lists=example.lists if "{lists}" in template else "",
        )
        for number, example in enumerate(filter(None, fitting), start=1)
    ]
    if not written:
        return ""
    mark = mark_outside(*written)
    heading, footing = _filled(heading, mark=mark), _filled(footing, mark=mark)
    shown = "\n".join([heading, *written]) if heading else "\n".join(written).lstrip("\n")
    return shown + footing


def _filled(template: str, **values: str) -> str:
    """A text of a template set with its placeholders `{name}` replaced by these values, in one pass.

    Other braces are text. What is filled in is never read again, so a question that holds a placeholder's name stays
    what it is.
    """
    return re.sub(r"\{(" + "|".join(values) + r")\}", lambda found: values[found[1]], template)


def shipped_prompts() -> tuple[str, ...]:
    """The names of the template sets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))


def mark_outside(*texts: str) -> str:
    """A mark that is in none of the texts: digits of their hash, hashed again as long as one of them holds it."""
    folded = [text.casefold() for text in texts]
    hashed = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    while any(hashed[:_MARK_CHARS] in text for text in folded):
        hashed = hashlib.sha256(hashed.encode()).hexdigest()
    return hashed[:_MARK_CHARS]


def abridged(text: str, max_chars: int) -> str:
    """The text, with its middle replaced by a note of how much is left out if it is longer than `max_chars`."""
    if len(text) <= max_chars:
        return text
    tail = max_chars // 2
    left_out = len(text) - max_chars
    begin, end = text[: max_chars - tail], text[len(text) - tail :]
    return f"{begin}\n[{left_out:,} of {len(text):,} characters are left out here]\n{end}"


def question_text(question: Question) -> str:
    """A question as one text: a conversation is written out, each message under its role."""
    if isinstance(question, str):
        return question
    if len(question) == 1:
        return _said(question[0])
    return "\n\n".join(f"[{message['role']}]\n{_said(message)}" for message in question)


def _said(message: Message) -> str:
    """The text of a message, and how many images it has."""
    count = len(message.get("images", ()))
    return f"{message['content']}\n[{count} image{'s' if count > 1 else ''}]" if count else message["content"]


def _quoted(question: Question, mark: str) -> str:
    """A question as a prompt quotes it. In a conversation, headings hold the mark; without a mark, lines are quoted.

    A Conductor node's question holds what workers wrote, and a checkpoint may have been trained on texts without marks.
    """
    if isinstance(question, str) or len(question) == 1:
        return question_text(question)
    if mark:
        return "\n\n".join(f"[{message['role']} {mark}]\n{_said(message)}" for message in question)
    quoted = [(message["role"], "\n> ".join(_said(message).splitlines())) for message in question]
    return "\n\n".join(f"[{role}]\n> {lines}" for role, lines in quoted)


def check_texts(path: Path, tables: dict[str, Any]) -> None:
    """Refuse a template set that lacks something; `path` is what errors call it.

    Raises:
        UsageError: a field is unknown, missing or of the wrong kind, or a text lacks a placeholder.
    """
    kinds = {"name": str, "version": int, "examples": str, **dict.fromkeys(_TEXTS, str)}
    tables = {**dict.fromkeys(("heading", *_OPTIONAL), ""), **tables}
    for key in tables.keys() - kinds.keys():
        raise UsageError(f"{path}: {key!r} is not a field of a template set; it has {', '.join(kinds)}")
    for key, kind in kinds.items():
        if not isinstance(tables.get(key), kind):
            raise UsageError(f"{path}: a template set needs {key}, as {'a number' if kind is int else 'a text'}")
    for field, names in _NEEDED.items():
        for name in names:
            if f"{{{name}}}" not in tables[field]:
                raise UsageError(f"{path}: {field} has no {{{name}}}: the text has to show it")
    if "{effort}" in tables["ask"] and not all(tables[field] for field in _EFFORT_TEXTS):
        raise UsageError(f"{path}: ask has {{effort}}, so {', '.join(_EFFORT_TEXTS)} must be given")
