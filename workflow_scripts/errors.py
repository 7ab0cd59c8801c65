"""Errors a user can mend: each says where, what was found and what to do.

Anything else that is raised is a bug and keeps its traceback.
"""

import difflib
import errno
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_NAMED = 12
"""Names that a line lists at most; of more it gives the number."""


class SemblanceError(Exception):
    """Base of the errors whose message is one line for the user."""


class ConfigError(SemblanceError):
    """A setting is missing, unknown, of the wrong type or out of range."""


class DataError(SemblanceError):
    """A file is missing, damaged, or breaks the contract its name promises."""


class MissingError(DataError):
    """No source of a dataset or encoder is there."""


class UnreachableError(DataError):
    """A source of a dataset or encoder cannot be asked now, or not by this user: nobody knows what is there."""


class ApiError(SemblanceError):
    """A translator or language model refused, answered nonsense, or kept failing; finished answers are kept."""


class TrainingError(SemblanceError):
    """Training cannot go on: a loss that is not finite, a batch too small to contrast."""


def how_to_make(path: object) -> str:
    """What to do about an artefact that is not there."""
    return f"Make it: snakemake --cores all {path}, with its study's --configfile."


def how_to_repair(path: object) -> str:
    """What to do about an artefact that is damaged; Snakemake looks at dates, and takes it for finished."""
    return f"Make it again: snakemake --cores all --forcerun {path}, with its study's --configfile."


EXIT_TRY_AGAIN = 75
"""Exit code of a job that was asked to stop and has saved what it needs to go on (EX_TEMPFAIL)."""


EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Give this user the right to use it"),
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST), "Name another place"),
}
"""What to do about errors of the operating system that a user can mend."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print a user's error as one line and leave with code 1; a full disk, no permission and Ctrl-C count as such."""
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
        place = error.filename2 or error.filename or "a file"  # of a renaming, the new name
        sys.exit(f"OSError: {place}: {error.strerror}. {advice} and run again; nothing half-written stays.")


def refuse(findings: Iterable[str]) -> None:
    """Raise all that is wrong with a configuration at once, if there is anything.

    Raises:
        ConfigError: with a line for each finding: where, what was found, what to do.
    """
    if lines := list(dict.fromkeys(findings)):
        raise ConfigError("\n".join(lines))


def unknown(name: str, names: Iterable[str], place: str) -> Iterator[str]:
    """A finding where ``name`` is none of ``names``."""
    known = sorted(names)
    if name not in known:
        yield f"{place}: {name} is not defined. {advice(name, known)}"


def advice(name: str, known: Iterable[str]) -> str:
    """The nearest of the known names, or all of them where none is near."""
    names = list(known)
    in_small = {one.lower(): one for one in names}
    if close := difflib.get_close_matches(name.lower(), in_small, n=1):
        return f"Did you mean {in_small[close[0]]}?"
    shown = ", ".join(names[:_NAMED]) or "none"
    return f"Known: {shown}{f' and {len(names) - _NAMED} more' if len(names) > _NAMED else ''}."
