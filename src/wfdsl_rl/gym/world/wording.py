"""The sentences of simulated replies, each with its meaning.

Each sentence is on a line of its own and belongs to one meaning only, so that a reply can be read back. None of them
holds a digit, a single capital letter or anything else that a grader could take for an answer. Openings are a worker's
manner of speaking: workers know their own from it, as models do; no other component is told.
"""

from __future__ import annotations

from typing import Final

from wfdsl_rl.gym.world.profiles import Domain
from wfdsl_rl.gym.world.states import FAILS, MISLEADING, PASSES, SOUND, THIN

OPENINGS: Final[tuple[tuple[str, ...], ...]] = (
    ("Let's take this one step at a time.", "Here is a structured way through it.", "Breaking this down first."),
    ("I'll work through this carefully.", "Let me look at what is being asked.", "Looking at this closely:"),
    ("Short derivation below.", "Working it out directly.", "Result with the reasoning in brief."),
    ("Okay, so the question is what follows from this.", "Alright, thinking it through from the start.",
     "Hmm, let me think about this properly."),
    ("Sure, here goes!", "Great question, happy to help!", "Okay, here is my take on it!"),
    ("Thinking about it from several sides first.", "After some thought, this is where it leads.",
     "Having considered the alternatives, this is the way."),
    ("Straight to the point.", "This can be done right away.", "In short, as follows."),
)  # fmt: skip
"""For each agent; no two share one."""

WORKING: Final[dict[Domain, tuple[str, ...]]] = {
    "math": (
        "Write down what is given, put it into one relation and simplify.",
        "Each quantity follows from the ones before it; the last of them is what is asked for.",
        "Set the problem up, then carry out the operations in their proper order.",
    ),
    "choice": (
        "Going through the options, most of them can be ruled out.",
        "The options differ in one point, and that point decides.",
        "Recall what is known of this, then match it with the options.",
    ),
    "text": (
        "Follow the rule of the question from left to right and keep track of the result.",
        "Go through it part by part and put the parts together at the end.",
        "Take the starting point, apply what is asked, and write down what comes out.",
    ),
    "code": (
        "The program reads what it is given, handles each value in turn and returns the result.",
        "A direct translation of the statement is enough here.",
        "Keep to the order of the statement: select, transform, then combine.",
    ),
}
"""What an attempt says of how it was done. It gives nothing away."""

SECOND: Final[dict[str, tuple[str, ...]]] = {
    "verify": ("Going over the work above line by line.", "Doing it again by another way and comparing."),
    "refine": ("Taking the work above and putting it in better shape.", "Starting from the attempt above."),
    "aggregate": ("Putting the answers above side by side.", "Weighing what has been proposed above."),
}
"""What a second look says first, where there is something to look at."""
MISPLACED: Final[dict[str, tuple[str, ...]]] = {
    "verify": ("There is no work here that could be gone over, so this is a guess.",),
    "refine": ("There is nothing here to put in better shape, so this is a first try.",),
    "aggregate": ("There are no answers here to put side by side, so this is a guess.",),
}
"""And where there is nothing."""

CHECKS: Final[dict[int, tuple[str, ...]]] = {
    PASSES: (
        "Putting the result back into the question, it fits.",
        "A second way gives the same.",
        "Checked against the conditions: they hold.",
    ),
    FAILS: (
        "Putting the result back into the question, it does not quite fit.",
        "A second way gives something else, and the difference stays unexplained.",
        "Checked against the conditions: one of them does not come out.",
    ),
}
HEDGES: Final = (
    "This is not certain.",
    "There may be a mistake in one of the steps.",
    "The wording can be read in more than one way, so take this with care.",
)
SLIPS: Final[dict[Domain, tuple[str, ...]]] = {
    "math": ("Whether the sign is right was not looked at.", "A special case is left out here."),
    "choice": ("Not all options were looked at.", "The remaining options were not compared."),
    "text": ("The unit or the exact form is left open.", "The form in which it should be given is not clear."),
    "code": ("Empty input is not handled separately.", "The boundary case was not looked at."),
}
CUT: Final = (
    "The next part then follows from the one before, which means that first",
    "Before that can be used it has to be rewritten, and so the",
    "To be sure, let me go through all of the remaining cases one after another, beginning with",
)
"""Where a reply ends that ran out of tokens."""

PLANS: Final[dict[Domain, dict[int, tuple[str, ...]]]] = {
    "math": {
        SOUND: (
            "First name the unknown and write down each given number; then form one equation; solve it; put it back.",
            "List what is given, fix the order of the operations, do them one by one, and test the size of the result.",
        ),
        THIN: (
            "Read it, calculate what is asked, and state it.",
            "Find the right formula and use it.",
        ),
        MISLEADING: (
            "Add everything that is given and then adjust for what is asked.",
            "The brackets do not matter here; go through it from left to right.",
        ),
    },
    "choice": {
        SOUND: (
            "Say what is known of the subject first, then strike out options, and compare the last two.",
            "Decide without looking at the options, then find the one that matches.",
        ),
        THIN: ("Look at the options and take the one that fits.", "Think about the subject, then choose."),
        MISLEADING: (
            "The most familiar of the options is usually meant.",
            "Prefer the option that is unlike the others.",
        ),
    },
    "text": {
        SOUND: (
            "Write the start down in full, apply the rule part by part, note each result, and give it as asked.",
            "Convert everything to one unit or one list first, do what is asked, then convert back and name the unit.",
        ),
        THIN: ("Apply the rule and write down what comes out.", "Work through it in order."),
        MISLEADING: (
            "Estimate it in the head; the exact steps change little here.",
            "Count both ends, and leave the form as it comes.",
        ),
    },
    "code": {
        SOUND: (
            "Read the input as described; select, and mind whether the bound counts; transform; combine.",
            "Put selection, transformation and result on separate lines; go through boundary and empty input by hand.",
        ),
        THIN: ("Loop over the input and build up the result.", "Write a function that does what the statement says."),
        MISLEADING: (
            "The first value is only a header, so leave it out of the calculation.",
            "Transform first and select afterwards; the order makes no difference.",
        ),
    },
}
"""What a plan says, by its quality."""

ANSWERS: Final[dict[Domain, tuple[str, ...]]] = {
    "math": ("Answer: {}", "The final answer is \\boxed{{{}}}.", "**Answer:** {}"),
    "choice": ("Answer: {}", "The final answer is \\boxed{{{}}}.", "**Answer:** {}"),
    "text": ("Answer: {}", "Final answer: {}", "**Answer:** {}"),
    "code": ("```python\n{}\n```",),
}
"""How an answer is given: the last line of a reply, or its program."""
PARTS: Final = tuple(f"Only the {number} part is done here." for number in ("first", "second", "third", "fourth"))
"""What a reply says that gives the result of one part."""
