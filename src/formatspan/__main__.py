"""``python -m formatspan`` is ``formatspan``."""

from formatspan.cli import main

if __name__ == "__main__":
    main()
