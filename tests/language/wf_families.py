"""Texts that grow, each in a way that has made some reader slow. A family is a function of how many times."""

from __future__ import annotations

from collections.abc import Callable

FAMILIES: dict[str, Callable[[int], str]] = {
    "steps": lambda n: "".join(f'step s{i} by 0: "x"\n' for i in range(n)),
    "broken steps": lambda n: "step a by by by\n" * n,
    "misspelt steps": lambda n: 'stpe a bye 0: "x"\n' * n,
    "unclosed lines": lambda n: 'step a by 0: "x\n' * n,
    "unclosed blocks": lambda n: "step a by 0: \"\"\"x\nstep b by 0: '''y\n" * n,
    "escaped blocks": lambda n: 'step a by 0: \\"""x\n' * n,
    "quotes": lambda n: "'\"" * n,
    "quotes on a line": lambda n: "step a by 0: " + '"' * n,
    "braces": lambda n: 'step a by 0: "' + "{" * n + '"',
    "mixed braces": lambda n: 'step a by 0: "' + "{a}{{}}}\\N{" * n + '"',
    "names in braces": lambda n: 'step a by 0: "' + "{a-" * n + '"',
    "sees": lambda n: 'step a by 0: "x"\nstep b by 0 sees a' + ", a" * n + ': "x"',
    "sees unknown": lambda n: "".join(f'step a{i} by 0 sees b{i}: "x"\n' for i in range(n)),
    "hyphens": lambda n: "step a" + "-a" * n + "-",
    "commas": lambda n: "step a by 0 sees a" + "," * n,
    "at signs": lambda n: "@" * n,
    "brackets": lambda n: "[({" * n,
    "backslashes": lambda n: "\\" * n,
    "blank lines": lambda n: "\n" * n + "@",
    "comments": lambda n: "# a comment\n" * n,
    "block lines": lambda n: 'step a by 0: """\n' + "    line\n" * n + '"""',
    "copies of groups": lambda n: "".join(
        f'step s{i} by 0 copies 1000 sees s{i - 1}: "x"\n' if i else 'step s0 by 0: "x"\n' for i in range(n)
    ),
    "chains": lambda n: "".join(f'step s{i} by 0 chain 1000 sees all: "x"\n' for i in range(n)),
    "layers": lambda n: "".join(f'step s{i} by 0 copies 100 chain 10 sees latest s{i}: "x"\n' for i in range(n)),
    "own": lambda n: "".join(f'step s{i} by 0 copies 9 sees own s{max(i - 1, 0)}: "x"\n' for i in range(n)),
    "own again": lambda n: 'step a by 0 copies 9: "x"\nstep b by 0 copies 9 sees own a' + ", own a" * n + ': "x"',
    "workers": lambda n: "step a by 0" + " and 0" * n + ': "x"',
    "params": lambda n: "".join(f"param p{i} = {i}\n" for i in range(n)),
    "digits": lambda n: "step a by " + "9" * n,
}
