"""Date questions: days of the week, dates some days later or earlier, days between dates (Gregorian, ISO dates)."""

from __future__ import annotations

from datetime import date, timedelta

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_texts

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DATE = r"\d{4}-\d\d-\d\d"
_FIRST, _LAST = date(1970, 1, 1).toordinal(), date(2049, 12, 31).toordinal()


def _read(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _draw_date(rng: RandomStream) -> dict[str, str]:
    return {"date": date.fromordinal(rng.between(_FIRST, _LAST)).isoformat()}


def _draw_shift(rng: RandomStream) -> dict[str, str]:
    return {"n": str(rng.between(3, rng.pick((20, 60, 200)))), **_draw_date(rng)}


def _draw_between(rng: RandomStream) -> dict[str, str]:
    first = rng.between(_FIRST, _LAST)
    second = first + rng.between(5, rng.pick((40, 120, 300)))
    return {"date": date.fromordinal(first).isoformat(), "end": date.fromordinal(second).isoformat()}


def _weekday(fields: Fields) -> Answer | None:
    day = _read(fields["date"])
    if day is None:
        return None
    at = day.weekday()
    wrong = tuple(_DAYS[(at + shift) % 7] for shift in (1, -1, 2, -2))
    return Answer(_DAYS[at], wrong, abs(day.year - 2024) + 8 * (day.month > 2))


def _later(fields: Fields) -> Answer | None:
    return _moved(fields, int(fields["n"]))


def _earlier(fields: Fields) -> Answer | None:
    return _moved(fields, -int(fields["n"]))


def _moved(fields: Fields, days: int) -> Answer | None:
    start = _read(fields["date"])
    if start is None or not 200 <= start.year <= 9800:
        return None
    end = start + timedelta(days=days)
    slips = [end + timedelta(days=slip) for slip in (1, -1, 2, -2)]
    wrong = other_texts(end.isoformat(), [*map(date.isoformat, slips), (start - timedelta(days=days)).isoformat()])
    months = abs((end.year - start.year) * 12 + end.month - start.month)
    return (
        None if wrong is None else Answer(end.isoformat(), wrong, min(months, 8) + abs(days) / 50 + (start.month == 2))
    )


def _between(fields: Fields) -> Answer | None:
    start, end = _read(fields["date"]), _read(fields["end"])
    if start is None or end is None or end <= start:
        return None
    gold = (end - start).days
    thirties = (end.year - start.year) * 360 + (end.month - start.month) * 30 + end.day - start.day
    slips = [gold + 1, gold - 1, thirties, gold + 2, gold - 2, gold + 10]
    wrong = other_texts(str(gold), [str(slip) for slip in slips if slip > 0])
    return None if wrong is None else Answer(str(gold), wrong, min(gold / 30, 20.0))


FAMILY = Family(
    "dates",
    "text",
    "Days of the week, dates some days later or earlier as ISO dates, days between dates; by the calendar.",
    (
        Form(
            "weekday",
            {"date": _DATE},
            train=(
                "What day of the week is {date}?",
                "On which day of the week does {date} fall?",
                "Give the day of the week of {date}.",
                "Is {date} a Monday, a Tuesday, or which other day?",
            ),
            test=(
                "Name the day of the week on {date}.",
                "A letter has the date {date}. Which day of the week is that?",
            ),
            draw=_draw_date,
            answer=_weekday,
            scale=(29.78, 15.62),
        ),
        Form(
            "later",
            {"date": _DATE, "n": r"\d{1,4}"},
            train=(
                "Which date is {n} days after {date}?",
                "What is the date {n} days later than {date}?",
                "Today is {date}. What is the date in {n} days?",
                "Add {n} days to {date}.",
            ),
            test=(
                "A trip starts on {date} and ends {n} days later. When?",
                "From {date}, go {n} days on. Which date is it?",
            ),
            draw=_draw_shift,
            answer=_later,
            scale=(2.69, 2.81),
        ),
        Form(
            "earlier",
            {"date": _DATE, "n": r"\d{1,4}"},
            train=(
                "Which date is {n} days before {date}?",
                "What is the date {n} days earlier than {date}?",
                "Today is {date}. What was the date {n} days ago?",
                "Take {n} days from {date}.",
            ),
            test=(
                "A trip ended on {date}, {n} days after its start. When was the start?",
                "From {date}, go {n} days back. Which date is it?",
            ),
            draw=_draw_shift,
            answer=_earlier,
            scale=(2.69, 2.81),
        ),
        Form(
            "between",
            {"date": _DATE, "end": _DATE},
            train=(
                "How many days are there from {date} to {end}?",
                "How many days is {end} after {date}?",
                "Today is {date}. In how many days is {end}?",
                "Find the number of days between {date} and {end}.",
            ),
            test=(
                "A trip goes from {date} to {end}. How many days later is the end?",
                "Count the days from {date} to {end}.",
            ),
            draw=_draw_between,
            answer=_between,
            scale=(2.63, 2.55),
        ),
    ),
)
