"""The entry point: every mistake is one line and an exit code."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from formatspan.cli import asking, looking, reading
from formatspan.cli.output import fail
from formatspan.errors import FormatspanError, UserError
from formatspan.interrupts import leave


class _Interrupted(FormatspanError):
    """Ctrl-C, in a form that Typer lets pass; a KeyboardInterrupt it turns into a bare exit."""


class _Commands(TyperGroup):
    """The commands; Ctrl-C comes out of them as `_Interrupted`."""

    def make_context(self, *args: Any, **keys: Any) -> Any:  # noqa: ANN401 - Typer's own types
        try:
            return super().make_context(*args, **keys)  # loads what reads the arguments
        except KeyboardInterrupt:
            raise _Interrupted from None

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's own types
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted from None


app = typer.Typer(
    name="formatspan",
    help="Measure how far the formatting shell around a question moves a model's score.",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # help in plain text needs no Rich, which takes longest to import
    pretty_exceptions_enable=False,
)


for command in (
    *(asking.run, asking.plan, asking.doctor, asking.falsify),
    *(reading.analyze, reading.report, reading.compare, reading.replies),
    *(looking.show, looking.stub, looking.list_, looking.version),
):
    app.command(name=command.__name__.rstrip("_"))(command)


def main() -> None:
    """Entry point: mistakes become one line and exit code 2, a full disk exit code 1."""
    try:
        code = app(prog_name="formatspan", standalone_mode=False)
    except _Interrupted:
        leave(sys.argv[1:])
    except UserError as error:
        fail(str(error), 2)
    except FormatspanError as error:
        fail(str(error), 1)
    except OSError as error:  # of a path that no check foresaw
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)
    except MemoryError:
        fail("out of memory", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise  # a bug of ours: its traceback is what a report needs
        _refuse_usage(error)
    raise SystemExit(code if isinstance(code, int) else 0)


def _refuse_usage(error: Any) -> NoReturn:  # noqa: ANN401 - Typer's own types
    """A mistake in the flags as one line; called without a command, the help."""
    context = getattr(error, "ctx", None)
    message: str = error.format_message()
    if context is not None and message == context.get_help():
        sys.stdout.write(message + "\n")
        raise SystemExit(2)
    message = message.rstrip(".")
    wrong = getattr(error, "option_name", None)
    if context is not None and wrong is not None and str(wrong).startswith("-"):
        known = [o for p in context.command.params for o in p.opts if o.startswith("--")]
        commands = getattr(context.command, "commands", {})
        meant = _meant(wrong, known) or _meant(wrong.lstrip("-"), commands)
        message = f"no such option {wrong}{meant}"
    elif context is not None and message.startswith("No such command"):
        wrong = context.args[0] if context.args else message.split("'")[1]
        known = list(context.command.commands)
        message = f"no such command {wrong!r}{_meant(wrong, known)}: expected {', '.join(known)}"
    help_at = f" (see {context.command_path} --help)" if context is not None else ""
    fail(f"{message[:1].lower()}{message[1:]}{help_at}", 2)


def _meant(wrong: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1)
    return f", did you mean {close[0]}?" if close else ""
