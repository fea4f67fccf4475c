"""The statement in which a reply gives its final answer, by `answers.lark`; None where nothing is stated.

A box, a labelled line (`Answer: 5`, `#### 5`) and a sentence about the answer are strong; a sentence that says a value
of what was asked, and a reply that is a value, are weak. The last strong one counts, else the last weak one. One that
is retracted, denied, hedged or cut off is none, and nothing else is: there is no last number to fall back on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from unicodedata import normalize

from wfdsl.grading.claims import CJK, STRUCTURE, claim, mention, says, words_of
from wfdsl.grading.normal_forms import Group, Number, read
from wfdsl.grading.sentences import Statement, UnstatedError, boxed, sentences_of
from wfdsl.grading.text import normal_text
from wfdsl.language.grammar import grammar_folder
from wfdsl.language.reasoning import after_reasoning

if TYPE_CHECKING:  # start-up time
    from lark import Lark, Token

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
    r"<answer>((?:(?!<answer>).)*?)</answer>|[\"'](?:final_)?answer[\"']\s*:\s*[\"']?((?:[^\"'\n{}]|\{[^{}]*\})+)",
    re.DOTALL,
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
_LEADS = frozenset({"FUNC", "KNOWN", "HEAD"})
_FREE = _LEADS | {"PREP"}
_VALUES = frozenset({"MATH", "NUMERAL", "NOTHING"})
_MOST_TOKENS = 80
_ENDED = re.compile(r"[.!?。!?::)*$`}\]]$")
_OPTION = re.compile(r"(?:Answer\s*:\s*)?(?:\(?([A-Z])(?:\)|\.|:)\s+)?(.*)", re.IGNORECASE | re.DOTALL)


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
    said = after_reasoning(text)
    if len(said) > LONGEST_TAIL:
        said = said[-LONGEST_TAIL:].partition("\n")[2] or said[-LONGEST_TAIL:]
    said = said.translate(_FULL_WIDTH).strip()
    asked = Asked(kind, question, tuple(choices))
    if kind == "choice" and (letter := _exact_option(said, asked)):
        return Statement(said, letter, "value")
    sentences = list(sentences_of(said))
    retractions = ((at, found.end()) for at, one in enumerate(sentences) for found in _retraction().finditer(one))
    if last := max(retractions, default=None):
        sentences[: last[0] + 1] = [sentences[last[0]][last[1] :].lstrip(" ,.:;—–-")]
    try:
        return _stated(sentences, asked) or _claimed(sentences, asked)
    except UnstatedError:
        return None


def _stated(sentences: list[str], asked: Asked) -> Statement | None:
    """The last strong statement, else the last letter. Raises: UnstatedError: it does not count, or is in doubt."""
    weak: Statement | None = None
    doubted = False
    for number, sentence in enumerate(reversed(sentences[-_MOST_READ:])):
        if number >= _SENTENCES and not _STRONG.search(sentence):
            continue
        found = _marked(sentence, asked) or _read(sentence, asked)
        if found is not None and found.form == "stated":
            weak = None if doubted else found
            break
        if found is not None and weak is not None and found.value != weak.value:
            if found.form == weak.form == "value":
                raise UnstatedError
            return weak
        weak = weak or found
        doubted |= weak is None and bool(_OTHER.search(sentence)) and bool(re.search(r"\d|\b[A-J]\b", sentence))
    if doubted and weak is None:
        raise UnstatedError
    return weak


def _claimed(sentences: list[str], asked: Asked) -> Statement | None:
    """What no statement says: the value, the option or the text of the clause in which the answer has to be."""
    left = [_MARKUP.sub("", sentence) for sentence in sentences[-_SENTENCES:]]
    whole = " ".join(left)
    if not whole or _OTHER.search(whole):
        return None
    if asked.kind == "math":
        return _claimed_value(left, asked, is_ended=bool(_ENDED.search(sentences[-1])))
    if len(whole) > LONGEST_SENTENCE:
        return None
    clause = _undoubted(claim(left))
    if asked.kind == "text":
        return Statement(clause, clause, "claim") if clause else None
    value = _claimed_value(left, asked, is_ended=True) if _is_numeric(asked) else None
    named = [_numbered(value.value, asked)] if value else []
    named += [_named(clause, asked), *(_named(_undoubted(claim([sentence])), asked) for sentence in left)]
    letters = named[0] or "".join(sorted(set("".join(named)))) or _named(_undoubted(whole), asked, is_said=False)
    return Statement(whole, letters, "claim") if len(letters) == 1 else None


def _named(clause: str, asked: Asked, *, is_said: bool = True) -> str:
    """The letter of the only option that a clause mentions, and says."""
    there = [(letter, words) for letter, words in _distinct(asked) if mention(words, clause)]
    named = [one for one in there if not any(one[1] != words and mention(one[1], words) for _, words in there)]
    return named[0][0] if len(named) == 1 and (not is_said or says(named[0][1], clause)) else ""


def _is_numeric(asked: Asked) -> bool:
    return bool(asked.choices) and all(re.search(r"\d", option) for option in asked.choices)


def _numbered(value: str, asked: Asked) -> str:
    """The letters of the options that are this number, whatever units both have."""
    found = read(value)
    given = found.items[-1] if isinstance(found, Group) and found.form == "chain" else found
    if not isinstance(given, Number):
        return ""
    options = zip(ascii_uppercase, map(read, asked.choices), strict=False)
    return "".join(letter for letter, option in options if isinstance(option, Number) and option.value == given.value)


@lru_cache(maxsize=64)
def _distinct(asked: Asked) -> list[tuple[str, str]]:
    """The letter of each option, and its words that the question and all other options do not have, or all of them."""
    options = [frozenset(normal_text(option).split()) for option in asked.choices]
    known = words_of(asked.question) | STRUCTURE.union(frozenset.intersection(*options) if options else ())
    few = [" ".join(word for word in option.split() if normal_text(word) not in known) for option in asked.choices]
    words = [one if CJK.search(one) else own or one for own, one in zip(few, asked.choices, strict=True)]
    return list(zip(ascii_uppercase, words, strict=False))


_ASIDE = re.compile(
    r"\W*(?:for those|funny|you can see|(?:that['’]s )?because|if|had"
    r"|理由|检验|验证|注意|ただし|もし|検算|なお)",
    re.IGNORECASE,
)
"""What explains or checks the answer."""
_CHECK = re.compile(r"\W*(?:check|verif|as a (?:check|bonus)|note\b|检验|验证|注意|検算)", re.IGNORECASE)
_DOUBTS = frozenset({"NEG", "HEDGE", "REFERENCE", "RETRACT", "ASK"})
_BOUNDS = frozenset({"around", "about", "between", "over", "under", "nearly", "almost", "approximately", "roughly"})
_BREAKS = frozenset({"COMMA", "DASH", "SO", "BUT", "CLOSE"})
_AGAIN = re.compile(r"which|i\.e\.|that\s+is|namely|meaning|making|ので|から", re.IGNORECASE)
"""What says an answer once more, where other conjunctions explain it."""
_UNFINISHED = re.compile(r"[\d\s.,+*×·÷()−-]*[+*×·÷][\d\s.,+*×·÷()−-]*")


def _claimed_value(sentences: list[str], asked: Asked, *, is_ended: bool) -> Statement | None:
    """The value of the last clause that has one, in the last sentence that has one and is no aside."""
    asides = (at for at, said in enumerate(sentences) if at and _CHECK.match(said))
    sentences = sentences[: next(asides, len(sentences))]
    for number, said in enumerate(reversed(sentences)):
        if _ASIDE.match(said) or not (tokens := _tokens(said.rstrip(" .。!"), asked)):
            continue
        *clauses, last = _clauses(tokens)
        for clause in [last, *reversed(clauses)]:
            has_value = any(token.type in _VALUES for token in clause)
            if not has_value or (clauses and clause[0].type == "PREP" and not any(t.type == "BE" for t in clause)):
                continue
            is_cut = not is_ended and number == 0 and (clause is not last or last[-1].type in ("PREP", "BE"))
            if is_cut or any(token.type in _DOUBTS for token in clause):
                return None
            if value := _only_value(clause, said, asked):
                return Statement(said, value, "claim")
        if any(token.type in _VALUES for token in tokens):
            return None
    return None


def _clauses(tokens: list[Token]) -> list[list[Token]]:
    """The parts of a sentence without what stands in brackets, and without explanations."""
    clauses: list[list[Token]] = [[]]
    depth, is_aside = 0, False
    for token in tokens:
        depth = max(0, depth + (token.type == "OPEN") - (token.type == "CLOSE"))
        if token.type == "SINCE" and clauses != [[]]:
            is_aside = not _AGAIN.fullmatch(token)
        if token.type in _BREAKS or token.type == "SINCE":
            clauses.append([])
        elif depth == 0 and token.type != "OPEN" and not is_aside:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause] or [[]]


def _only_value(clause: list[Token], text: str, asked: Asked) -> str:
    """The only value after the last verb of a clause, or that the question does not have."""
    verb = max((at for at, token in enumerate(clause) if token.type == "BE"), default=-1)
    part = clause[verb + 1 :] if any(token.type in _VALUES for token in clause[verb + 1 :]) else clause
    values = [token for token in part if token.type in _VALUES]
    new = [one for one in values if not re.search(rf"(?<!\d){re.escape(one)}(?!\d)", asked.question)] or values
    new = [token for token in new if token.type == "MATH"] or new
    new = [token for token in new[1:] if token.startswith("=")][-1:] or new
    at = part.index(new[0])
    if any(token.type == "ARITHMETIC" for token in part):
        return ""
    if len(new) > 1 and not (verb >= 0 and part[part.index(new[1]) - 1].type == "PREP"):
        return ""
    value = text[new[0].start_pos : part[_unit_end(part, at) - 1].end_pos].lstrip("=≈ ")
    return "" if _UNFINISHED.fullmatch(value) else value


def _undoubted(clause: str) -> str:
    """A clause up to a bound such as `around 1600`; empty if it denies, doubts or asks."""
    for token in _grammar(None).lex(clause):
        if token.type in _DOUBTS:
            return clause[: token.start_pos] if token.lower() in _BOUNDS else ""
    return clause


_FULL_WIDTH = {0xFEE0 + code: chr(code) for code in range(0x21, 0x7F) if chr(code) not in "!,;"}


@cache
def _retraction() -> re.Pattern[str]:
    return next(re.compile(t.pattern.to_regexp()) for t in _grammar().terminals if t.name == "RETRACT")


@cache
def _grammar(parser: Literal["lalr"] | None = "lalr") -> Lark:
    """The grammar with its parser, or, without one, as a lexer that is built once."""
    from lark import Lark  # noqa: PLC0415  (start-up time)

    source = (grammar_folder() / "answers.lark").read_text("utf-8")
    return Lark(source, start=["sentence", "no_statement"], parser=parser, lexer="basic", maybe_placeholders=False)


def _marked(sentence: str, asked: Asked) -> Statement | None:
    """What a box or tag says; of a choice task, the letters or the option in it."""
    found = boxed(sentence)
    if found is None and (tagged := _TAGGED.search(sentence)):
        found = Statement(sentence, (tagged[1] or tagged[2]).strip(), "stated")
    if found is None or asked.kind != "choice":
        return found
    read = None if "\\neg" in found.value else _read(f"Answer: {found.value}", asked)
    if read is None:
        raise UnstatedError
    return read


def _read(sentence: str, asked: Asked) -> Statement | None:
    """What a sentence states that the grammar has in full."""
    plain = _MARKUP.sub("", sentence).strip()
    if asked.kind == "choice":
        plain = re.sub(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}", r"\1", plain).replace("$", "")
        if letter := _exact_option(plain, asked):
            return Statement(sentence, letter, "value")
        plain = _with_letters(plain, len(asked.choices) or 10)
    tokens = _tokens(plain, asked)
    if not (parts := _parts(tokens)):
        is_text = asked.kind == "text" and tokens and tokens[0].type == "LABEL"
        return Statement(sentence, plain[tokens[0].end_pos or 0 :].strip(), "stated") if is_text else None
    chunks = [tokens for name, tokens in parts if name == "chunk"]
    heads = chain.from_iterable(chunks if asked.kind == "choice" else chunks[:-1])
    is_told = any(token.type == "LABEL" for token in tokens) or any(token.type == "HEAD" for token in heads)
    if asked.kind == "choice":
        return _choice(sentence, plain, chunks, dict(parts).get("tail", []), asked, is_told=is_told)
    if not is_told:
        return None
    if asked.kind == "math":
        value = _first_value(chunks[-1], plain)
        return Statement(sentence, value, "stated") if value else None
    said = plain[chunks[-1][0].start_pos :].strip()
    said = said.removesuffix(".") if said.count(".") == 1 else said  # the end of the sentence, not of `Jr.`
    return Statement(sentence, said, "stated")


def _exact_option(text: str, asked: Asked) -> str | None:
    """The letter of the option that a text is, with or without a label and the letter."""
    found = _OPTION.fullmatch(text[:LONGEST_SENTENCE])
    assert found is not None  # all parts are optional
    said = _spelled(found[2].strip(" ."))
    options = zip(ascii_uppercase, asked.choices, strict=False)
    letters = [letter for letter, option in options if _spelled(option) == said != ""]
    return letters[0] if letters and (found[1] or letters[0]).upper() == letters[0] else None


@lru_cache(maxsize=256)
def _spelled(text: str) -> str:
    """The words and signs of an option, without hyphens: `x - 1` is `$x-1$`, and not `x + 1`."""
    text = re.sub(r"(?<=[^\W\d]{2})-(?=[^\W\d]{2})", "", normalize("NFKC", text).replace("−", "-"))
    return "".join(re.findall(r"[^\W_]|[-+*/^=<>%]", text.casefold()))


def _with_letters(text: str, count: int) -> str:
    """A text whose letters of options are single private characters, so that no word is taken for one."""
    letters = ascii_uppercase[: min(count, 26)]
    text = re.sub(r"(?<=[::])\s*\(?([a-j])\)?\.?\s*$", lambda found: " " + found[1].upper(), text)

    def marked(found: re.Match[str]) -> str:
        is_word = found[0] in ("A", "I") and _WORDLIKE.match(text, found.start())
        return found[0] if found[1] not in letters or is_word else f" {chr(0xE000 + ord(found[1]) - 65)} "

    text = re.sub(r"(?<=[\u3000-\u9fff])(?=[A-Z](?![A-Za-z]))|(?<=(?<![A-Za-z])[A-Z])(?=[\u3000-\u9fff])", " ", text)
    return _LETTER.sub(marked, text)


def _tokens(sentence: str, asked: Asked) -> list[Token]:
    """The tokens of a sentence; none of one that is too long to state something."""
    if len(sentence) > LONGEST_SENTENCE:
        return []
    known = words_of(asked.question)
    tokens: list[Token] = []
    for token in _grammar(None).lex(sentence):
        if token.type == "WORD" and 0xE000 <= ord(token[0]) <= 0xE019:
            token = token.update(type="LETTER")  # noqa: PLW2901
        elif token.type == "WORD" and str(token).lower().strip(".") in known:
            token = token.update(type="KNOWN")  # noqa: PLW2901
        elif token.type == "NUMERAL" and asked.kind == "choice" and not _is_numeric(asked):
            token = token.update(type="WORD")  # noqa: PLW2901
        tokens.append(token)
        if len(tokens) > _MOST_TOKENS:
            return []
    return tokens


def _parts(tokens: list[Token]) -> list[tuple[str, list[Token]]]:
    """The parts of a sentence, by their names in the grammar; none if it has no such sentence."""
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    parser = _grammar().parse_interactive("", start="sentence")
    try:
        for token in tokens:
            parser.feed_token(token)
        tree: Any = parser.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedInput:
        return []
    return [(part.data, part.children) for part in tree.children if hasattr(part, "data")]


def _first_value(chunk: list[Token], text: str) -> str:
    """The first value of a chunk with its unit; another value has to be after a preposition."""
    at = next((at for at, token in enumerate(chunk) if token.type in _VALUES), None)
    before = [token.type for token in chunk[:at] if token.lower() != "of"]
    if at is None or not _LEADS.issuperset(before):
        return ""
    end = _unit_end(chunk, at)
    rest = chunk[end:]
    if any(token.type in _VALUES for token in rest) and rest[0].type != "PREP":
        return ""
    value = text[chunk[at].start_pos : chunk[end - 1].end_pos]
    is_exclaimed = value.endswith("!") and value.count("!") == 1 and text.rstrip().endswith(value)
    return value.rstrip("!" if is_exclaimed else "").lstrip("=≈ ").rstrip(",，、 ")


def _unit_end(tokens: list[Token], at: int) -> int:
    """Where the words after a value end, its unit."""
    return next((end for end in range(at + 1, len(tokens)) if tokens[end].type not in ("WORD", "KNOWN")), len(tokens))


def _choice(
    sentence: str, text: str, chunks: list[list[Token]], tail: list[Token], asked: Asked, *, is_told: bool
) -> Statement | None:
    """The letters that a sentence states."""
    tokens = list(chain.from_iterable(chunks))
    after = tail[1:3] if tail and tail[0].type != "SINCE" else []
    if after and not (after[0].type == "LETTER" or str(after[0]).lower() in ("or", "option")):
        after = []
    letters = sorted({_LETTERS[ord(token[0])] for token in (*tokens, *after) if token.type == "LETTER"})
    plain = re.sub(r"[\ue000-\ue019]", " ", text[tokens[0].start_pos : tokens[-1].end_pos])
    named = _exact_option(plain, asked) or _named(plain, asked)
    if not letters:
        said = next((token for token in chunks[-1] if token.type not in _FREE), "")
        other = said if re.fullmatch("[A-Z]", said) else ""  # the letter of no option
        return Statement(sentence, named or other, "stated") if (named or other) and is_told else None
    if named and named not in letters:
        return Statement(sentence, "", "stated")
    rest = [token for token in tokens if token.type not in (*_FREE, "LETTER", "NUMERAL")]
    if not (is_told or named or not rest or chunks[-1][0].type == "LETTER"):
        return None
    is_bare = len(chunks) == 1 and tokens[0].type == "LETTER"
    return Statement(sentence, ", ".join(letters), "stated" if is_told else "value" if is_bare else "mention")
