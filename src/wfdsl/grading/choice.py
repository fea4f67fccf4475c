"""Choice answers: the letters that a reply chooses, and whether they are the gold ones.

An answer with several letters is right only if the gold answer is all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from wfdsl.grading.markers import MOST_MARKED, MarkedAnswer, marked_answers
from wfdsl.grading.text import normal_text
from wfdsl.grading.verdict import Verdict
from wfdsl.grading.wording import alternative, retractions, without_denied

_MOST = 10
"""How many letters there are if the options are not known: A to J, as in MMLU-Pro."""
_WRAPPED = r"[*_`\"'“‘(\[{]{0,6}(?:\\(?:text|textbf|mathrm|mathbf|mbox|rm)\s{0,2}\{?\s{0,2})?[(\[{*_]{0,4}"
_CLOSED = r"[)\]}*_`\"'”’]{0,8}"
_SEPARATOR = r"(?:,(?:\s*+(?:and|or))?|;|/|\||&|\+|\band\b|\bor\b|\band/or\b)"
_JOIN = (
    rf"(?:\s++{_SEPARATOR}?|{_SEPARATOR})\s*+"
    r"(?:either\s+|also\s+|maybe\s+|option\s+|choice\s+)?"
)
_LEAD = re.compile(
    r"(?:[\s:=]|either\b|both\b|one of\b|probably\b|likely\b|definitely\b|clearly\b|therefore\b|thus\b|then\b|indeed\b|"
    r"(?:the\s+)?(?:(?:correct|right|best|final)\s+)?(?:options?|choices?|letters?|answers?|statements?)\b)*",
    re.IGNORECASE,
)
_FULL_WIDTH = {0xFEE0 + ord(letter): letter for letter in (*ascii_uppercase, *ascii_uppercase.lower(), *"().:")}
_AFTER = r"(?![\w’'])(?![-–]\w)"
_DENIED = re.compile(
    r"\b[A-Z][*)}$]{0,4}\s+(?:(?:is|are|was|can|could|does|do|must)(?:n['’]t|\s+(?:clearly\s+)?(?:not|wrong|incorrect|false|out)|not)|"
    r"fails)\b|\b(?:eliminate[sd]?|exclude[sd]?|rules?\s+out)\s+(?:option\s+|choice\s+)?[*(]{0,4}[A-Z]\b"
)
"""Letters that are named because they are not the answer."""
_SINGLE = re.compile(r"(?<![\w'’\\])[A-Za-z](?![\w'’])")
_TEXT_COMMAND = re.compile(r"\$?\\(?:text|textbf|mathrm|mathbf|mbox|rm)\s?\{([^{}]*)\}\$?")
_ALL = re.compile(r"\W*(?:all|none)\s+of\s+the\b|\W*(?:all|any)\s+(?:four|five|options|choices)", re.IGNORECASE)
_CONNECTIVES = frozenset(
    "because since as is are and or for so which that given but due with by if would not in however therefore".split()  # noqa: SIM905
)
_CHOICE = re.compile(
    r"\b(?:(?:correct|right|best)\s+(?:option|choice|one|letter|statement)|I(?:\s+would|'d)?\s+(?:choose|pick|select|go\s+with)|"
    r"my\s+(?:choice|pick)|(?:option|choice))\s*(?:is|are|:|=)?(?=[\s:*(])\s*(?:\*\*)?",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_MARKS = " \t\r\n*_`."
_LABEL = re.compile(r"[\s*_(\[]*([A-Za-z])[\s*_]*(?:[)\].:]|\s[-–]\s)[\s*_]*")


def grade_choice(gold: str, answer: str, choices: Sequence[str] = ()) -> Verdict:
    """Whether the letters, as `final_letters` gives them, are the gold ones. A gold option in full is its letter."""
    wanted = _letters_of(gold, choices)
    if not wanted:
        return Verdict("unjudged", answer, f"the gold answer {gold!r} is not one of the options")
    given = set(re.findall(r"[A-Z]", answer)) if re.fullmatch(r"[A-Z](?:, [A-Z])*", answer) else set()
    if given == wanted:
        return Verdict("right", answer, f"it is {', '.join(sorted(wanted))}")
    if len(given) > len(wanted) == 1:
        return Verdict("wrong", answer, f"{len(given)} letters are given, and one is asked for")
    return Verdict("wrong", answer, f"{answer} is not {', '.join(sorted(wanted))}")


def final_letters(text: str, choices: Sequence[str] = ()) -> str | None:
    """The letters that a reply chooses in the end, joined by commas; if it quotes an option, its letter."""
    text = text.translate(_FULL_WIDTH)
    last_line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    text = _DENIED.sub(lambda found: "?" * len(found[0]), without_denied(text, _SINGLE))
    pattern = _Letters(len(choices) or _MOST)
    for marked in reversed(_marked(text, pattern)[-MOST_MARKED:]):
        if found := _chosen(marked, pattern, choices):
            return found
    lines = [line for line in text.splitlines() if line.strip()]
    if several := pattern.listed(lines):
        return several
    return _quoted(last_line, choices) or pattern.alone(lines[-1]) or pattern.opening(lines) or pattern.last(text)


class _Letters:
    """The patterns for as many letters as there are options."""

    def __init__(self, count: int) -> None:
        letters = ascii_uppercase[: min(count, 26)]
        both = f"[{letters}{letters.lower()}]"
        one = rf"{_WRAPPED}\s{{0,4}}({both})\s{{0,4}}{_CLOSED}{_AFTER}"
        self._one = re.compile(one)
        self._next = re.compile(rf"({_JOIN}){one}(?!\)?\s+(?:is|are|was|were|would|cannot|can|does|do|has|says)\b)")
        self._alone = re.compile(rf"\s*(?:#+\s*)?(?:\$|\\\()?{one}(?:\$|\\\))?[\s.,:;!)]*")
        self._labelled = re.compile(rf"\s*[*_]*[(\[]?([{letters}])[)\].:][*_]*(?=\s|$)")
        self._marked = re.compile(
            rf"[(\[]([{letters}])[)\]]|\*\*([{letters}])\*\*|\b(?:[Oo]ption|[Cc]hoice)\s+\(?([{letters}])\b"
        )
        self._bare = re.compile(rf"(?<![\w'’.$\\-])([{letters}])(?![\w'’+=^-])")
        self.chosen = re.compile(
            rf"""(?:\b(?:options?|choices?)\s+)?{_WRAPPED}({both}){_CLOSED}{_AFTER}\s+is\s+(?:therefore\s+|thus\s+|clearly\s+)?
            (?:the\s+)?(?:correct|right|best)\b""",
            re.VERBOSE,
        )

    def leading(self, said: str) -> str | None:
        """The letters that a marked answer begins with: `B`, `(B) because ...`, `A or B`."""
        lead = _LEAD.match(said)
        start = lead.end() if lead else 0
        first = self._one.match(said, start)
        if first is None or self._is_word(first, said):
            return None
        found, before = [first[1].upper()], first
        while following := self._next.match(said, before.end()):
            if self._is_word(following, said, 2) or not (following[1].strip() or _same_shape(before, following)):
                break
            found.append(following[2].upper())
            before = following
        other = alternative(_SENTENCE.split(said[before.end() :], maxsplit=1)[0])
        found += [letter[1] for letter in self._bare.finditer(other) if not self._is_word(letter, other)]
        return ", ".join(sorted(set(found)))

    def _is_word(self, letter: re.Match[str], said: str, group: int = 1) -> bool:
        """`a` and `I` in front of a word are words, unless they are marked as letters."""
        bare = said[letter.start(group) : letter.end()] == letter[group] and letter.end() < len(said)
        follows = re.match(r"\s+([a-z]+)", said[letter.end() :])
        if not bare or follows is None or follows[1] in _CONNECTIVES:
            return False
        return letter[group].islower() or letter[group] in "AI"

    def alone(self, line: str) -> str | None:
        """The letters of a line that has nothing else, or begins with a label such as `B)`."""
        if found := self._alone.fullmatch(line):
            return found[1].upper()
        if (several := self.leading(line)) and not re.search(
            r"[A-Za-z]{2,}", re.sub(r"\b(?:and|or|either|both)\b", "", line)
        ):
            return several
        label = self._labelled.match(line)
        return label[1] if label else None

    def listed(self, lines: list[str]) -> str | None:
        """The labels of a list of options at the end of a reply, joined: copying them all is not a choice."""
        labels: list[str] = []
        for line in reversed(lines):
            if (label := self._labelled.match(line)) is None:
                break
            labels.append(label[1])
        return ", ".join(sorted(set(labels))) if len(set(labels)) > 1 else None

    def opening(self, lines: list[str]) -> str | None:
        """The label that a reply begins with, if an explanation that has no other follows."""
        label = self._labelled.match(lines[0])
        others = [found for line in lines[1:] if (found := self._labelled.match(line))]
        return label[1] if label and not others else None

    def last(self, text: str) -> str | None:
        """The last letters of the last sentence that has any: marked ones before bare ones."""
        for sentence in reversed(_SENTENCE.split(text)):
            marked = [next(filter(None, found.groups())) for found in self._marked.finditer(sentence)]
            bare = [found[1] for found in self._bare.finditer(sentence) if not self._is_word(found, sentence)]
            if marked or bare:
                return self._hedged(sentence, marked or bare)
        return None

    def _hedged(self, sentence: str, letters: list[str]) -> str:
        """Several letters in one sentence are all chosen if they are listed or joined by `or`."""
        one = f"[{''.join(set(letters))}]"
        joined = re.search(
            rf"{one}(?:(?=\W*?[,;/])\W++|\W*+\b(?:or|and)\b\W*+)(?:(?:option|choice)\s\W*+)?{one}", sentence
        )
        return ", ".join(sorted(set(letters))) if joined and len(set(letters)) > 1 else letters[-1]


def _same_shape(one: re.Match[str], other: re.Match[str]) -> bool:
    """`(A) (B)` and `A B` are lists; `D) A and B` is the label of an option and its text."""
    shapes = [found[0].strip().replace(found[found.lastindex or 0], "?") for found in (one, other)]
    return shapes[0] == shapes[1] and one[one.lastindex or 0].isupper() and other[other.lastindex or 0].isupper()


def _marked(text: str, pattern: _Letters) -> list[MarkedAnswer]:
    chosen = [MarkedAnswer(found.start(), found[1].upper(), "line") for found in pattern.chosen.finditer(text)]
    verbs = [
        MarkedAnswer(found.start(), _rest_of_line(text, found.end()), "phrase")
        for found in (*_CHOICE.finditer(text), *(one for one in retractions(text) if one["word"].lower() != "or"))
    ]
    return sorted((*marked_answers(text), *chosen, *verbs), key=lambda marked: marked.start)


def _rest_of_line(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]


def _chosen(marked: MarkedAnswer, pattern: _Letters, choices: Sequence[str]) -> str | None:
    said = marked.text.strip().removeprefix("$").removeprefix("\\(")
    if _ALL.match(said) and not choices:
        return None
    inner = _TEXT_COMMAND.fullmatch(said.strip())
    return _quoted(inner[1] if inner else marked.text, choices) or pattern.leading(said)


def _quoted(said: str, choices: Sequence[str]) -> str | None:
    """The letter of the option that is quoted in full: exactly, with its label, or as the only one like it."""
    options = {ascii_uppercase[at]: choice.strip(_MARKS) for at, choice in enumerate(choices[:26])}
    said = said.strip(_MARKS)
    text, label = normal_text(said), _LABEL.match(said)
    if not text or text.upper() in options:
        return None
    if label and label[1].upper() in options and (rest := normal_text(said[label.end() :])):
        letters = [letter for letter, option in options.items() if normal_text(option) == rest]
        if letters:  # `C) Mars` is C if that is what it says, and two letters if Mars is another option
            return (
                label[1].upper() if label[1].upper() in letters else ", ".join(sorted({label[1].upper(), letters[0]}))
            )
    exact = [letter for letter, option in options.items() if option == said]
    alike = [letter for letter, option in options.items() if normal_text(option) == text]
    return next((same[0] for same in (exact, alike) if len(same) == 1), None)


def _letters_of(gold: str, choices: Sequence[str]) -> set[str]:
    """`B`, `(B)`, `A, C`, `AC`, or an option in full."""
    plain = re.sub(r"\\text|[^A-Za-z]", "", gold)
    is_letters = bool(
        re.fullmatch(r"[\W_]*(?:\\text)?[\W_]*[A-Z](?:[\s,;&]*(?:and)?[\s,;&]*[A-Z])*[\W_]*", gold.strip())
    )
    if is_letters and (
        not choices or all(letter in ascii_uppercase[: len(choices)] for letter in plain.replace("and", ""))
    ):
        return set(plain.replace("and", ""))
    if re.fullmatch(r"\(?[a-z]\)?\.?", gold.strip()):
        return {plain.upper()}
    return set(_quoted(gold, choices) or "")
