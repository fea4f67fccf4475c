"""The statement in which a reply gives its final answer, by `answers.lark`; None where nothing is stated.

A box, a labelled line (`Answer: 5`, `#### 5`) and a sentence about the answer are strong; a sentence that says a value
of what was asked, and a reply that is a value, are weak. The last strong one counts, else the last weak one. One that
is retracted, denied, hedged or cut off is none, and nothing else is: there is no last number to fall back on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from string import ascii_uppercase
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from wfdsl.grading.sentences import Statement, boxed, sentences_of
from wfdsl.grading.text import dates_in
from wfdsl.grading.words import CJK, STRUCTURE, bare, leftover, stems, words_of
from wfdsl.language.grammar import grammar_folder
from wfdsl.language.reasoning import after_reasoning

if TYPE_CHECKING:  # start-up time
    from lark import Lark, Token, Tree

AnswerKind: TypeAlias = Literal["math", "choice", "text"]
LONGEST_TAIL = 20_000
"""How many characters at the end of a reply are searched. Our choice: an answer further up is not a final one."""
LONGEST_SENTENCE = 600  # characters: our choice
_SENTENCES = 40  # that are read from the end: our choice
_MOST_READ = 120  # sentences of any kind: our choice
_STRONG = re.compile(
    r"boxed|answer|\bans\b|result|solution|option|choice|correct|####|答|正解|选|選|結果|结果|解", re.IGNORECASE
)
_MARKUP = re.compile(r"\*\*|__|`|<answer>\s*|\s*</answer>|^(?!####)[\s>#*•✅-]+(?<!-)(?=\S)|~~[^~\n]*~~")
_TAGGED = re.compile(
    r"<answer>(.*?)</answer>|[\"'](?:final_)?answer[\"']\s*:\s*[\"']?((?:[^\"'\n{}]|\{[^{}]*\})+)", re.DOTALL
)
_CONTRAST = re.compile(
    r"(?<=\w),?\s+(?:therefore|thus|hence|then),?\s+(?=(?:be|is|equals?)\b|[\d$])"
    r"|\bnot\s+[^,.;]{1,40}?,?\s+but(?:\s+rather)?\s+"
    r"|(?<=is)n['’]t\s+[^,.;]{1,40}?(?:[,;]\s+it(?:\s+is|['’]s)|\s+but)\s",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"\A\W*or\b|\b(?:might|maybe|perhaps|possibly|alternatively|could\s+also|unsure|not\s+sure)\b|可能|かもしれ",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[*\[((]{0,2}(?<![\w'’\\.])([A-Z])(?![\w'’])[*\]))]{0,2}(?:[.:)](?=\s|$))?")
_WORDLIKE = re.compile(
    r"[A-Z][.:)]?\s+(?!is\b|was\b|or\b|and\b|are\b|because\b|since\b|as\b|isn|wasn|wins|must\b)[a-z]"
)
_LETTERS = {0xE000 + at: letter for at, letter in enumerate(ascii_uppercase)}
_YES = re.compile(r"\W*(yes|no|true|false|是|否|はい|いいえ)\b\W*(?:$|[,.!;—–]|because\b)", re.IGNORECASE)
_FREE = frozenset({"FUNC", "KNOWN", "PREP", "HEAD"})
_MOST_TOKENS = 80
_OPTION = re.compile(r"(?:Answer\s*:\s*)?(?:\(?([A-Z])(?:\)|\.|:)\s+)?(.*)", re.IGNORECASE | re.DOTALL)
_SHORT = 4  # words
_WHEN = re.compile(r"\b(?:when|date|day)\b|什么时候|いつ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a statement may answer."""

    kind: AnswerKind
    question: str = ""
    choices: tuple[str, ...] = ()


def final_statement(
    text: str, kind: AnswerKind, *, question: str = "", choices: Sequence[str] = ()
) -> Statement | None:
    """The statement that counts, or None."""
    said = _tail(after_reasoning(text)).translate(_FULL_WIDTH).strip()
    asked = Asked(kind, question, tuple(choices))
    if kind == "choice" and (letter := _exact_option(said, asked)):
        return Statement(said, letter, "value")
    sentences = list(sentences_of(said))
    found = _stated(sentences, asked)
    if isinstance(found, str):
        return None
    if found is None or (kind == "text" and not found.is_strong):
        return _implied(said, sentences, asked) or found
    return found


def _stated(sentences: list[tuple[str, bool]], asked: Asked) -> Statement | str | None:
    """The last statement of the strongest kind; a text if what is marked as the answer is none, or is in doubt."""
    later: Statement | None = None
    is_blocked, doubted = False, False
    for number, (sentence, is_ended) in enumerate(reversed(sentences)):
        if number >= _MOST_READ or (number >= _SENTENCES and not _STRONG.search(sentence)):
            continue
        told, is_retraction = _after_retraction(sentence, asked)
        found = _marked(boxed(told), asked) if "box" in told else _read(told, asked)
        if isinstance(found, str):
            return found  # cut off, denied or none
        if found is not None and found.is_strong:
            return "doubted" if doubted else found
        if is_retraction:
            return found or later
        if found is not None and found.form == "value" and later is not None and found.value != later.value:
            return "several" if later.form == "value" and asked.kind == "choice" else later
        if found is not None and not is_ended and len(sentences) > 1 and found.form == "sentence" and not number:
            is_blocked = True  # cut off
        elif found is not None and not is_blocked and later is None and _may_stand(found, number, len(sentences)):
            later = found
        elif found is None and later is None:
            is_blocked |= not is_ended or _is_about_values(told, asked)
            doubted |= bool(_OTHER.search(told)) and bool(re.search(r"\d|\b[A-J]\b", told))
    return "doubted" if later is None and doubted else later


def _implied(said: str, sentences: list[tuple[str, bool]], asked: Asked) -> Statement | None:
    """What no statement says: the only option that a reply names, or the text that it begins with."""
    if not sentences or len(said) > LONGEST_SENTENCE:
        return None
    if asked.kind == "math":
        chain = _CHAIN.search(sentences[-1][0])
        is_said = chain and not _denies(said)
        return Statement(sentences[-1][0], chain[1], "value", is_strong=False) if chain and is_said else None
    if asked.kind == "choice":
        return _only_option(said, asked)
    first = _MARKUP.sub("", sentences[0][0])
    if len(sentences) == 1 and not _REMARK.search(first):
        return None
    lead = re.split(r"[,，。;；（(]|\.(?=\s|$)|\s[—–-]\s|です|だ。", first, maxsplit=1)[0].strip()
    tokens = _tokens(lead, asked) if lead else None
    if tokens is None or len(tokens) > 2 * _SHORT or any(token.type not in _PLAIN for token in tokens):
        return None
    if _OPENING.match(lead) or not any(token.type in ("WORD", "MATH", "NUMERAL") for token in tokens):
        return None
    return Statement(sentences[0][0], lead, "value", is_strong=False)


def _only_option(said: str, asked: Asked) -> Statement | None:
    """The option of which the reply has all words, where it has those of no other, and denies nothing."""
    said_words, options = stems(said), [stems(option) for option in asked.choices[:26]]
    if _denies(said) or not options:
        return None
    shared = frozenset.intersection(*options)  # of `Pacific Ocean` and `Indian Ocean`, what tells them apart
    wanted = [(option - shared) or option for option in options]
    named = [at for at, words in enumerate(wanted) if words and words <= said_words]
    longest = [at for at in named if not any(wanted[at] < wanted[other] for other in named)]
    if not named and len(said_words) <= _SHORT:
        longest = [at for at, words in enumerate(wanted) if words & said_words - shared]
    return Statement(said, ascii_uppercase[longest[0]], "value", is_strong=False) if len(longest) == 1 else None


def _denies(said: str) -> bool:
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    try:
        return any(token.type in ("NEG", "HEDGE", "RETRACT", "ASK") for token in _grammar(None).lex(said))
    except UnexpectedInput:
        return True


_CHAIN = re.compile(
    r"[\w)²³⁰-⁹}]\s*[=≡]\s*([^=≡,，、:：;；]{1,60}?)\s*(?:\(mod[^()]*\))?(?:です|である|となる)?\s*[。.]?$"
)
"""The last side of a chain of equations that ends a reply."""
_REMARK = re.compile(r",\s(?!(?:or|and|but|not)\b)[a-z]|[（(]|です。?.|—|，")
"""What may follow an answer in its sentence: `Orwell, whose real name was Blair`."""
_OPENING = re.compile(
    r"(?:let|sure|well|okay|ok|great|good|hmm|first|yes|no|step|here|hello|hi|this|that|these|i|we|you|they|it|my|"
    r"他|她|它|这|那|我们?|首先|これ|それ|まず)\b",
    re.IGNORECASE,
)
_PLAIN = frozenset({"WORD", "KNOWN", "FUNC", "MATH", "NUMERAL", "LETTER"})
_FULL_WIDTH = {0xFEE0 + code: chr(code) for code in range(0x21, 0x7F) if chr(code) not in "!,;"}


def _tail(text: str) -> str:
    cut = text[-LONGEST_TAIL:]
    return cut[cut.find("\n") + 1 :] if len(cut) < len(text) and "\n" in cut else cut


def _after_retraction(sentence: str, asked: Asked) -> tuple[str, bool]:
    """What comes after the last retraction in a sentence, and whether there is one."""
    if asked.kind == "text" and _YES.match(sentence) and _YES_ASKED.search(asked.question):
        return sentence, False
    *_, end = 0, *(found.end() for found in _retraction().finditer(sentence))
    return (sentence[end:].lstrip(" ,.:;—–-"), True) if end else (sentence, False)


@cache
def _retraction() -> re.Pattern[str]:
    return next(re.compile(t.pattern.to_regexp()) for t in _grammar().terminals if t.name == "RETRACT")


@cache
def _grammar(parser: Literal["lalr"] | None = "lalr") -> Lark:
    """The grammar with its parser, or, without one, as a lexer that is built once."""
    from lark import Lark  # noqa: PLC0415  (start-up time)

    source = (grammar_folder() / "answers.lark").read_text("utf-8")
    return Lark(source, start=["sentence", "no_statement"], parser=parser, lexer="basic", maybe_placeholders=False)


def _may_stand(found: Statement, number: int, count: int) -> bool:
    """A bare value counts as the last or the only sentence, or as a chain of equations."""
    return found.form != "value" or number == 0 or count == 1 or "=" in found.value


def _is_about_values(sentence: str, asked: Asked) -> bool:
    if asked.kind == "math":
        return bool(re.search(r"\d", sentence))
    return asked.kind == "text" or bool(re.search(r"\b[A-J]\b", sentence))


def _marked(found: Statement | str | None, asked: Asked) -> Statement | str | None:
    """A box or tag of a choice task holds letters or an option."""
    if asked.kind != "choice" or not isinstance(found, Statement):
        return found
    inner = re.sub(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}", r"\1", found.value)
    read = None if "\\neg" in inner else _read(f"Answer: {inner}", asked)
    return read if isinstance(read, Statement) else "no letter"


def _read(sentence: str, asked: Asked) -> Statement | str | None:
    if tagged := _TAGGED.search(sentence):
        return _marked(Statement(sentence, (tagged[1] or tagged[2]).strip(), "label"), asked)
    plain = _CONTRAST.sub(" ", _MARKUP.sub("", sentence)).strip()
    if not plain or len(plain) > LONGEST_SENTENCE:
        return None
    if (
        asked.kind == "text"
        and (yes := _YES.match(plain))
        and (_YES_ASKED.search(asked.question) or "because" in plain)
    ):
        return Statement(sentence, yes[1], "sentence") if not _OTHER.search(plain) else None
    if asked.kind == "choice" and (letter := _exact_option(plain, asked)):
        return Statement(sentence, letter, "value", is_strong=False)
    marked = _with_letters(plain, len(asked.choices) or 10) if asked.kind == "choice" else plain
    tokens = _tokens(marked, asked)
    if tokens is None:
        return None
    tree = _parsed(tokens)
    if tree is None:
        return _unread_text(sentence, tokens, marked) if asked.kind == "text" else None
    reading = _Reading(tree, marked, asked)
    found = {"math": reading.math, "choice": reading.choice, "text": reading.text}[asked.kind]()
    return Statement(sentence, *found) if found is not None else None


_YES_ASKED = re.compile(
    r"yes or no|true or false|\A\W*(?:is|are|was|were|do|does|did|can|has|have|will)\b", re.IGNORECASE
)


def _exact_option(text: str, asked: Asked) -> str | None:
    """The letter of the option that a text is, with or without a label and the letter."""
    found = _OPTION.fullmatch(text[:LONGEST_SENTENCE])
    assert found is not None  # all parts are optional
    said = found[2].strip(" .")
    letters = [ascii_uppercase[at] for at, option in enumerate(asked.choices[:26]) if bare(option) == bare(said) != ""]
    return letters[0] if letters and (found[1] or letters[0]).upper() == letters[0] else None


def _with_letters(text: str, count: int) -> str:
    """A text whose letters of options are single private characters, so that no word is taken for one."""
    letters = ascii_uppercase[: min(count, 26)]
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf)\{([^{}]*)\}", r"\1", text).replace("$", "")
    text = re.sub(r"(?<=[::])\s*\(?([a-j])\)?\.?\s*$", lambda found: " " + found[1].upper(), text)

    def marked(found: re.Match[str]) -> str:
        is_word = found[0] in ("A", "I") and _WORDLIKE.match(text, found.start())
        return found[0] if found[1] not in letters or is_word else f" {chr(0xE000 + ord(found[1]) - 65)} "

    text = re.sub(r"(?<=[\u3000-\u9fff])(?=[A-Z](?![A-Za-z]))|(?<=(?<![A-Za-z])[A-Z])(?=[\u3000-\u9fff])", " ", text)
    return _LETTER.sub(marked, text)


def _tokens(sentence: str, asked: Asked) -> list[Token] | None:
    known = words_of(asked.question)
    tokens: list[Token] = []
    for token in _grammar(None).lex(sentence):
        if token.type == "WORD" and 0xE000 <= ord(token[0]) <= 0xE019:
            token = token.update(type="LETTER")  # noqa: PLW2901
        elif token.type == "WORD" and str(token).lower().strip(".") in known:
            token = token.update(type="KNOWN")  # noqa: PLW2901
        elif token.type == "NUMERAL" and asked.kind == "choice":
            token = token.update(type="WORD")  # noqa: PLW2901
        tokens.append(token)
        if len(tokens) > _MOST_TOKENS:
            return None
    return tokens


def _parsed(tokens: list[Token]) -> Tree[Token] | None:
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    parser = _grammar().parse_interactive("", start="sentence")
    try:
        for token in tokens:
            parser.feed_token(token)
        tree = cast("Tree[Token]", parser.feed_eof())  # type: ignore[no-untyped-call]
    except UnexpectedInput:
        return None
    return tree


def _unread_text(sentence: str, tokens: list[Token], plain: str) -> Statement | None:
    """What is labelled, or short enough to be nothing but an answer, may be a text of any words."""
    if tokens and tokens[0].type == "LABEL":
        return Statement(sentence, plain[tokens[0].end_pos or 0 :].strip(), "label")
    return Statement(sentence, plain, "value", is_strong=False) if len(plain.split()) <= _SHORT else None


_Found: TypeAlias = "tuple[str, Literal['box', 'label', 'sentence', 'value'], bool]"


class _Reading:
    """A sentence that the grammar has."""

    def __init__(self, tree: Tree[Token], text: str, asked: Asked) -> None:
        self._text, self._asked = text, asked
        self._chunks = [_leaves(part) for part in tree.children if _name(part) == "chunk"]
        self._is_labelled = any(_name(part) == "LABEL" for part in tree.children)
        self._tail = next((_leaves(part) for part in tree.children if _name(part) == "tail"), [])
        self._is_headed = len(self._chunks) > 1 and any(t.type == "HEAD" for c in self._chunks[:-1] for t in c)

    def math(self) -> _Found | None:
        last, before = self._chunks[-1], self._chunks[:-1]
        value = self._value(last)
        if self._is_labelled or self._is_headed:
            return (value, "label" if self._is_labelled else "sentence", True) if value else None
        if before:
            if any(token.type in _VALUES for chunk in before[1:] for token in chunk):
                return None
            if value:
                return value, "sentence", False
            is_held = len(before) == 1 and all(token.type in _FREE for token in last)
            value = self._value(before[0]) if is_held else None
            return (value, "sentence", False) if value else None
        if last[0].type in _VALUES and value:
            return value, "value", False
        values = [token for token in last if token.type in _VALUES and str(token) not in self._asked.question]
        others = [token for token in last if token.type not in _VALUES]
        is_cjk = bool(CJK.search(self._text))
        if len(values) == 1 and (is_cjk or all(token.type in _FREE for token in others)):
            return self._value(last[last.index(values[0]) :]) or "", "sentence", False
        return None

    def _value(self, chunk: list[Token]) -> str | None:
        """The first value of a chunk with its unit; another value has to be after a preposition."""
        at = next((at for at, token in enumerate(chunk) if token.type in _VALUES), None)
        if at is None or any(not _leads(token) for token in chunk[:at]):
            return None
        end = at + 1
        while end < len(chunk) and chunk[end].type in ("WORD", "KNOWN"):
            end += 1
        rest = chunk[end:]
        if any(token.type in _VALUES for token in rest) and not any(token.type == "PREP" for token in rest[:1]):
            return None
        if other := self._other_value():
            return f"{self._text[chunk[at].start_pos : chunk[at].end_pos]} or {other}"
        value = self._text[chunk[at].start_pos : chunk[end - 1].end_pos]
        is_exclaimed = value.endswith("!") and value.count("!") == 1 and self._text.rstrip().endswith(value)
        value = value.rstrip("!") if is_exclaimed else value
        return value.lstrip("=≈ ").rstrip(",，、 ")

    def _other_value(self) -> str | None:
        """The value of a tail such as `, or 0.375`, `, 7` and ` (or 7)`."""
        if not self._tail or self._tail[0].type == "SINCE":
            return None
        said = [token for token in self._tail[1:] if str(token).lower() not in ("or", "alternatively")]
        is_named = self._tail[0].type == "COMMA" or said[:1] != self._tail[1:2]
        return str(said[0]) if said and said[0].type in _VALUES and is_named else None

    def choice(self) -> _Found | None:
        tokens = [token for chunk in self._chunks for token in chunk]
        letters = sorted({_LETTERS[ord(token[0])] for token in tokens if token.type == "LETTER"})
        is_told = self._is_labelled or any(token.type == "HEAD" for token in tokens)
        form: Literal["label", "sentence"] = "label" if self._is_labelled else "sentence"
        after = self._tail[1:3]
        if (
            letters
            and after[:1]
            and self._tail[0].type != "SINCE"
            and (after[0].type == "LETTER" or str(after[0]).lower() == "or")
        ):
            letters = sorted({*letters, *(_LETTERS[ord(token[0])] for token in after if token.type == "LETTER")})
        elif not letters and len(after) == 2 and after[1].type == "LETTER":  # ", option B"
            letters, is_told = [_LETTERS[ord(after[1][0])]], True
        if self._is_option_with_label(tokens):
            return _LETTERS[ord(tokens[0][0])], form, is_told
        words = self._option_words(tokens)
        named = self._option(words)
        if letters:
            if named is not None and named not in letters:
                return "", form, True
            if is_told:
                return ", ".join(letters), form, True
            rest = [token for token in tokens if token.type not in (*_FREE, "LETTER", "NUMERAL")]
            if named is not None or not rest or self._chunks[-1][0].type == "LETTER":
                is_bare = len(self._chunks) == 1 and tokens[0].type == "LETTER"
                return ", ".join(letters), "value" if is_bare else "sentence", False
            return None
        if named is not None:
            return named, form, self._is_labelled
        return None

    def _is_option_with_label(self, tokens: list[Token]) -> bool:
        """Whether this is an option as the question has it, whose text may name other letters."""
        if tokens[0].type != "LETTER":
            return False
        at = ord(tokens[0][0]) - 0xE000
        said = self._text[tokens[0].end_pos :].translate(_LETTERS)
        return at < len(self._asked.choices) and bare(said) == bare(self._asked.choices[at])

    def _option_words(self, tokens: list[Token]) -> list[str]:
        last = self._chunks[-1] if len(self._chunks) > 1 or self._is_labelled else tokens
        return [self._text[last[0].start_pos : last[-1].end_pos], self._text[tokens[0].start_pos : tokens[-1].end_pos]]

    def _option(self, words: list[str]) -> str | None:
        """The letter of the option that is said: as it is, or when the words of the question are left out."""
        known = words_of(self._asked.question) | STRUCTURE
        plain = [bare(re.sub(r"[\ue000-\ue019]", " ", said)) for said in words]
        for clean in plain:
            for at, option in enumerate(self._asked.choices):
                if clean.removeprefix("the ").removeprefix("a ") == bare(option):
                    return ascii_uppercase[at]
        for at, option in enumerate(self._asked.choices):
            wanted = [word for word in bare(option).split() if word not in known]
            if wanted and wanted == [word for word in plain[-1].split() if word not in known]:
                return ascii_uppercase[at]
            if CJK.search(option) and plain[0].removesuffix("です") == bare(option):
                return ascii_uppercase[at]
        return None

    def text(self) -> _Found | None:
        last, first = self._chunks[-1], self._chunks[0]
        is_or = [str(token) for token in self._tail[1:2]] == ["or"]
        is_whole = not self._tail or is_or or str(self._tail[0]) == ","
        stop = len(self._text.rstrip(" .!。")) if is_whole else last[-1].end_pos or 0
        if self._is_labelled:
            return self._text[last[0].start_pos : stop].strip(), "label", True
        if _WHEN.search(self._asked.question) and len(dates := dates_in(self._text)) == 1:
            return dates[0], "sentence", False
        if len(self._chunks) > 1:
            return self._said(first, last, stop)
        whole = self._text[first[0].start_pos : stop].strip()
        if len(first) <= _SHORT:
            return whole, "value", False
        left = leftover(whole, self._asked.question)
        if left and left != whole and len(left.split()) <= 2 * _SHORT:
            return left, "sentence", False
        return None

    def _said(self, first: list[Token], last: list[Token], stop: int) -> _Found | None:
        """What is said of a subject of at most one new word; else what the sentence has beyond the question."""
        said = self._text[last[0].start_pos : last[-1].end_pos]
        if self._is_headed:
            return said, "sentence", True
        if passive := re.match(r"\w+\s+by\s+(.+)", said):
            return passive[1], "sentence", False
        new = [token for token in first if token.type in ("WORD", "MATH")]
        if len(new) <= 1 and not all(token.type in _FREE for token in last):
            return said, "sentence", False
        left = leftover(self._text[first[0].start_pos : stop], self._asked.question)
        return (left, "sentence", False) if left else None


_VALUES = frozenset({"MATH", "NUMERAL", "NOTHING"})


def _name(part: Token | Tree[Token]) -> str:
    return str(getattr(part, "data", "") or getattr(part, "type", ""))


def _leaves(part: Token | Tree[Token]) -> list[Token]:
    return cast("list[Token]", part.children) if hasattr(part, "children") else []


def _leads(token: Token) -> bool:
    return token.type in ("FUNC", "KNOWN", "HEAD", "NUMERAL") or (token.type == "PREP" and str(token).lower() == "of")
