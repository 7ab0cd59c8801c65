"""Errors that a user can mend: each message names the place, the value found and the remedy.

Any other exception is a bug and keeps its traceback.
"""

import difflib
import errno
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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

    def __str__(self) -> str:
        """Return the line to print: place, problem and remedy."""
        setting = f"{self.path} ({self.about})" if self.about else self.path
        end = "" if self.problem.endswith((".", "?")) else "."  # such as the text of an error
        said = f"{self.problem}{end} {self.remedy}".rstrip()
        return ": ".join(filter(None, [self.file, setting, said]))

    def under(self, path: str, file: str = "") -> "ErrorDetails":
        """Return the error about a setting below ``path``."""
        return self._replace(path=f"{path}.{self.path}" if path else self.path, file=file or self.file)


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


def how_to_make(path: object) -> str:
    """Return the remedy for a missing artefact."""
    return f"Make it: snakemake --cores all {path}, with its study's --configfile."


def how_to_repair(path: object) -> str:
    """Return the remedy for a damaged artefact; Snakemake compares only dates, and counts it as finished."""
    return f"Make it again: snakemake --cores all --forcerun {path}, with its study's --configfile."


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


def advice(name: str, known: Iterable[str]) -> str:
    """Return a remedy with the most similar of the known names, or with all of them if none is similar."""
    names = list(known)
    by_lower = {known_name.lower(): known_name for known_name in names}
    if close := difflib.get_close_matches(name.lower(), by_lower, n=1):
        return f"Did you mean {by_lower[close[0]]}?"
    if not names:
        return "None is defined."
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"Choose from: {', '.join(names[:_MAX_NAMES])}{more}."
