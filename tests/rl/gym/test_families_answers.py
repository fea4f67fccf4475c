"""Gold answers are true: each is judged again from the text of its question, by other means than it was made."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, count, islice, permutations, product
from typing import TypeAlias

import pytest

from wfdsl_rl.gym.world.families import SPLITS, domain_of, draw, recognise
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.families.knowledge import ELEMENTS
from wfdsl_rl.gym.world.families.strings import WORDS

Oracle: TypeAlias = Callable[[Item], bool]
ORACLES: dict[str, Oracle] = {}


def oracle(form: str) -> Callable[[Oracle], Oracle]:
    def register(judge: Oracle) -> Oracle:
        ORACLES[form] = judge
        return judge

    return register


def whole(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


@oracle("arithmetic.expression")
def expression(item: Item) -> bool:
    found = re.search(r"[(\d][-+*/() \d]*", item.question)
    assert found is not None
    return bool(eval(re.sub(r"(\d+)", r"Fraction(\1)", found[0]), {"Fraction": Fraction}) == Fraction(item.gold))


@oracle("arithmetic.percent")
def percent(item: Item) -> bool:
    found = re.search(r"(\d+)(?:%| percent)", item.question)
    assert found is not None
    other = re.sub(r"\d+(?:%| percent)", "", item.question)
    return 100 * Fraction(item.gold) == int(found[1]) * whole(other)[0]


@oracle("arithmetic.story")
def story(item: Item) -> bool:
    groups, size, taken = whole(item.question)
    return len([0 for _ in range(groups) for _ in range(size)]) == int(item.gold) + taken


def sides(question: str) -> list[str]:
    """The sums in a question as Python, such as `2*x + 3*y`."""
    return [re.sub(r"(\d)([xy])", r"\1*\2", side) for side in re.findall(r"-?\d+[xy]?(?: [-+] \d+[xy]?)*", question)]


@oracle("algebra.linear")
@oracle("algebra.sides")
def equation(item: Item) -> bool:
    left, right = sides(item.question)
    return bool(eval(left, {"x": Fraction(item.gold)}) == eval(right, {"x": Fraction(item.gold)}))


@oracle("algebra.system")
def system(item: Item) -> bool:
    first, first_sum, second, second_sum = sides(item.question)
    x = Fraction(item.gold)
    at_zero, at_one = (eval(first, {"x": x, "y": Fraction(y)}) for y in (0, 1))
    y = (int(first_sum) - at_zero) / (at_one - at_zero)
    return bool(eval(second, {"x": x, "y": y}) == int(second_sum))


def is_size(things: Iterable[object], item: Item) -> bool:
    return sum(1 for _ in things) == int(item.gold)


@oracle("counting.committee")
def committee(item: Item) -> bool:
    chosen, size = sorted(whole(item.question)[:2])
    return is_size(combinations(range(size), chosen), item)


@oracle("counting.places")
def places(item: Item) -> bool:
    chosen, size = sorted(whole(item.question)[:2])
    return is_size(permutations(range(size), chosen), item)


@oracle("counting.letters")
def letters(item: Item) -> bool:
    found = re.search(r"letters (?:of the word|of|in) (\w+)|of the word (\w+)", item.question)
    assert found is not None
    return is_size(set(permutations(found[1] or found[2])), item)


@oracle("counting.codes")
def codes(item: Item) -> bool:
    length, signs = whole(item.question)
    return is_size(product(range(signs), repeat=length), item)


@oracle("counting.divisors")
def divisors(item: Item) -> bool:
    (number,) = whole(item.question)
    return is_size((d for d in range(1, number + 1) if number % d == 0), item)


SIZES = {
    "mm": 1e-3,
    "cm": 1e-2,
    "m": 1.0,
    "km": 1e3,
    "mg": 1e-6,
    "g": 1e-3,
    "kg": 1.0,
    "t": 1e3,
    "ml": 1e-3,
    "cl": 1e-2,
}
SIZES |= {"l": 1.0, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0, "days": 86400.0}
AMOUNT = re.compile(rf"(\d+(?:\.\d+)?) ({'|'.join(sorted(SIZES, key=len, reverse=True))})\b")


def amounts(text: str) -> list[float]:
    return [float(value) * SIZES[unit] for value, unit in AMOUNT.findall(text)]


def right_option(item: Item) -> str:
    return str(item.choices["ABCD".index(item.gold)])


@oracle("measures.same")
def same(item: Item) -> bool:
    target, *others = amounts(item.question)
    return [math.isclose(one, target) for one in others] == [letter == item.gold for letter in "ABCD"]


@oracle("measures.extreme")
def extreme(item: Item) -> bool:
    best = max if re.search("longest|heaviest|largest", item.question) else min
    return best(amounts(item.question)) == amounts(right_option(item))[0]


@oracle("numbers.prime")
def prime(item: Item) -> bool:
    return [option for option in item.choices if not any(int(option) % d == 0 for d in range(2, int(option)))] == [
        right_option(item)
    ]


def stem(item: Item) -> str:
    """A choice question without its options."""
    return re.split(r"[ \n]\(?A[).] ", item.question)[0]


@oracle("numbers.multiple")
def multiple(item: Item) -> bool:
    (divisor,) = whole(stem(item))
    return [option for option in item.choices if int(option) in range(0, 10**6, divisor)] == [right_option(item)]


@oracle("numbers.remainder")
def remainder(item: Item) -> bool:
    rest, divisor = whole(stem(item))
    if stem(item).startswith(("Divided", "Modulo")):
        rest, divisor = divisor, rest
    return [option for option in item.choices if int(option) in range(rest, 10**6, divisor)] == [right_option(item)]


@oracle("numbers.fraction")
def fraction(item: Item) -> bool:
    values = [int(top) / int(bottom) for top, bottom in (option.split("/") for option in item.choices)]
    best = max(values) if "largest" in item.question else min(values)
    return "ABCD"[values.index(best)] == item.gold


@oracle("strings.reverse")
def reverse(item: Item) -> bool:
    return "".join(reversed(item.gold)) in item.question


@oracle("strings.letter")
def letter(item: Item) -> bool:
    (place,) = whole(item.question)
    wordy = [word for word in re.findall(r"[a-z]+", item.question) if word in WORDS and word != "letter"]
    word: str = wordy[0] if wordy else "letter"
    return list(word)[place - 1] == item.gold


@oracle("strings.count")
def counted(item: Item) -> bool:
    found = re.search(r"(?:letters?|see) ([a-z])\b", item.question)
    listed = re.search(r"(?:: |words )((?:[a-z]{5,7} ?){2,4}?)(?=[.?]| have)", item.question)
    assert found is not None
    assert listed is not None
    return len([sign for sign in listed[1] if sign == found[1]]) == int(item.gold)


@oracle("strings.sort")
def put_in_order(item: Item) -> bool:
    ordered = item.gold.split(" ")
    listed = [" ".join(one) in item.question for one in permutations(ordered)]
    return any(listed) and all(one < other for one, other in combinations(ordered, 2))


@oracle("strings.shift")
def shifted(item: Item) -> bool:
    (places_on,) = whole(item.question)
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    back = str.maketrans(alphabet[places_on:] + alphabet[:places_on], alphabet)
    return re.search(rf"\b{item.gold.translate(back)}\b", item.question) is not None


def day_number(text: str) -> int:
    """The Julian day number of an ISO date (Fliegel and Van Flandern 1968)."""
    year, month, day = map(int, text.split("-"))
    a = (14 - month) // 12
    y, m = year + 4800 - a, month + 12 * a - 3
    return day + (153 * m + 2) // 5 + 365 * y + y // 4 - y // 100 + y // 400 - 32045


def dates(text: str) -> list[str]:
    return re.findall(r"\d{4}-\d\d-\d\d", text)


def days(item: Item) -> int:
    return whole(re.sub(r"\d{4}-\d\d-\d\d", "", item.question))[0]


@oracle("dates.weekday")
def weekday(item: Item) -> bool:
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    return names[day_number(dates(item.question)[0]) % 7] == item.gold


@oracle("dates.later")
def later(item: Item) -> bool:
    return day_number(item.gold) - day_number(dates(item.question)[0]) == days(item)


@oracle("dates.earlier")
def earlier(item: Item) -> bool:
    return day_number(dates(item.question)[0]) - day_number(item.gold) == days(item)


@oracle("dates.between")
def between(item: Item) -> bool:
    gaps = [day_number(one) - day_number(other) for one, other in permutations(dates(item.question), 2)]
    return max(gaps) == int(item.gold)


@oracle("units.convert")
def convert(item: Item) -> bool:
    asked = item.gold.split(" ")[1]
    return math.isclose(amounts(item.question)[0], amounts(item.gold)[0]) if asked in item.question else False


@oracle("units.sum")
def added(item: Item) -> bool:
    return math.isclose(sum(amounts(item.question)), amounts(item.gold)[0])


@oracle("units.clock")
def clock(item: Item) -> bool:
    first, first_minutes, second, second_minutes = whole(item.question)
    value, unit = item.gold.split(" ")
    return unit == "minutes" and len(range(first * 60 + first_minutes, second * 60 + second_minutes)) == int(value)


@oracle("sums.sum")
def sums(item: Item) -> bool:
    *_, taken = numbers = whole(item.question)
    return sum(numbers) - 2 * taken == int(item.gold)


@oracle("chain.chain")
def chain(item: Item) -> bool:
    signs = {"plus": "+", "minus": "-", "times": "*"}
    source = str(whole(re.sub(r"Part \d:", "", item.question))[0])
    for sign, number in re.findall(r"(plus|minus|times) (\d+)", item.question):
        source = f"({source}) {signs[sign]} {number}"
    return bool(eval(source) == int(item.gold) and item.parts[-1][0] == item.gold)


@oracle("basket.basket")
def basket(item: Item) -> bool:
    share, of, one, other, people, last = whole(re.sub(r"Part \d: 1 to|Part \d:", "", item.question))
    pairs = len(list(combinations(range(people), 2)))
    parts = [Fraction(share * of, 100), Fraction(one * other), Fraction(pairs), Fraction(sum(range(last + 1)))]
    return [Fraction(part[0]) for part in item.parts] == parts and sum(parts) == int(item.gold)


def right_choice(item: Item) -> str:
    return str(item.choices["ABCD".index(item.gold)])


@oracle("largest.largest")
def largest(item: Item) -> bool:
    return int(right_choice(item)) == max(map(int, item.choices))


@oracle("decoy.distance")
def decoy(item: Item) -> bool:
    speed = re.search(r"speed (\d+)", item.question, re.IGNORECASE)
    hours = re.search(r"hours (\d+)|(\d+) hours", item.question, re.IGNORECASE)
    assert speed is not None
    assert hours is not None
    return int(speed[1]) * int(hours[1] or hours[2]) == int(right_choice(item))


@oracle("pair.pair")
def pair(item: Item) -> bool:
    products = [int(one) * int(other) for one, other in re.findall(r"(\d+) times (\d+)", item.question)]
    return abs(products[0] - products[1]) == int(right_choice(item)) and [int(p[0]) for p in item.parts] == products


@oracle("tally.tally")
def tally(item: Item) -> bool:
    before, words = item.question.split(":")
    letter = re.findall(r"\b[a-z]\b", before)[-1]  # after the article, if there is one
    return len([each for each in words if each == letter]) == int(item.gold)


def after(letters: list[str], moves: str) -> list[str]:
    for move in re.findall(r"turn|swap|left|right", moves):
        if move == "turn":
            letters.reverse()
        elif move == "swap":
            letters[0], letters[-1] = letters[-1], letters[0]
        else:
            at = 1 if move == "left" else -1
            letters = letters[at:] + letters[:at]
    return letters


def word_in(question: str) -> str:
    (word,) = set(WORDS) & set(re.findall(r"[a-z]+", re.sub("each letter", "", question)))
    return word


@oracle("long-run.run")
def long_run(item: Item) -> bool:
    word = word_in(item.question)
    return "".join(after(list(word), item.question.replace(word, ""))) == item.gold


@oracle("relay.relay")
def relay(item: Item) -> bool:
    word = word_in(item.question)
    first, places, last = (part.split(":")[1] for part in re.findall(r"Part \d: [^.]*", item.question))
    moved = after(list(word), first)
    shifted = [chr((ord(letter) - 97 + whole(places)[0]) % 26 + 97) for letter in moved]
    results = ["".join(letters) for letters in (moved, shifted, after(list(shifted), last))]
    return [part[0] for part in item.parts] == results and results[-1] == item.gold


@pytest.mark.parametrize(
    ("asked", "options", "gold"),
    [
        ("What is the capital of Australia?", "A) Canberra B) Ottawa C) Vienna D) London", "A"),
        ("{key} has which capital?", "A) Athens B) Ankara C) Cairo D) Riga", "B"),
        ("Of which country is Brasilia the capital?", "A) Peru B) Chile C) Brazil D) Cuba", "C"),
        ("What is the symbol of tungsten?", "A) Sn B) Ti C) Zn D) W", "D"),
        ("Which element has the symbol Pb?", "A) lead B) tin C) potassium D) boron", "A"),
        ("What is the atomic number of iron?", "A) 25 B) 26 C) 27 D) 56", "B"),
        ("Which element has 79 protons?", "A) silver B) platinum C) gold D) mercury", "C"),
        ("In which unit is pressure measured?", "A) newton B) joule C) watt D) pascal", "D"),
        ("The joule is the SI unit of", "A) energy B) power C) force D) mass", "A"),
        ("How many sides has any octagon?", "A) 7 B) 8 C) 9 D) 10", "B"),
        ("Which shape has 12 sides?", "A) decagon B) nonagon C) dodecagon D) hexagon", "C"),
        ("Which place from the Sun does Mars have?", "A) 1 B) 2 C) 3 D) 4", "D"),
        ("Counted from the Sun, which world is number 8?", "A) Neptune B) Saturn C) Earth D) Venus", "A"),
    ],
)
def test_well_known_facts_are_answered_right(asked: str, options: str, gold: str) -> None:
    item = recognise(f"{asked.format(key='Turkey')} {options}")

    assert item is not None
    assert (item.family, item.gold) == ("knowledge", gold)


@pytest.mark.parametrize(
    ("name", "number"),
    [("hydrogen", 1), ("neon", 10), ("calcium", 20), ("zinc", 30), ("krypton", 36), ("tin", 50), ("caesium", 55)],
)
def test_elements_stand_at_their_places(name: str, number: int) -> None:
    assert (name, number) in [(one, place) for one, _, place in ELEMENTS]


FORMS = sorted(ORACLES)


@pytest.mark.parametrize("form", FORMS)
def test_gold_answers_agree_with_an_oracle_that_reads_the_question(form: str) -> None:
    family = form.split(".", maxsplit=1)[0]
    sample = 25 if form.startswith("counting") else 150
    drawn = (
        draw(domain_of(family), 13, index, families=(family,), split=("train", "test")[index % 2]) for index in count()
    )

    found = list(islice((item for item in drawn if item.template.startswith(f"{form}.")), sample))

    assert [item for item in found if not ORACLES[form](item)] == []


def test_every_form_but_facts_and_code_has_an_oracle() -> None:
    forms = {name.rsplit(".", 2)[0] for names in SPLITS.values() for name in names}

    assert {form for form in forms if not re.match(r"knowledge|.*-code", form)} == set(FORMS)
