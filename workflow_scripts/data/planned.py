"""The name of what a dataset or encoder is read from: one string, which the graph computes and the job holds itself to.

Files are named with their hashes, the Hub with repositories and commits. It is a setting of the job, so that a file
that appears or changes is seen by whoever compares settings.
"""

from collections.abc import Mapping, Sequence

from workflow_scripts.errors import DataError

ON_HUB = ("hub", "hub_files")
"""Kinds of sources that this machine may not reach; they are asked after those that are on it."""
NOTHING = "none"
Pin = str | Sequence[str] | None
"""The hash that a file must have, or several of which it must have one, or None where it is not known."""
NOT_REACHED = "not reached: "


def accepted(pin: Pin) -> Sequence[str]:
    """The hashes that a file may have; none where any will do."""
    return [pin] if isinstance(pin, str) else pin or []


def text_of(hashes: Mapping[str, str]) -> str:
    """Name files and their hashes, in the order of the names."""
    return "; ".join(f"{name} sha256:{sha256}" for name, sha256 in sorted(hashes.items()))


def is_here(planned: str) -> bool:
    """Whether files of this machine were planned, rather than the Hub or nothing."""
    return planned.startswith(("local:", "package:"))


def check_planned(place: str, planned: str, hashes: Mapping[str, str]) -> None:
    """Check that what a job has read is what it was planned with.

    Raises:
        DataError: if another source was read, or a file was changed in between.
    """
    found = text_of(hashes) or NOTHING
    if is_here(planned) and found != planned:
        raise DataError(f"{place}: read from {found}, but planned with {planned}. Run it again.")
