"""``python -m formatspan`` and the script ``formatspan``: ready for Ctrl-C from the start."""

from __future__ import annotations

import sys

from formatspan.interrupts import leave


def main() -> None:
    """Run the command line; Ctrl-C while it is still loading ends in one line as well."""
    try:
        from formatspan.cli import main as run  # loading takes a while

        run()
    except KeyboardInterrupt:
        leave(sys.argv[1:])


if __name__ == "__main__":
    main()
