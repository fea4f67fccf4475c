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

from wfdsl.grading.in_words import in_signs
from wfdsl.grading.normal_forms import nested
from wfdsl.grading.text import USUAL, stems, words_of
from wfdsl.language.grammar import grammar_folder
from wfdsl.language.reasoning import after_reasoning

if TYPE_CHECKING:  # start-up time
    from lark import Lark, Token

AnswerKind: TypeAlias = Literal["math", "choice", "text"]
LONGEST_TAIL = 20_000
"""How many characters at the end of a reply are searched. Our choice: an answer further up is not a final one."""
LONGEST_SENTENCE = 600  # characters: our choice
_SENTENCES = 60  # that are read from the end: our choice
_MARKUP = re.compile(
    r"\*\*|__|`|(?<!\w)\*(?=[A-Za-z])|(?<=[A-Za-z])\*(?!\w)|<answer>\s*|\s*</answer>|^(?!####)[\s>#*•✅-]+(?<!-)(?=\S)|~~[^~\n]*~~|[「」『』]"
)
_TAGGED = re.compile(
    r"<answer>((?:(?!<answer>).)*?)</answer>|[\"'](?:final_)?answer[\"']\s*:\s*[\"']?((?:[^\"'\n{}]|\{[^{}]*\})+)",
    re.DOTALL,
)
_DOUBT = (
    r"|(?=\A\W*or\b|\b(?:might|maybe|perhaps|possibly|alternatively|could\s+also|(?:un|not\s+)sure)\b|可能|かもしれ)"
)
"""What takes back what stands before it, as a retraction does, but is a part of what follows."""
_CHECK = re.compile(
    r".*[✓✔]|\W*(?:if|had|note|理由|检验|验证|注意|ただし|もし|検算|なお"
    r"|(?:(?:as a|(?:you|we) can|let me|let us|let's|quick|to|double)[ -](?:double[ -])?)*(?:check|verif))",
    re.IGNORECASE,
)
"""What begins to explain or check the answer."""
_ARITHMETIC = re.compile(r"[\d\s.,+*×·÷()−-]*[+*×·÷][\d\s.,+*×·÷()−-]*")
_MOST_VALUES = 12  # of a sentence: each may be a comparison of expressions
_FIGURES = re.compile(r"\d+(?:[.,/]\d+)*")
_MOST_CLAIMED = 6  # different numbers, of which prose may claim any: our choice
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_LETTER = re.compile(r"[*\[((]{0,2}(?<![\w'’\\.])(?<!\w[-–])([A-Z])(?![\w'’]|[-–]\w)[*\]))]{0,2}(?:[.:)](?=\s|$))?")
_WORDLIKE = re.compile(r"[A-Z][.:)]?\s+(?!(?:is|was|or|and|are|because|since|as|must)\b|isn|wasn|wins)[a-z]")
_LETTERS = {chr(start + at): letter for at, letter in enumerate(ascii_uppercase) for start in (0xE000, 0xE100)}
_VALUES = frozenset({"MATH", "NUMERAL", "NOTHING"})
_DOUBTS = frozenset({"NEG", "HEDGE", "REFERENCE", "RETRACT", "ASK"})
_OPENING = frozenset({"SO", "BUT", "COMMA", "HEDGE"})
_FREE = frozenset({"FUNC", "HEAD", "PREP", "BE", "LABEL"})
_FIRST = {"SINCE": "PREP", "RETRACT": "WORD"}
"""What these are at the start of a sentence: a reason that comes first does not end it, and a `no` answers it."""
_MOST_TOKENS = 80
_END = re.compile(
    r"\n+|(?<=[。!?;])|(?<=[\w)\]}$%°²³'\"”*!?\ue100-\ue119][.!?;])[)\"'*]*\s+(?=\S)|(?<=\w);\s+"
    r"|,?\s+(?=(?:and\s+so|but\s+the)\b)|\s*(?:→|⇒|=>|⟹)\s*"
    r"|(?<=[a-z])(?<!answer)(?<!ans)(?<!result)(?<!solution)(?<!\bis):\s+(?=[-−+(√$\\\d]+[^A-Z]*$)"
    r"|,\s+(?=(?:so|thus|hence|therefore|then|but)\b(?!\s+(?:that|far|much|many)\b))|[,,](?=所以|因此|故)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\$\$.{0,600}?\$\$|\$[^$\n]{0,600}\$|\\\[.{0,600}?\\\]|\\\(.{0,600}?\\\)", re.DOTALL)
_BOX = re.compile(rf"\\f?box(?:ed)?\s*\{{(?:({nested('{', '}')})\}}|.*)", re.DOTALL)
"""A box and what is in it; nothing in one that is cut off."""
_DENIED = re.compile(r"(?:\bnot|n['’]t|≠|\\neq?)[\s$({]*\Z", re.IGNORECASE)  # before a box
_INITIAL = re.compile(
    r"(?:[::]|\A)[\s*(]*[A-Z]\.\Z"
    r"|(?:[::][\s*]*|[A-Z]\.\s?|(?!Option|Answer|Choice)[A-Z][a-z]+\s|\b(?:Sir|Dr|Mr|Mrs|Mt|St|Jan|Feb|Aug|Sept?|Oct|Nov|Dec|vs?)(?=\.))[A-Z]?\.\Z"
)
_FULL_WIDTH = {0xFEE0 + code: chr(code) + " " * (chr(code) in "!,;") for code in range(0x21, 0x7F)}
_FULL_WIDTH |= {ord("⟨"): "(", ord("⟩"): ")"}


class Statement(NamedTuple):
    """What a reply states as its answer."""

    text: str
    """The sentence, line or box."""
    values: tuple[str, ...]
    """The values in it, the final one first: expressions, letters joined by commas, or words."""
    is_claim: bool = False
    """Whether it is a clause of prose, which claims the answer without a word for it."""

    @property
    def value(self) -> str:
        """The final value."""
        return self.values[0] if self.values else ""


class Asked(NamedTuple):
    """What a statement may answer."""

    kind: AnswerKind
    question: str = ""
    choices: tuple[str, ...] = ()


def final_statement(text: str, asked: Asked) -> Statement | None:
    """The statement that counts, or None."""
    said = _TAGGED.sub(r"\\boxed{\1\2}", after_reasoning(text)[-LONGEST_TAIL:].translate(_FULL_WIDTH)).strip()
    if asked.kind == "choice":
        said = _with_options(said, asked.choices)
        if not re.search(r"\n\W{0,4}[A-J][.):]", said):
            said = re.sub(r"\A\W*([A-J])[\W_]*\s(?=[A-Z][a-z])", r"\1\n", said)  # `B. Plants need it.`
    sentences = list(_sentences_of(said))[-_SENTENCES:]
    retracted = ((at, found.end()) for at, one in enumerate(sentences) for found in _retraction().finditer(one))
    if last := max(retracted, default=None):
        sentences[: last[0] + 1] = [sentences[last[0]][last[1] :].lstrip(" ,.:;—–-")]
    stated = (_marked(one, asked) or _read(one, asked) for one in reversed(sentences))
    found = next(filter(None, stated), None)
    if found is None:
        found = _claimed_values(sentences, asked) if asked.kind == "math" else _claimed(sentences, asked)
    return found._replace(text=_shown(found.text, asked)) if found and found.value else None


def _shown(text: str, asked: Asked) -> str:
    """A text with the options for which characters of its own stand."""
    return re.sub(r" ?([\ue100-\ue119])", lambda found: asked.choices[ord(found[1]) - 0xE100], text)


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
    """What all boxes of a sentence state together; nothing where the last one does not count, or holds no option."""
    boxes = list(_BOX.finditer(sentence))
    if not boxes:
        return None
    values = [(box[1] or "").strip() for box in boxes]
    if not values[-1] or _DENIED.search(sentence[: boxes[-1].start()]):
        return Statement(sentence, ())
    value = ", ".join(dict.fromkeys(values))
    if asked.kind == "choice":
        return _read(f"Answer: {value}", asked) or Statement(sentence, ())
    return Statement(sentence, (value,))


def _read(sentence: str, asked: Asked) -> Statement | None:
    """What a sentence states: after a label, or in the clause that has a word for the answer before its verb."""
    plain, parts = _parts(sentence, asked)
    clauses = [clause for _, part in parts for clause in part]
    told = (
        _types(one) & {"LABEL", "LETTER"}
        or {"HEAD", "OPTION"} <= _types(one)
        or "HEAD" in _types(one[: max(_verb(one), 0)])
        for one in clauses
    )
    at = next((at for at, is_told in enumerate(told) if is_told), None)
    if at is None or _is_doubted(clauses[at]):
        return None
    if asked.kind == "choice":
        return _choice(sentence, clauses[at:])
    if asked.kind == "math":
        values = _values(clauses[at : at + 1], plain)
        return Statement(sentence, tuple(dict.fromkeys(values[:1] + values[-1:]))) if values else None
    return Statement(sentence, (plain[clauses[at][_verb(clauses[at])].end_pos :].strip(" ."),))


def _is_doubted(clause: list[Token]) -> bool:
    """Whether a clause denies, doubts or asks, or is cut off."""
    return bool(_types(clause) & _DOUBTS) or clause[-1].type in ("BE", "PREP")


def _types(tokens: list[Token]) -> set[str]:
    return {token.type for token in tokens}


def _verb(clause: list[Token]) -> int:
    """The place of the last verb or label of a clause; -1 without one."""
    return max((at for at, token in enumerate(clause) if token.type in ("BE", "LABEL")), default=-1)


def _choice(sentence: str, clauses: list[list[Token]]) -> Statement | None:
    """The letters that a clause states, by letter or by option, with those that are added; none if they differ."""
    is_told, at = bool(_types(clauses[0]) & {"LABEL", "HEAD"}), _verb(clauses[0]) + 1
    added = (one for one in clauses[1:] if one[0].type == "LETTER" or one[0].lower() in ("or", "option"))
    clause = list(chain(clauses[0], *added))
    letters, named = ({_LETTERS[token] for token in clause if token.type == kind} for kind in ("LETTER", "OPTION"))
    others = [token for token in clause if token.type not in (*_FREE, "LETTER")]
    if is_told and not letters:
        letters = named if len(named) == 1 else {one.value for one in others[:1] if re.fullmatch("[A-Z]", one)}
    is_letter_alone = not others or (at and _types(clause[at:][:1]) == {"LETTER"})
    if not letters or not (is_told or named or is_letter_alone):
        return None
    return Statement(sentence, () if named - letters else (", ".join(sorted(letters)),))


def _claimed(sentences: list[str], asked: Asked) -> Statement | None:
    """What prose affirms after its last `but` or `so`: all that may be a text, or the first option named alone.

    Where no option is named by all its own words, a part of them is enough. A text may stand before the `so` too.
    """
    parts: list[list[str]] = [[]]
    since = 0
    for sentence in sentences:
        plain, found = _parts(sentence, asked)
        for turn, clauses in found:
            since = len(parts) if turn == "BUT" else since
            affirmed = (one for one in clauses if not _types(one) & _DOUBTS)
            parts += [[]] * bool(turn)
            parts[-1] = parts[-1] + [plain[one[0].start_pos : one[-1].end_pos] for one in affirmed]
    if asked.kind == "choice":
        every = list(chain.from_iterable(reversed(parts)))
        named = (_options_in(clause, asked, least) for least in (1, 0.25) for clause in every)
        claims = [min(one) for one in named if len(one) == 1][:1]
    else:
        claims = ["\n".join(next(filter(None, reversed(parts)), [])), "\n".join(chain.from_iterable(parts[since:]))]
    return Statement(" ".join(sentences), tuple(filter(None, claims)), is_claim=True)


def _claimed_values(sentences: list[str], asked: Asked) -> Statement | None:
    """The values of what is in bold, of the last sentence that affirms one and is no check, and of an answer first.

    The answer may come first where no `so` derives it.
    """
    kept = [one for at, one in enumerate(sentences) if not (at and _CHECK.match(one))]
    bold = list(chain.from_iterable(map(_BOLD.findall, kept)))
    lead = [] if any(turn for one in kept for turn, _ in _parts(one, asked)[1]) else kept[:1]
    affirmed = ((_affirmed(one, asked) for one in reversed(some)) for some in (bold, kept, lead))
    values = tuple(dict.fromkeys(chain.from_iterable(next(filter(None, some), ()) for some in affirmed)))
    if len({*_FIGURES.findall(" ".join(values))}) > _MOST_CLAIMED:  # such as a list of all that may be right
        values = values[:1]
    return Statement(" ".join(sentences), values, is_claim=True) if values else None


def _affirmed(sentence: str, asked: Asked) -> tuple[str, ...]:
    """The values of the last part of a sentence that affirms one."""
    plain, parts = _parts(sentence, asked)
    valued = ([one for one in part if _types(one) & _VALUES and not _is_doubted(one)] for _, part in reversed(parts))
    return _values(next(filter(None, valued), []), plain)


def _values(clauses: list[list[Token]], text: str) -> tuple[str, ...]:
    """The values in clauses, each with the words that may be its unit, from the last one on; then all together."""
    found, every = [], []
    for clause in clauses:
        for at, token in enumerate(clause):
            if token.type not in _VALUES or _ARITHMETIC.fullmatch(token):
                continue
            end = token.end_pos or 0
            for word in clause[at + 1 :]:
                gap = text[end - 1 : word.start_pos].strip()
                is_apart = len(gap) > 1 or (re.match("[a-zA-Z]", gap) and not word.isascii())  # `1.2 km 進む`
                if is_apart or (word.type != "WORD" and word != "per"):
                    break
                end = word.end_pos or end
            every.append(token.value)
            value = text[token.start_pos : end]
            found += [value.rpartition("=")[2], value]
    found = [", ".join(every)] * (len(every) > 1) + found
    return tuple(dict.fromkeys(one.strip("=≈ ,，、") for one in reversed(found)))[:_MOST_VALUES]


def _options_in(clause: str, asked: Asked, least: float = 1) -> set[str]:
    """The letters of the options that a clause has in full, or at least this share of their own words."""
    if named := {_LETTERS[sign] for sign in re.findall(r"[\ue100-\ue119]", clause)}:
        return named
    said = stems(clause)
    found = [(letter, words) for letter, words in _distinct(asked) if len(words & said) >= least * len(words)]
    return {letter for letter, words in found if not any(words < others for _, others in found)}


@lru_cache(maxsize=64)
def _distinct(asked: Asked) -> list[tuple[str, frozenset[str]]]:
    """The letter of each option, and its words that the question and all other options do not have, or all of them."""
    options = [stems(option) for option in asked.choices]
    known = stems(" ".join(words_of(asked.question))) | USUAL.union(frozenset.intersection(*options) if options else ())
    return [(letter, (one - known) or one) for letter, one in zip(ascii_uppercase, options, strict=False) if one]


def _with_options(text: str, choices: tuple[str, ...]) -> str:
    """A text whose options in full are single private characters, so that nothing in them is read."""
    text = normalize("NFKC", text).replace("−", "-")
    for letter, option in sorted(enumerate(choices[:26]), key=lambda one: -len(one[1])):
        parts = re.findall(r"[^\W_]+|[^\w\s$\\{}*`\"“”]", normalize("NFKC", option).replace("−", "-").strip(" .。"))
        if parts:
            form = r"[\s$\\{}_*`\"“”]*".join(map(re.escape, parts))
            edges = r"(?<![a-zA-Z\d.,/^*+-])", r"(?![a-zA-Z\d/^*+-]|[.,]\d|\s?[%°])"
            text = re.sub(f"{edges[0]}{form}{edges[1]}", f" {chr(0xE100 + letter)}", text, flags=re.IGNORECASE)
    return text


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
def _parts(sentence: str, asked: Asked) -> tuple[str, list[tuple[str, list[list[Token]]]]]:
    """A sentence in plain signs, and its clauses, by the parts that a `but` or `so` begins.

    Explanations and brackets are left out.
    """
    plain, tokens = _tokens(sentence, asked)
    parser = _grammar().parse_interactive("", start="sentence")
    for token in tokens:
        parser.feed_token(token)
    tree: Any = parser.feed_eof()  # type: ignore[no-untyped-call]
    turns = ["", *(turn.children[0].type for turn in tree.children[1::2])]
    parts = [[one.children for one in part.children if one.data == "clause"] for part in tree.children[::2]]
    words = [[[token for token in clause if hasattr(token, "type")] for clause in part] for part in parts]
    return plain, list(zip(turns, (list(filter(None, part)) for part in words), strict=True))


def _tokens(sentence: str, asked: Asked) -> tuple[str, list[Token]]:
    """A sentence in plain signs, and its tokens; none of one that is too long to state something."""
    plain = _MARKUP.sub("", sentence).strip()
    if asked.kind == "math":
        plain = in_signs(plain).rstrip("!. 。")
    if asked.kind == "choice":
        plain = _with_letters(plain, len(asked.choices) or 10)
    tokens: list[Token] = []
    for token in _grammar(None).lex(plain) if len(plain) <= LONGEST_SENTENCE else ():
        kind = _FIRST.get(token.type, token.type) if _types(tokens) <= _OPENING else token.type
        tokens.append(token.update(type=kind))
    return plain, tokens if len(tokens) <= _MOST_TOKENS else []


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
