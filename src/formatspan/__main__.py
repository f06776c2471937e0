"""``python -m formatspan`` and the script ``formatspan``: ready for Ctrl-C from the start."""

from __future__ import annotations

import os
import signal
import sys

from formatspan.interrupts import CODE, leave


def main() -> None:
    """Run the command line; Ctrl-C while it is still loading ends in one line as well."""
    try:
        try:
            from formatspan.cli import main as run  # loading takes a while

            run()
        except KeyboardInterrupt:
            leave(sys.argv[1:])
    except SystemExit as left:
        if left.code == CODE:
            _end_at_once()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: nothing is left to interrupt
        raise


def _end_at_once() -> None:
    """End with the code of an interrupt, come what may.

    Taking the interpreter down would answer a second Ctrl-C with a traceback, and Python ends by
    the signal itself if the first one hit code that it was compiling.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(CODE)


if __name__ == "__main__":
    main()
