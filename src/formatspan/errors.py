"""The error tree.

FormatspanError
├── UserError            a mistake the user can mend: one line, exit code 2
│   ├── StudyError       a study file or flag: names the key and what would be right
│   ├── DataError        a data file: names file, line and field
│   ├── WrapperError     a wrapper's template or contract
│   ├── BackendError     a model cannot be used: missing extra, key variable, file
│   └── RunError         a run folder: not one, in use, or made with other parameters
└── StorageError         the disk: full or unwritable; what was committed stays (exit code 1)
"""

from __future__ import annotations


class FormatspanError(Exception):
    """Root of everything this package raises on purpose."""


class UserError(FormatspanError):
    """A mistake the user can mend; its text is one line fit to print."""


class StudyError(UserError):
    """A study file or a flag is wrong."""


class DataError(UserError):
    """A row of a data file is wrong.

    Args:
        message: What was wrong and what would be right.
        source: File or hub data set.
        line: 1-based line or row, if one is at fault.
        field: Column, if one is at fault.
    """

    def __init__(
        self, message: str, *, source: str, line: int | None = None, field: str | None = None
    ) -> None:
        self.source, self.line, self.field = source, line, field
        where = source + (f", line {line}" if line is not None else "")
        where += f", field {field!r}" if field is not None else ""
        super().__init__(f"{where}: {message}")


class WrapperError(UserError):
    """A wrapper cannot be rendered, or its contract makes no sense."""


class BackendError(UserError):
    """A model cannot be reached as described."""


class RunError(UserError):
    """A run folder cannot be used as asked."""


class StorageError(FormatspanError):
    """The store could not be written; everything committed before stays readable."""
