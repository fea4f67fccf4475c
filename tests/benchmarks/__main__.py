"""`python -m tests.benchmarks [NAME...]`: all benchmarks, or some; a NAME is one of NAMES below."""

import sys
from importlib import import_module

NAMES = (
    "parse",
    "startup",
    "interpreter",
    "grammar",
    "grading",
    "sandbox",
    "room",
    "training",
    "server",
    "blocking",
    "reward_server",
    "ray",
)


def main(chosen: list[str]) -> int:
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}: choose from {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in chosen or NAMES:
        import_module(f"tests.benchmarks.bench_{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
