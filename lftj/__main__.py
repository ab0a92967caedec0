"""`python -m lftj`: the command line."""

import sys

from lftj.cli import main

if __name__ == "__main__":
    sys.exit(main())
