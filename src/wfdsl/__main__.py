"""`python -m wfdsl`."""

import sys

from wfdsl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
