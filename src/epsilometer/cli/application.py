"""The commands put together, and errors turned into one line and an exit status."""

import contextlib
import errno
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from epsilometer.cli.audit import audit, measure
from epsilometer.cli.compare import compare
from epsilometer.cli.demo import demo
from epsilometer.cli.exit_status import ExitStatus
from epsilometer.cli.listing import doctor, history, methods, zoo
from epsilometer.cli.options import GroupedCommand, MechanismCommand
from epsilometer.cli.output import STANDARD_OUTPUT, Answers
from epsilometer.cli.plan import plan
from epsilometer.cli.profile import profile
from epsilometer.cli.replay import replay, verify
from epsilometer.cli.reproduce import reproduce
from epsilometer.cli.run import run
from epsilometer.cli.scores import scores
from epsilometer.errors import EpsilometerError, MechanismError
from epsilometer.one_line import clean, cut
from epsilometer.redaction import public

# One line, but enough of it to quote what another program said.
_MAX_MESSAGE_CHARACTERS = 1500
_EPILOG = (
    "Exit status: 0 not refuted or measured, 1 refuted, 2 bad usage, input or mechanism, or a "
    "file that could not be written, 3 inconclusive, or blind with --fail-blind, 130 interrupted."
)
# In the order in which the help lists them.
_COMMANDS: tuple[Callable[..., int], ...] = (
    demo,
    audit,
    measure,
    profile,
    compare,
    scores,
    replay,
    verify,
    run,
    history,
    zoo,
    methods,
    doctor,
    plan,
    reproduce,
)
_COMMANDS_THAT_RUN_MECHANISMS = (audit, measure, profile, compare, replay, run)
_COMMANDS_WITH_A_VERDICT = (audit, compare, scores, replay, run)


def make_app() -> typer.Typer:
    """The application with all its commands and the options that install shell completion."""
    app = typer.Typer(
        name="epsilometer",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: loading rich for it would double the time
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog=_EPILOG,
    )
    app.callback(help=_help(_top))(_top)
    for command in _COMMANDS:
        epilog = _EPILOG if command in _COMMANDS_WITH_A_VERDICT else None
        runs_mechanisms = command in _COMMANDS_THAT_RUN_MECHANISMS
        kind = MechanismCommand if runs_mechanisms else GroupedCommand
        app.command(cls=kind, help=_help(command), epilog=epilog)(command)
    return app


def _help(command: Callable[..., Any]) -> str:
    """The docstring; paragraphs with indented lines, such as examples, are printed verbatim."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    verbatim = "\b\n"
    marked = [verbatim + text if "\n  " in text else text for text in paragraphs]
    return "\n\n".join(marked)


def _top(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    debug: bool = typer.Option(
        False, "--debug", help="Show the traceback of an error; works after a command, too."
    ),
) -> None:
    """Measures the privacy of anything you can sample.

    Epsilometer runs a mechanism on two neighbouring inputs, certifies how much it leaks at least,
    and refutes a claim of differential privacy with a counterexample that anyone can replay.

    Begin with:
      epsilometer demo
      epsilometer audit zoo:svt5 --epsilon 1
      epsilometer audit my_module:my_function --left 0 --right 1 --epsilon 1
    """


def run_command(arguments: list[str], *, ends_process: bool = False) -> int:
    """Runs one command and turns any error into a line on standard error and an exit status.

    Args:
        arguments: what follows the program's name.
        ends_process: whether the process ends with this command, see `Answers`.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal without Greek letters gets their escapes instead of an error.
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in arguments
    if "_EPSILOMETER_COMPLETE" in os.environ:  # a shell asks what may follow
        make_app()(prog_name="epsilometer")
    answers = Answers(ends_process=ends_process)
    try:
        status = _invoke([word for word in arguments if word != "--debug"], answers)
        answers.flush()
        return status
    except KeyboardInterrupt as stop:
        _complain(_interrupted(str(stop), arguments), debug)
        return ExitStatus.INTERRUPTED
    except BaseException as error:
        # All of them: Python's own status for an error that nobody caught is our "refuted".
        if isinstance(error, BrokenPipeError) and error.filename in (None, STANDARD_OUTPUT):
            return ExitStatus.BROKEN_PIPE  # whoever read our output has gone
        _complain(_message(error, debug), debug)
        return ExitStatus.BAD_INPUT
    finally:
        _let_go_of_broken_streams()


def _invoke(arguments: list[str], answers: Answers) -> int:
    command = typer.main.get_command(make_app())
    if not arguments:
        # Status 2: a call without arguments must not look like a claim that was not refuted.
        with command.make_context("epsilometer", [], resilient_parsing=True) as context:
            sys.stdout.write(context.get_help() + "\n")
        return ExitStatus.BAD_INPUT
    try:
        try:
            context = command.make_context("epsilometer", arguments, obj=answers)
        except SystemExit as ended:
            # --install-completion is done, or does not know this shell; 1 would be a verdict.
            return ExitStatus.BAD_INPUT if ended.code else 0
        with context:
            return int(command.invoke(context) or 0)
    except typer.Exit as ended:
        return ended.exit_code


def _interrupted(how_far: str, arguments: list[str]) -> str:
    """What is known after a Ctrl-C, and how to go on."""
    progress = f" after {how_far}" if how_far else ""
    text = f"interrupted{progress}; nothing was decided"
    if any(argument.startswith("--checkpoint") for argument in arguments):
        return f"{text}, but the same command resumes from the checkpoint"
    if not how_far:
        return text
    advice = "With --checkpoint FILE the same command could go on from here"
    if "--stop-early" not in arguments:
        advice += "; with --stop-early there is a certified bound at any time"
    return f"{text}. {advice}"


def _message(error: BaseException, debug: bool) -> str:
    """The error in one line."""
    hint = "" if debug else " (--debug shows the traceback)"
    if hasattr(error, "format_message"):  # typer's own: usage, missing and bad parameters
        context = getattr(error, "ctx", None)
        help_hint = f"; try: {context.command_path} --help" if context is not None else ""
        return str(error.format_message()).replace("\n", " ").rstrip(".") + help_hint
    if isinstance(error, MechanismError) and error.__cause__ is not None:
        return f"{error}{hint}"
    if isinstance(error, EpsilometerError):
        return str(error)
    if isinstance(error, OSError):
        # An error in writing that names no file is about standard output: files that we write
        # always have a name.
        is_about_output = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EBADF, errno.EIO)
        nameless = STANDARD_OUTPUT if is_about_output else "a file"
        return f"{error.filename or nameless}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return f"the memory is full{detail}; give fewer samples or smaller files"
    return f"unexpected {type(error).__name__}: {error}{hint}"


def _complain(message: str, debug: bool) -> None:
    # There may be nobody to complain to: the status says enough.
    with contextlib.suppress(Exception):
        if debug:
            sys.stderr.write(public(traceback.format_exc()))
        line = cut(clean(public(message)), _MAX_MESSAGE_CHARACTERS)
        sys.stderr.write(f"epsilometer: {line}\n")


def _let_go_of_broken_streams() -> None:
    """Forgets what cannot be written.

    Python would try again at exit, and end with a status of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # not a real stream
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except Exception:
            continue  # a mechanism has closed or replaced it
