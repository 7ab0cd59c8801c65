"""The source string of a dataset or encoder: computed while planning, enforced by the job.

It names files with their hashes, and the Hub with repositories and commits. It is a setting of the job, so a file that
appears or changes is a changed setting.
"""

from collections.abc import Mapping, Sequence

from workflow_scripts.errors import DataError

NOTHING = "none"
Pin = str | Sequence[str] | None
"""The hash that a file must have, or a list of accepted hashes; None if the file is not pinned."""
NOT_REACHED = "not reached: "


def accepted(pin: Pin) -> Sequence[str]:
    """The accepted hashes of a file; empty if it is not pinned."""
    return [pin] if isinstance(pin, str) else pin or []


def text_of(hashes: Mapping[str, str]) -> str:
    """The source string of files with their hashes, in the order of their names."""
    return "; ".join(f"{name} sha256:{sha256}" for name, sha256 in sorted(hashes.items()))


def is_here(planned: str) -> bool:
    """True if the planned source is files of this machine, not the Hub or nothing."""
    return planned.startswith(("local:", "package:"))


def check_planned(place: str, planned: str, hashes: Mapping[str, str]) -> None:
    """Check that a job has read its planned source.

    Raises:
        DataError: if another source was read, or a file has changed since.
    """
    actual = text_of(hashes) or NOTHING
    if is_here(planned) and actual != planned:
        raise DataError(f"{place}: read from {actual}, but planned with {planned}. Run it again.")
