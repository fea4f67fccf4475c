"""The statement in which a reply gives its final answer, by `answers.lark`; None where nothing is stated.

A box, a labelled line (`Answer: 5`, `#### 5`) and a clause about the answer state it; the last one counts. Without one,
what the prose affirms may claim it: the last value, the only option, or a text. What is retracted, denied, hedged or
cut off is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from wfdsl.grading.normal_forms import in_signs, nested
from wfdsl.grading.text import USUAL, mention, names, states, stems, words_of
from wfdsl.language.grammar import grammar_folder
from wfdsl.language.reasoning import after_reasoning

if TYPE_CHECKING:  # start-up time
    from lark import Lark, Token

AnswerKind: TypeAlias = Literal["math", "choice", "text"]
LONGEST_TAIL = 20_000
"""How many characters at the end of a reply are searched. Our choice: an answer further up is not a final one."""
LONGEST_SENTENCE = 600  # characters: our choice
_SENTENCES = 60  # that are read from the end: our choice
_MARKUP = re.compile(r"\*\*|__|`|<answer>\s*|\s*</answer>|^(?!####)[\s>#*•✅-]+(?<!-)(?=\S)|~~[^~\n]*~~")
_TAGGED = re.compile(
    r"<answer>((?:(?!<answer>).)*?)</answer>|[\"'](?:final_)?answer[\"']\s*:\s*[\"']?((?:[^\"'\n{}]|\{[^{}]*\})+)",
    re.DOTALL,
)
_DOUBT = (
    r"|(?=\A\W*or\b|\b(?:might|maybe|perhaps|possibly|alternatively|could\s+also|(?:un|not\s+)sure)\b|可能|かもしれ)"
)
"""What takes back what stands before it, as a retraction does, but is a part of what follows."""
_ASIDE = re.compile(
    r"\W*(?:for those|funny|you can see|(?:that['’]s )?because|if|had|check|verif|as a (?:check|bonus)|note\b"
    r"|理由|检验|验证|注意|ただし|もし|検算|なお)",
    re.IGNORECASE,
)
"""What begins to explain or check the answer."""
_LETTER = re.compile(r"[*\[((]{0,2}(?<![\w'’\\.])([A-Z])(?![\w'’])[*\]))]{0,2}(?:[.:)](?=\s|$))?")
_WORDLIKE = re.compile(r"[A-Z][.:)]?\s+(?!(?:is|was|or|and|are|because|since|as|must)\b|isn|wasn|wins)[a-z]")
_LETTERS = {chr(0xE000 + at): letter for at, letter in enumerate(ascii_uppercase)}
_VALUES = frozenset({"MATH", "NUMERAL", "NOTHING"})
_DOUBTS = frozenset({"NEG", "HEDGE", "REFERENCE", "RETRACT", "ASK"})
_BOUNDS = frozenset({"around", "about", "between", "over", "under", "nearly", "almost", "approximately", "roughly"})
_NOT = re.compile(r"\b(?:not|except|false|incorrect|never)\b|n['’]t\b|不|ない|ません|非", re.IGNORECASE)
_FREE = frozenset({"FUNC", "KNOWN", "HEAD", "PREP", "BE", "LABEL"})
_FIRST = {"SINCE": "PREP", "RETRACT": "WORD"}
"""What these are at the start of a sentence: a reason that comes first does not end it, and a `no` answers it."""
_MOST_TOKENS = 80
_OPTION = re.compile(r"(?:Answer\s*:\s*)?(?:\(?([A-Z])(?:\)|\.|:)\s+)?(.*)", re.IGNORECASE | re.DOTALL)
_END = re.compile(
    r"\n+|(?<=[。!?;])|(?<=[\w)\]}$%°²³'\"”*!?][.!?;])[)\"'*]*\s+(?=\S)|(?<=\w);\s+"
    r"|,?\s+(?=(?:and\s+so|but\s+the)\b)|\s*(?:→|⇒|=>|⟹)\s*"
    r"|(?<=[a-z])(?<!answer)(?<!ans)(?<!result)(?<!solution)(?<!\bis):\s+(?=[-−+(√$\\\d]+[^A-Z]*$)"
    r"|,\s+(?=(?:so|thus|hence|therefore|then|but)\b(?!\s+(?:that|far|much|many)\b))|[,,](?=所以|因此|故)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\$\$.{0,600}?\$\$|\$[^$\n]{0,600}\$|\\\[.{0,600}?\\\]|\\\(.{0,600}?\\\)", re.DOTALL)
_BOX = re.compile(rf"\\f?box(?:ed)?\s*\{{(?:({nested('{', '}')})\}}|.*)", re.DOTALL)
"""A box and what is in it; nothing in one that is cut off."""
_ADDED = re.compile(
    r"\}?\s{0,3}(?:[-+*/^]|\\(?:pi|times|cdot|sqrt|frac|pm)(?![a-z])|or\b\s*(?!\$?\\boxed)|%"
    r"|(?:is|was)(?:n['’]t|\s+(?:not|wrong|incorrect)))"
)
_DENIED = re.compile(r"(?:(?:\bnot|n['’]t|≠|\\neq?|≈)[\s$({]*|(?:[-+/]|(?<!\*)\*|\\times|\\cdot)\s*)$", re.IGNORECASE)
"""Before a box: what denies it, or makes it a part of the answer."""
_INITIAL = re.compile(
    r"(?:[::]|\A)[\s*(]*[A-Z]\.\Z|(?:[::][\s*]*|[A-Z]\.\s?|[A-Z][a-z]+\s|\b(?:Sir|Dr|Mr|Mrs|Mt|St)(?=\.))[A-Z]?\.\Z"
)
_FULL_WIDTH = {0xFEE0 + code: chr(code) + " " * (chr(code) in "!,;") for code in range(0x21, 0x7F)}


class Statement(NamedTuple):
    """What a reply states as its answer."""

    text: str
    """The sentence, line or box."""
    value: str
    """The value in it: an expression, letters joined by commas, or words; "" where what is marked as one is none."""
    is_claim: bool = False
    """Whether it is a clause of prose, which claims the answer without a word for it."""


class Asked(NamedTuple):
    """What a statement may answer."""

    kind: AnswerKind
    question: str = ""
    choices: tuple[str, ...] = ()


def final_statement(text: str, asked: Asked) -> Statement | None:
    """The statement that counts, or None."""
    said = _TAGGED.sub(r"\\boxed{\1\2}", after_reasoning(text)[-LONGEST_TAIL:].translate(_FULL_WIDTH)).strip()
    sentences = list(_sentences_of(said))[-_SENTENCES:]
    retracted = ((at, found.end()) for at, one in enumerate(sentences) for found in _retraction().finditer(one))
    if last := max(retracted, default=None):
        sentences[: last[0] + 1] = [sentences[last[0]][last[1] :].lstrip(" ,.:;—–-")]
    stated = (_marked(one, asked) or _read(one, asked) for one in reversed(sentences))
    if found := next(filter(None, stated), None):
        return found if found.value else None
    plain = [_MARKUP.sub("", one) for one in sentences]
    return _claimed_value(plain, asked) if asked.kind == "math" else _claimed(plain, asked)


def _sentences_of(text: str) -> Iterator[str]:
    """Sentences and lines. Mathematics and boxes stay whole."""
    whole, start = text, 0
    for form in (_BOX, _SPAN):
        whole = form.sub(lambda found: f"${'x' * (len(found[0]) - 2)}$", whole)
    for end, after in (*(found.span() for found in _END.finditer(whole)), (len(text), len(text))):
        if end == len(text) or not _INITIAL.search(text[max(start, end - 20) : end]):
            if sentence := text[start:end].strip():
                yield sentence
            start = after


def _marked(sentence: str, asked: Asked) -> Statement | None:
    """What all boxes of a sentence state together; "" where the last one does not count, or holds no option."""
    boxes = list(_BOX.finditer(sentence))
    if not boxes:
        return None
    values = [(box[1] or "").strip() for box in boxes]
    start, end = boxes[-1].span()
    if not values[-1] or _ADDED.match(sentence, end) or _DENIED.search(sentence[:start]):
        return Statement(sentence, "")
    value = ", ".join(dict.fromkeys(values))
    if asked.kind == "choice":
        return _read(f"Answer: {value}", asked) or Statement(sentence, "")
    return Statement(sentence, value)


def _read(sentence: str, asked: Asked) -> Statement | None:
    """What a sentence states: after a label, or in the clause that has a word for the answer before its verb."""
    plain = _MARKUP.sub("", sentence).strip()
    if asked.kind == "math":
        plain = in_signs(plain)
    if asked.kind == "choice":
        plain = re.sub(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}", r"\1", plain).replace("$", "")
        if letter := _exact_option(plain, asked):
            return Statement(sentence, letter)
        plain = _with_letters(plain, len(asked.choices) or 10)
    tokens = _tokens(plain, asked)
    clauses = list(chain.from_iterable(_parts(tokens)))
    is_doubted = _types(tokens) & {"HEDGE", "ASK", "RETRACT", "ARITHMETIC"}
    told = (_types(one) & {"LABEL", "LETTER"} or "HEAD" in _types(one[: max(_verb(one), 0)]) for one in clauses)
    at = next((at for at, is_told in enumerate(told) if is_told), None)
    if at is None or is_doubted or _is_doubted(clauses[at]):
        is_labelled = asked.kind == "text" and tokens and tokens[0].type == "LABEL"
        return Statement(sentence, plain[tokens[0].end_pos :].strip()) if is_labelled else None
    if asked.kind == "choice":
        return _choice(sentence, plain, clauses[at:], asked)
    if asked.kind == "math":
        value = _value(clauses[at], plain.rstrip("!"), asked)
        return Statement(sentence, value) if value else None
    return Statement(sentence, plain[clauses[at][_verb(clauses[at])].end_pos :].strip(" ."))


def _is_doubted(clause: list[Token]) -> bool:
    """Whether a clause denies, doubts or asks, or is cut off."""
    return bool(_types(clause) & _DOUBTS) or clause[-1].type in ("BE", "PREP")


def _types(tokens: list[Token]) -> set[str]:
    return {token.type for token in tokens}


def _verb(clause: list[Token]) -> int:
    """The place of the last verb or label of a clause; -1 without one."""
    return max((at for at, token in enumerate(clause) if token.type in ("BE", "LABEL")), default=-1)


def _choice(sentence: str, text: str, clauses: list[list[Token]], asked: Asked) -> Statement | None:
    """The letters that a clause states, with those that are added to it."""
    is_told = _types(clauses[0]) & {"LABEL", "HEAD"}
    added = (one for one in clauses[1:] if one[0].type == "LETTER" or one[0].lower() in ("or", "option"))
    clause = list(chain(clauses[0], *added))
    letters = sorted({_LETTERS[token] for token in clause if token.type == "LETTER"})
    plain = re.sub(r"[\ue000-\ue019]", " ", text[clause[0].start_pos : clause[-1].end_pos])
    options = _options_in(plain, asked)
    named = min(options) if len(options) == 1 else ""
    others = [token for token in clause if token.type not in (*_FREE, "LETTER", "NUMERAL")]
    if not letters:
        said = named or (others[0] if others and re.fullmatch("[A-Z]", others[0]) else "")  # the letter of no option
        return Statement(sentence, said) if said and is_told else None
    if named and named not in letters:
        return Statement(sentence, "")
    is_stated = is_told or named or not others or _types(clause[_verb(clause) + 1 :][:1]) == {"LETTER"}
    return Statement(sentence, ", ".join(letters)) if is_stated else None


def _claimed(sentences: list[str], asked: Asked) -> Statement | None:
    """The option or text that prose affirms, from the last `but` or `so` on after which something is named."""
    parts: list[list[str]] = [[]]
    denied: list[str] = []
    for sentence in sentences:
        for at, part in enumerate(_parts(_tokens(sentence, asked))):
            parts += [[]] * (at > 0)
            for clause in part:
                doubt = next((token for token in clause if token.type in _DOUBTS), None)
                is_affirmed = doubt is None or (doubt.lower() in _BOUNDS and doubt is not clause[0])  # up to a bound
                end = doubt.start_pos if doubt and is_affirmed else clause[-1].end_pos
                (parts[-1] if is_affirmed else denied).append(sentence[clause[0].start_pos : end])
    whole, known = " ".join(sentences), words_of(asked.question)
    if asked.kind == "choice":
        letter = _affirmed_option(parts, denied, asked)
        return Statement(whole, letter, is_claim=True) if letter else None
    start = next((at for at in range(len(parts) - 1, 0, -1) if any(names(one, known) for one in parts[at])), 0)
    claim = re.sub(r"\n(?=(?:better|also)\s+(?:known|called))", ", ", "\n".join(chain.from_iterable(parts[start:])))
    first = claim.split("\n", 1)[0]
    return Statement(whole, first if states(first, known) else claim, is_claim=True) if claim else None


def _affirmed_option(parts: list[list[str]], denied: list[str], asked: Asked) -> str:
    """The letter of the option that alone is named in the last part or in all of them, or is not denied, or is first.

    Where the question asks what is not so, what is denied is affirmed.
    """
    if denied and _NOT.search(asked.question.partition("\n")[0]):
        parts, denied = [denied], list(chain.from_iterable(parts))
    named = [[_options_in(claim, asked) for claim in part] for part in parts]
    united: list[set[str]] = [set().union(*one) for one in named]
    every = set().union(*united)
    out = {letter for claim in denied for letter in _options_in(claim, asked)}
    first = next(filter(None, chain.from_iterable(named)), every)
    return next((min(part) for part in (*reversed(united[1:]), every, every - out, first) if len(part) == 1), "")


def _claimed_value(sentences: list[str], asked: Asked) -> Statement | None:
    """The value of the last clause that has one, in the last sentence that has one and is no aside."""
    asides = [False, *(bool(_ASIDE.match(said)) for said in sentences[1:])]
    for at in range(len(sentences) - 1, -1, -1):
        is_headed = at and asides[at - 1] and " " not in sentences[at - 1]  # by `Check:`
        said = in_signs(sentences[at])
        tokens = [] if asides[at] or is_headed else _tokens(said.rstrip(" .。!"), asked)
        valued = [one for one in chain.from_iterable(_parts(tokens)) if _VALUES & _types(one)]
        while len(valued) > 1 and (valued[-1][0].lower() in _BOUNDS or "NEG" in _types(valued[-1])):
            valued.pop()  # `, roughly 8.6` and `, not 7`
        if valued:
            value = "" if _is_doubted(valued[-1]) else _value(valued[-1], said, asked, is_claim=True)
            return Statement(said, value, is_claim=True) if value else None
    return None


def _value(clause: list[Token], text: str, asked: Asked, *, is_claim: bool = False) -> str:
    """The only value after the last verb of a clause, or that the question does not have, with its unit.

    Where a clause only claims the answer, the last of several.
    """
    verb = _verb(clause)
    part = clause[verb + 1 :] if _types(clause[verb + 1 :]) & _VALUES else clause
    values = [at for at, token in enumerate(part) if token.type in _VALUES]
    new = [at for at in values if not re.search(rf"(?<!\d){re.escape(part[at])}(?!\d)", asked.question)] or values
    new = [at for at in new[1:] if part[at].startswith("=")][-1:] or new
    if len(new) != 1 and not (new and is_claim):
        return ""
    end = next((at for at in range(new[-1] + 1, len(part)) if part[at].type not in ("WORD", "KNOWN")), len(part))
    value = text[part[new[-1]].start_pos : part[end - 1].end_pos].lstrip("=≈ ").rstrip(",，、 ")
    return "" if re.fullmatch(r"[\d\s.,+*×·÷()−-]*[+*×·÷][\d\s.,+*×·÷()−-]*", value) else value


def _options_in(clause: str, asked: Asked) -> set[str]:
    """The letters of the options that a clause mentions: all their words, and no option with more of them."""
    said, signs = stems(clause), "" if clause.isascii() else clause
    found = {
        letter: words
        for letter, words in _distinct(asked)
        if all(word in said or ((signs or not word.isascii()) and mention(word, clause)) for word in words)
    }
    return {letter for letter, words in found.items() if not any(words < others for others in found.values())}


@lru_cache(maxsize=64)
def _distinct(asked: Asked) -> list[tuple[str, frozenset[str]]]:
    """The letter of each option, and its words that the question and all other options do not have, or all of them."""
    options = [stems(option) for option in asked.choices]
    known = stems(" ".join(words_of(asked.question))) | USUAL.union(frozenset.intersection(*options) if options else ())
    return [(letter, (one - known) or one) for letter, one in zip(ascii_uppercase, options, strict=False) if one]


def _exact_option(text: str, asked: Asked) -> str:
    """The letter of the option that a text is, with or without a label and the letter."""
    mark, said = _OPTION.findall(text[:LONGEST_SENTENCE])[0]
    letters = zip(ascii_uppercase, map(_spelled, asked.choices), strict=False)
    letter = next((letter for letter, one in letters if one == _spelled(said) != ""), "")
    return letter if mark.upper() in ("", letter) else ""


def _spelled(text: str) -> str:
    """The words and signs of an option: `x - 1` is `$x-1$`, and not `x + 1`."""
    return "".join(re.findall(r"[^\W_]|[-+*/^=<>%]", normalize("NFKC", text).replace("−", "-").casefold()))


def _with_letters(text: str, count: int) -> str:
    """A text whose letters of options are single private characters, so that no word is taken for one."""
    letters = ascii_uppercase[: min(count, 26)]
    text = re.sub(r"(?<=[::])\s*\(?([a-j])\)?\.?\s*$", lambda found: " " + found[1].upper(), text)

    def marked(found: re.Match[str]) -> str:
        is_word = found[0] in ("A", "I") and _WORDLIKE.match(text, found.start())
        return found[0] if found[1] not in letters or is_word else f" {chr(0xE000 + ord(found[1]) - 65)} "

    text = re.sub(r"(?<=[\u3000-\u9fff])(?=[A-Z](?![A-Za-z]))|(?<=(?<![A-Za-z])[A-Z])(?=[\u3000-\u9fff])", " ", text)
    return _LETTER.sub(marked, text)


@lru_cache(maxsize=64)
def _tokens(sentence: str, asked: Asked) -> list[Token]:
    """The tokens of a sentence; none of one that is too long to state something."""
    known = words_of(asked.question)
    tokens: list[Token] = []
    for token in _grammar(None).lex(sentence) if len(sentence) <= LONGEST_SENTENCE else ():
        kind = token.type if tokens else _FIRST.get(token.type, token.type)
        if kind in ("HEDGE", "ARITHMETIC") and any(token.lower() in option.lower() for option in asked.choices):
            kind = "WORD"
        if kind == "WORD" and token.lower().strip(".") in known:
            kind = "KNOWN"
        tokens.append(token.update(type=kind))
    return tokens if len(tokens) <= _MOST_TOKENS else []


def _parts(tokens: list[Token]) -> list[list[list[Token]]]:
    """The clauses of a sentence, by the parts that `but` and `so` make.

    Explanations and brackets are left out, and phrases that only say where or when: `at x = 3`.
    """
    parser = _grammar().parse_interactive("", start="sentence")
    for token in tokens:
        parser.feed_token(token)
    tree: Any = parser.feed_eof()  # type: ignore[no-untyped-call]
    parts = ([one for one in part.children if one.data == "clause"] for part in tree.find_data("part"))
    whole = ([[token for token in clause.children if hasattr(token, "type")] for clause in part] for part in parts)
    return [
        [
            one
            for one in part
            if one and (one[0].type != "PREP" or _verb(one) >= 0 or not one[0].start_pos or part == [one])
        ]
        for part in whole
    ]


@cache
def _retraction() -> re.Pattern[str]:
    terminal = next(terminal for terminal in _grammar().terminals if terminal.name == "RETRACT")
    return re.compile(terminal.pattern.to_regexp() + _DOUBT, re.IGNORECASE)


@cache
def _grammar(parser: Literal["lalr"] | None = "lalr") -> Lark:
    """The grammar with its parser, or, without one, as a lexer that is built once."""
    from lark import Lark  # noqa: PLC0415  (start-up time)

    source = (grammar_folder() / "answers.lark").read_text("utf-8")
    return Lark(source, start="sentence", parser=parser, lexer="basic", maybe_placeholders=False)
