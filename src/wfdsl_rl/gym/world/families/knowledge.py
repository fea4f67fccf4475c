"""Knowledge questions with four options, and the tables of facts that they come from.

A relation is a one-to-one table with two forms, one for each direction. The distractors of a question are other values
of its table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from wfdsl_rl.gym.world.families import choice_options
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, jitter

ELEMENTS = (
    *(("hydrogen", "H", 1), ("helium", "He", 2), ("lithium", "Li", 3), ("beryllium", "Be", 4), ("boron", "B", 5)),
    *(("carbon", "C", 6), ("nitrogen", "N", 7), ("oxygen", "O", 8), ("fluorine", "F", 9), ("neon", "Ne", 10)),
    *(("sodium", "Na", 11), ("magnesium", "Mg", 12), ("aluminium", "Al", 13), ("silicon", "Si", 14)),
    *(("phosphorus", "P", 15), ("sulfur", "S", 16), ("chlorine", "Cl", 17), ("argon", "Ar", 18)),
    *(("potassium", "K", 19), ("calcium", "Ca", 20), ("scandium", "Sc", 21), ("titanium", "Ti", 22)),
    *(("vanadium", "V", 23), ("chromium", "Cr", 24), ("manganese", "Mn", 25), ("iron", "Fe", 26), ("cobalt", "Co", 27)),
    *(("nickel", "Ni", 28), ("copper", "Cu", 29), ("zinc", "Zn", 30), ("gallium", "Ga", 31), ("arsenic", "As", 33)),
    *(("selenium", "Se", 34), ("bromine", "Br", 35), ("krypton", "Kr", 36), ("silver", "Ag", 47), ("tin", "Sn", 50)),
    *(("antimony", "Sb", 51), ("iodine", "I", 53), ("xenon", "Xe", 54), ("caesium", "Cs", 55), ("barium", "Ba", 56)),
    *(("tungsten", "W", 74), ("platinum", "Pt", 78), ("gold", "Au", 79), ("mercury", "Hg", 80), ("lead", "Pb", 82)),
    *(("bismuth", "Bi", 83), ("radon", "Rn", 86), ("radium", "Ra", 88), ("thorium", "Th", 90), ("uranium", "U", 92)),
)
"""Name, symbol and atomic number of chemical elements (IUPAC)."""

CAPITALS = {
    "Albania": "Tirana",
    "Argentina": "Buenos Aires",
    "Armenia": "Yerevan",
    "Australia": "Canberra",
    "Austria": "Vienna",
    "Bangladesh": "Dhaka",
    "Belgium": "Brussels",
    "Brazil": "Brasilia",
    "Bulgaria": "Sofia",
    "Cambodia": "Phnom Penh",
    "Canada": "Ottawa",
    "Chile": "Santiago",
    "China": "Beijing",
    "Colombia": "Bogota",
    "Croatia": "Zagreb",
    "Cuba": "Havana",
    "Denmark": "Copenhagen",
    "Ecuador": "Quito",
    "Egypt": "Cairo",
    "Estonia": "Tallinn",
    "Ethiopia": "Addis Ababa",
    "Finland": "Helsinki",
    "France": "Paris",
    "Georgia": "Tbilisi",
    "Germany": "Berlin",
    "Ghana": "Accra",
    "Greece": "Athens",
    "Hungary": "Budapest",
    "Iceland": "Reykjavik",
    "India": "New Delhi",
    "Iran": "Tehran",
    "Iraq": "Baghdad",
    "Ireland": "Dublin",
    "Italy": "Rome",
    "Jamaica": "Kingston",
    "Japan": "Tokyo",
    "Jordan": "Amman",
    "Kenya": "Nairobi",
    "Latvia": "Riga",
    "Lebanon": "Beirut",
    "Lithuania": "Vilnius",
    "Malaysia": "Kuala Lumpur",
    "Mongolia": "Ulaanbaatar",
    "Morocco": "Rabat",
    "Nepal": "Kathmandu",
    "New Zealand": "Wellington",
    "Norway": "Oslo",
    "Pakistan": "Islamabad",
    "Peru": "Lima",
    "Poland": "Warsaw",
    "Portugal": "Lisbon",
    "Romania": "Bucharest",
    "Russia": "Moscow",
    "Senegal": "Dakar",
    "Serbia": "Belgrade",
    "Slovakia": "Bratislava",
    "Slovenia": "Ljubljana",
    "South Korea": "Seoul",
    "Spain": "Madrid",
    "Sweden": "Stockholm",
    "Thailand": "Bangkok",
    "Tunisia": "Tunis",
    "Turkey": "Ankara",
    "Ukraine": "Kyiv",
    "United Kingdom": "London",
    "Uruguay": "Montevideo",
    "Vietnam": "Hanoi",
    "Zambia": "Lusaka",
}
"""Countries whose capital is one undisputed city, in plain letters."""

QUANTITIES = {
    "force": "newton",
    "energy": "joule",
    "power": "watt",
    "pressure": "pascal",
    "frequency": "hertz",
    "electric current": "ampere",
    "voltage": "volt",
    "electric charge": "coulomb",
    "electric resistance": "ohm",
    "capacitance": "farad",
    "inductance": "henry",
    "magnetic flux": "weber",
    "temperature": "kelvin",
    "amount of substance": "mole",
    "luminous intensity": "candela",
    "illuminance": "lux",
    "length": "metre",
    "time": "second",
    "mass": "kilogram",
    "radioactivity": "becquerel",
}
"""Physical quantities and their units in the SI."""

POLYGONS = {
    "triangle": "3",
    "pentagon": "5",
    "hexagon": "6",
    "heptagon": "7",
    "octagon": "8",
    "nonagon": "9",
    "decagon": "10",
    "dodecagon": "12",
}
"""Polygons and their number of sides."""

SUN = {
    "Mercury": "1",
    "Venus": "2",
    "Earth": "3",
    "Mars": "4",
    "Jupiter": "5",
    "Saturn": "6",
    "Uranus": "7",
    "Neptune": "8",
}
"""The places of the planets, counted from the Sun."""


def _form(name: str, table: Mapping[str, str], *, train: tuple[str, ...], test: tuple[str, ...]) -> Form:
    """The form that gives a key of the table and asks for its value. How little known a fact is, its text fixes."""
    values = tuple(table.values())
    loads = {key: jitter(f"{key} {value}") for key, value in table.items()}

    def draw(rng: RandomStream) -> dict[str, str]:
        key = rng.pick(tuple(table))
        distractors = rng.sample([value for value in values if value != table[key]], 3)
        return {"key": key, "options": choice_options.written(rng, table[key], distractors)}

    def answer(fields: Fields) -> Answer | None:
        key = fields["key"]
        return choice_options.chosen(fields["options"], lambda option: option == table[key], load=loads[key])

    mean = sum(loads.values()) / len(loads)
    spread = (sum((load - mean) ** 2 for load in loads.values()) / len(loads)) ** 0.5
    patterns = {"key": "|".join(map(re.escape, table)), "options": choice_options.PATTERN}
    wordings = [tuple(f"{text}{{options}}" for text in texts) for texts in (train, test)]
    return Form(name, patterns, train=wordings[0], test=wordings[1], draw=draw, answer=answer, scale=(mean, spread))


def _turned(table: Mapping[str, str]) -> dict[str, str]:
    return {value: key for key, value in table.items()}


_SYMBOLS = {name: symbol for name, symbol, _ in ELEMENTS}
_ATOMIC_NUMBERS = {name: str(number) for name, _, number in ELEMENTS}

FAMILY = Family(
    "knowledge",
    "choice",
    "Capitals, chemical elements, SI units, polygons and the Sun's planets; looked up in bundled tables.",
    (
        _form(
            "capital",
            CAPITALS,
            train=(
                "What is the capital of {key}?",
                "Which city is the capital of {key}?",
                "The capital of {key} is",
                "{key} has which capital?",
            ),
            test=("Name the capital city of {key}.", "Which city does {key} have as its capital?"),
        ),
        _form(
            "country",
            _turned(CAPITALS),
            train=(
                "Of which country is {key} the capital?",
                "{key} is the capital of",
                "Which country has the capital {key}?",
                "The city {key} is the capital of which country?",
            ),
            test=("Name the country whose capital is {key}.", "To which country does the capital {key} belong?"),
        ),
        _form(
            "symbol",
            _SYMBOLS,
            train=(
                "What is the symbol of {key}?",
                "Which symbol stands for the element {key}?",
                "The chemical symbol of {key} is",
                "How is the element {key} written in short?",
            ),
            test=("Name the chemical symbol for {key}.", "In chemistry, {key} has the symbol"),
        ),
        _form(
            "element",
            _turned(_SYMBOLS),
            train=(
                "Which element has the symbol {key}?",
                "The symbol {key} stands for which element?",
                "What is the chemical element {key} called?",
                "In chemistry, {key} is short for",
            ),
            test=("Name the element with the symbol {key}.", "Which chemical element is written {key}?"),
        ),
        _form(
            "atomic-number",
            _ATOMIC_NUMBERS,
            train=(
                "What is the atomic number of {key}?",
                "Which atomic number does {key} have?",
                "How many protons does an atom of {key} have?",
                "The atomic number of {key} is",
            ),
            test=("Name the atomic number of {key}.", "At which place of the periodic table is {key}?"),
        ),
        _form(
            "atom",
            _turned(_ATOMIC_NUMBERS),
            train=(
                "Which element has the atomic number {key}?",
                "Which element has {key} protons?",
                "The atomic number {key} is that of",
                "What is element number {key} called?",
            ),
            test=("Name the element with atomic number {key}.", "Atoms of which element have {key} protons?"),
        ),
        _form(
            "unit",
            QUANTITIES,
            train=(
                "In which unit is {key} measured?",
                "What is the SI unit of {key}?",
                "The SI unit of {key} is the",
                "Which unit belongs to {key}?",
            ),
            test=("Name the SI unit for {key}.", "Values of {key} are given in the unit"),
        ),
        _form(
            "quantity",
            _turned(QUANTITIES),
            train=(
                "What is measured in the unit {key}?",
                "The {key} is the SI unit of",
                "Of what is the {key} a unit?",
                "To what does the unit {key} belong?",
            ),
            test=("Name what the unit {key} measures.", "Which values are given in the unit {key}?"),
        ),
        _form(
            "sides",
            POLYGONS,
            train=(
                "How many sides has any {key}?",
                "The number of sides of any {key} is",
                "How many corners does every {key} have?",
                "What is the number of corners of every {key}?",
            ),
            test=("Name the number of sides of any {key}.", "Every {key} is a shape with how many corners?"),
        ),
        _form(
            "polygon",
            _turned(POLYGONS),
            train=(
                "Which shape has {key} sides?",
                "What is a shape with {key} sides called?",
                "Which shape has {key} corners?",
                "A shape with {key} corners is called",
            ),
            test=("Name the shape with {key} sides.", "What do you call a shape with {key} corners?"),
        ),
        _form(
            "place",
            SUN,
            train=(
                "Which place from the Sun does {key} have?",
                "Counted from the Sun, which number does {key} have?",
                "What is the place of {key}, counted from the Sun?",
                "From the Sun, {key} is number",
            ),
            test=("Name the place of {key} in the row from the Sun.", "Going out from the Sun, {key} is number"),
        ),
        _form(
            "world",
            _turned(SUN),
            train=(
                "Which world is number {key} from the Sun?",
                "Counted from the Sun, which world is number {key}?",
                "What is world number {key} from the Sun called?",
                "Place {key} from the Sun belongs to",
            ),
            test=("Name world number {key} from the Sun.", "Going out from the Sun, which world is number {key}?"),
        ),
    ),
)
