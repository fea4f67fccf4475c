"""String questions: reversed words, letters by place, counts of letters, words in order, shifted letters."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from string import ascii_lowercase

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_texts

WORDS = (
    *("apple", "banana", "bread", "bridge", "butter", "candle", "castle", "cherry", "circle", "cloud"),
    *("coffee", "cotton", "desert", "dinner", "doctor", "dragon", "engine", "farmer", "finger", "flower"),
    *("forest", "garden", "ginger", "guitar", "hammer", "honey", "island", "jacket", "kitten", "ladder"),
    *("lemon", "letter", "market", "mirror", "monkey", "mother", "number", "orange", "pencil", "pepper"),
    *("picture", "pillow", "pocket", "rabbit", "river", "rocket", "school", "silver", "spider", "spring"),
    *("square", "summer", "teacher", "ticket", "tiger", "tomato", "tunnel", "valley", "violin", "window"),
)
"""Sixty words of five to seven letters."""

WORD = "[a-z]{2,12}"
"""What may stand for a word in a user's own question."""


_ARTICLE = "a"
"""A lenient grader may drop it, so it is never an answer."""


def _answer(gold: str, candidates: Iterable[str], load: float) -> Answer | None:
    wrong = other_texts(gold, candidates)
    return None if wrong is None or _ARTICLE in (gold, *wrong) else Answer(gold, wrong, load)


def _swapped(word: str, place: int) -> str:
    """The word with the letters at a place and after it exchanged."""
    return word[:place] + word[place + 1 : place + 2] + word[place : place + 1] + word[place + 2 :]


def _draw_words(rng: RandomStream) -> dict[str, str]:
    return {"words": " ".join(rng.sample(WORDS, rng.between(1, 2)))}


def _reverse(fields: Fields) -> Answer | None:
    word = fields["words"]
    gold = word[::-1]
    middle = len(word) // 2
    each = " ".join(part[::-1] for part in word.split(" "))
    lost = gold[:middle] + gold[middle + 1 :]
    slips = (each, _swapped(gold, middle - 1), lost, _swapped(gold, middle), gold[:-1], word)
    return _answer(gold, slips, len(word))


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


_PLACE = r"\d{1,2}(?:st|nd|rd|th)"


def _draw_letter(rng: RandomStream) -> dict[str, str]:
    word = rng.pick(WORDS)
    return {"word": word, "place": _ordinal(rng.between(2, len(word) - 1))}


def _letter(fields: Fields) -> Answer | None:
    word, number = fields["word"], int(fields["place"][:-2])
    if not 1 <= number <= len(word) or fields["place"] != _ordinal(number):
        return None
    gold = word[number - 1]
    by_nearness = sorted(range(len(word)), key=lambda at: (abs(at - number + 1), -at))
    others = [word[at] for at in by_nearness if word[at] != _ARTICLE]
    return _answer(gold, [*others, *"nes"], number + len(word) / 3)


def _draw_count(rng: RandomStream) -> dict[str, str]:
    words = rng.sample(WORDS, rng.between(2, 4))
    return {"letter": rng.pick("".join(words) + "aeionrst"), "words": " ".join(words)}


def _count(fields: Fields) -> Answer | None:
    words, letter = fields["words"], fields["letter"]
    gold = words.count(letter)
    misses = (gold - 1, gold + 1, gold + 2, gold - 2, gold + 3)
    return _answer(str(gold), [str(miss) for miss in misses if miss >= 0], len(words) / 3 + gold)


def _draw_sort(rng: RandomStream) -> dict[str, str]:
    first = rng.pick(WORDS)
    close = [word for word in WORDS if word[0] == first[0]]
    others = rng.sample(close, min(2, len(close))) + rng.sample(WORDS, 4)
    words = list(dict.fromkeys([first, *others]))[: rng.between(3, 5)]
    return {"words": " ".join(rng.shuffled(words))}


def _sort(fields: Fields) -> Answer | None:
    words = fields["words"].split(" ")
    if len(words) < 3 or len(set(words)) < len(words):
        return None
    ordered = sorted(words)
    close = sum(one[0] == other[0] for one, other in pairwise(ordered))
    by_first_letter = sorted(words, key=lambda word: word[0])
    slips = (
        by_first_letter,
        [ordered[1], ordered[0], *ordered[2:]],
        [*ordered[:-2], ordered[-1], ordered[-2]],
        sorted(words, key=len),
        ordered[::-1],
        [*ordered[1:], ordered[0]],
    )
    return _answer(" ".join(ordered), map(" ".join, slips), len(words) + 2 * close)


def _draw_shift(rng: RandomStream) -> dict[str, str]:
    return {"word": rng.pick(WORDS), "k": str(rng.between(2, 6))}


def _shift(fields: Fields) -> Answer | None:
    word, places = fields["word"], int(fields["k"])
    gold = _moved(word, places)
    almost = gold[:-1] + _moved(word[-1], places + 1)
    slips = (almost, _moved(word, -places), _moved(word, places + 1), _moved(word, places - 1), _swapped(gold, 1))
    return _answer(gold, slips, len(word) + 2 * places)


def _moved(word: str, places: int) -> str:
    return "".join(ascii_lowercase[(ascii_lowercase.index(letter) + places) % 26] for letter in word)


_SOME = f"{WORD}(?: {WORD}){{0,5}}"

FAMILY = Family(
    "strings",
    "text",
    "Words reversed, put in order or shifted, letters by place and by count; computed letter by letter.",
    (
        Form(
            "reverse",
            {"words": f"{WORD}(?: {WORD})?"},
            train=(
                "Write {words} backwards.",
                "What is {words} spelled backwards?",
                "Reverse the letters of {words}.",
                "Read {words} from right to left. What do you get?",
            ),
            test=("Turn the text {words} around.", "Spell {words} from the last letter to the first."),
            draw=_draw_words,
            answer=_reverse,
            scale=(9.39, 3.49),
        ),
        Form(
            "letter",
            {"word": WORD, "place": _PLACE},
            train=(
                "What is the {place} letter of {word}?",
                "Which letter of {word} is the {place}?",
                "Give the {place} letter of the word {word}.",
                "Spell {word}. Which letter comes {place}?",
            ),
            test=("Name the {place} letter in {word}.", "In the word {word}, what letter is in {place} place?"),
            draw=_draw_letter,
            answer=_letter,
            scale=(5.48, 1.15),
        ),
        Form(
            "count",
            {"letter": "[a-z]", "words": _SOME},
            train=(
                "How many times is the letter {letter} in: {words}?",
                "How often do you see {letter} in the words {words}?",
                "Find the number of letters {letter} in: {words}.",
                "Read the words {words}. How many letters {letter} are there?",
            ),
            test=("Count the letter {letter} in: {words}.", "The words {words} have how many letters {letter}?"),
            draw=_draw_count,
            answer=_count,
            scale=(8.48, 2.55),
        ),
        Form(
            "sort",
            {"words": _SOME},
            train=(
                "Put these words in order from a to z: {words}.",
                "Sort the words {words}.",
                "Write these words as in a dictionary: {words}.",
                "In which order are the words {words} in a dictionary?",
            ),
            test=("Order these words by their letters: {words}.", "A list must go from a to z. Its words are {words}."),
            draw=_draw_sort,
            answer=_sort,
            scale=(6.83, 1.70),
        ),
        Form(
            "shift",
            {"word": WORD, "k": r"[1-9]"},
            train=(
                "Move each letter of {word} {k} places on. What do you get?",
                "Shift the letters of {word} by {k}.",
                "In a code, each letter stands {k} places later. Write {word} in this code.",
                "What is {word} with each letter moved {k} places on, after z comes a?",
            ),
            test=(
                "Write {word} in a secret code that moves letters {k} on.",
                "Change each letter of {word} to the one {k} after it.",
            ),
            draw=_draw_shift,
            answer=_shift,
            scale=(13.90, 2.87),
        ),
    ),
)
