"""Errors that a user can mend: each message names the place, the value found and the remedy.

Any other exception is a bug and keeps its traceback.
"""

import difflib
import errno
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

_MAX_NAMES = 12
"""Maximum number of names in a message; the others are counted."""


class ErrorDetails(NamedTuple):
    """An error in a configuration."""

    path: str
    """Dotted path of the setting."""
    problem: str
    """The value found, and why it is wrong."""
    remedy: str = ""
    """An instruction, with the value that would be right."""
    about: str = ""
    """The subject of the setting, such as the runs that have it."""
    file: str = ""
    """The setting's file, below the repository's root; empty if it may be one of several."""
    decided_by: str = ""
    """Dotted path of the setting that decides which keys are known here; empty if none does."""

    def __str__(self) -> str:
        """Return the line to print: place, problem and remedy."""
        setting = f"{self.path} ({self.about})" if self.about else self.path
        end = "" if self.problem.endswith((".", "?")) else "."  # such as the text of an error
        said = f"{self.problem}{end} {self.remedy}".rstrip()
        return ": ".join(filter(None, [self.file, setting, said]))

    def under(self, path: str, file: str = "") -> "ErrorDetails":
        """Return the error about a setting below ``path``."""
        above = f"{path}." if path else ""
        decided_by = f"{above}{self.decided_by}" if self.decided_by else ""
        return self._replace(path=f"{above}{self.path}", file=file or self.file, decided_by=decided_by)


class SemblanceError(Exception):
    """Base class of errors with a one-line message for the user."""


class ConfigError(SemblanceError):
    """A setting is missing, unknown, of the wrong type or out of range."""


class DataError(SemblanceError):
    """A file is missing, damaged, or breaks its contract."""


class MissingError(DataError):
    """No source of a dataset or encoder exists."""


class UnreachableError(DataError):
    """A source of a dataset or encoder cannot be reached, or denies access: its contents are unknown."""


class ApiError(SemblanceError):
    """A translator or language model refused, gave unusable answers, or kept failing; finished answers are kept."""


class TrainingError(SemblanceError):
    """Training cannot continue: a loss that is not finite, a batch too small to contrast."""


STUDY_OPTIONS: ContextVar[Callable[[str], Sequence[str] | None]] = ContextVar(
    "STUDY_OPTIONS", default=lambda _file: None
)
"""Function that returns snakemake's options for the study of a file; None if they are unknown.

The verbs set it. The modules that find an artefact missing or damaged do not import ``graph``, which reads the notes of
earlier calls.
"""
MADE_BELOW = ("results", "benchmarks")
"""Folders of the working directory in which jobs write."""


def how_to_make(path: str | Path) -> str:
    """Return the remedy for a missing artefact or study."""
    return f"Make it: {command_for(path)}"


def how_to_repair(path: str | Path) -> str:
    """Return the remedy for a damaged artefact."""
    return f"Make it again: {command_for(path, again=True)}"


def command_for(path: str | Path, *, again: bool = False) -> str:
    """Return the command, as a part of a message, that makes a file or a study in the folder where it belongs.

    Args:
        path: An artefact, or results/<study>.
        again: Whether the file exists or existed.
    """
    root, target = place_of(path)
    is_here = root == Path.cwd()
    options = STUDY_OPTIONS.get()(target) if is_here else None
    there = "" if is_here else f"cd {shlex.quote(os.path.relpath(root))} && "
    hint = ", with its study's file as CONFIG" if options is None else ""
    targets = [] if str(Path(target).parent) in MADE_BELOW else [target]
    return f"`{there}{snakemake_call(targets, options, again=again)}`{hint}."


def place_of(path: str | Path) -> tuple[Path, str]:
    """Return the working directory to which a file below ``results`` or ``benchmarks`` belongs, and its path there.

    Other files belong to the present working directory. A study, a grid or a suite may also have one of these names.
    """
    name = os.path.relpath(path)
    parts = (Path.cwd() / name).parts
    tops = [number for number, part in enumerate(parts[:-1]) if part in MADE_BELOW]
    is_here = name.startswith(tuple(f"{top}/" for top in MADE_BELOW)) or not tops
    root = Path.cwd() if is_here else Path(*parts[: tops[-1]])
    return root, os.path.relpath(path, root)


def snakemake_call(targets: Sequence[str], options: Sequence[str] | None, *, again: bool = False) -> str:
    """Return the command that makes files, or the whole study.

    It makes nothing else, because the configuration of the rest of the study may have changed.

    Args:
        targets: The files, relative to the working directory; empty for the study.
        options: Options for the configuration; None if unknown.
        again: Whether to make files that Snakemake counts as finished: a damaged file, or a deleted one of which
            artefacts made from it exist.
    """
    known = ("--configfile", "CONFIG") if options is None else options
    forced = ("--forcerun", *targets) if again else ()
    named = ("--", *targets) if targets else ()
    return shlex.join(["snakemake", "--cores", "all", *known, *forced, *named])


EXIT_TRY_AGAIN = 75
"""Exit code of a job that was stopped and has saved its state to continue (EX_TEMPFAIL)."""


EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""


_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Give this user permission to use it"),
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST), "Use another path"),
}
"""Remedies for errors of the operating system that a user can mend."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print an error that a user can mend (also a full disk, permissions, Ctrl-C) as one line and exit with code 1."""
    try:
        yield
    except KeyboardInterrupt:
        print("Interrupted: run it again; nothing half-written stays.", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_INTERRUPTED)
    except SemblanceError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0)
        if advice is None:
            raise
        file = error.filename2 or error.filename or "a file"  # filename2: the new name of a renamed file
        sys.exit(f"OSError: {file}: {error.strerror}. {advice} and run again; nothing half-written stays.")


class ConflictError(ValueError):
    """Values of a block of settings that exclude each other."""

    def __init__(self, errors: list[ErrorDetails]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = errors


def refuse(errors: Iterable[ErrorDetails | str]) -> None:
    """Raise one error with all errors about a configuration; do nothing without errors.

    Raises:
        ConfigError: with a line for each error: place, value and remedy.
    """
    if lines := list(dict.fromkeys(map(str, errors))):
        raise ConfigError("\n".join(lines))


def shown(value: object) -> str:
    """Return a value in the notation of YAML: null, true and false; text in quotes."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


def unknown(names: str | Iterable[str], defined: Iterable[str], path: str) -> Iterator[ErrorDetails]:
    """Yield an error for each name, of one or several, that is not defined."""
    known = sorted(defined)
    for name in [names] if isinstance(names, str) else names:
        if name not in known:
            yield ErrorDetails(path, f"{name} is not defined", advice(name, known))


def advice(name: str, known: Iterable[str], printed: Callable[[str], str] = str) -> str:
    """Return a remedy with the most similar of the known names, or with all of them if none is similar.

    Args:
        name: The unknown name.
        known: The names that would be right.
        printed: Function that returns the text of a name in the remedy, such as a path of which it is a part.
    """
    names = list(known)
    by_lower = {known_name.lower(): known_name for known_name in names}
    if close := difflib.get_close_matches(name.lower(), by_lower, n=1):
        return f"Did you mean {printed(by_lower[close[0]])}?"
    if not names:
        return "None is defined."
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"Choose from: {', '.join(map(printed, names[:_MAX_NAMES]))}{more}."
