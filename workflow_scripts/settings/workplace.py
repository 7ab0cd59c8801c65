"""Where a job finds finished work, stored answers and local data."""

import os
from pathlib import Path

from workflow_scripts.settings.base import Settings


class Workplace(Settings):
    """Settings of a study that decide no result and reach every job in its call, not in its environment.

    So a command that is repeated in another terminal, on another node or by ``rebuild`` uses the same places.
    Relative paths are below the working directory.
    """

    cache: Path | None
    """Folder of finished work; None: no work is reused or kept."""
    cache_gigabytes: float
    """Maximum size of the cache."""
    answers: Path
    """Ledger of answers of translators and language models."""
    data_root: Path | None
    """Folder of local data."""
    offline: bool
    """Whether only stored answers may be used."""


def data_root_of(named: object) -> Path | None:
    """Return the folder of local data: the setting, or else environment variable SEMBLANCE_DATA; ~ is a home folder."""
    root = named or os.environ.get("SEMBLANCE_DATA")
    return Path(str(root)).expanduser().absolute() if root else None


def workplace_of(
    *, cache: str, cache_gigabytes: float, answers: str, data_root: str | None, offline: bool
) -> Workplace:
    """Return the workplace that some settings and the user's environment give; the variables are read only here.

    SEMBLANCE_ANSWERS replaces ``answers``, SEMBLANCE_DATA is used without ``data_root``, and SEMBLANCE_OFFLINE=1 is
    ``offline: true``.
    """
    return Workplace(
        cache=Path(cache).expanduser(),
        cache_gigabytes=cache_gigabytes,
        answers=Path(os.environ.get("SEMBLANCE_ANSWERS") or answers),
        data_root=data_root_of(data_root),
        offline=offline or os.environ.get("SEMBLANCE_OFFLINE", "") not in ("", "0"),
    )
