"""What is wrong with a configuration, a line each: where, what was found, what to do."""

import difflib
from collections.abc import Iterable, Iterator, Sequence

from workflow_scripts.errors import ConfigError

_NAMED = 12
"""Names that a line lists at most; of more it gives the number."""


def refuse(findings: Iterable[str]) -> None:
    """Raise all findings at once, if there are any.

    Raises:
        ConfigError: with a line for each finding.
    """
    if lines := list(dict.fromkeys(findings)):
        raise ConfigError("\n".join(lines))


def first_error(printed: Sequence[str]) -> str:
    """What Snakemake says of a dry run that failed: its first line with an error, and the next where that is a name."""
    found = next((place for place, line in enumerate(printed) if "Error" in line), max(0, len(printed) - 1))
    said = " ".join(line.strip() for line in printed[found : found + 2])
    first = "".join(printed[found : found + 1]).strip()
    return said if first.endswith("Error:") else first


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
