"""Places of finished work, stored answers and local data, which each job receives."""

import os
from pathlib import Path

from workflow_scripts.settings.base import Settings


class Workplace(Settings):
    """Operational settings of a study, which each job receives in its call and not in its environment.

    A command that is repeated in another terminal, on another node or by ``rebuild`` therefore uses the same places.
    Relative paths are relative to the working directory.
    """

    cache: Path | None
    """Folder of finished work; None: no work is reused or stored."""
    cache_gigabytes: float
    """Maximum size of the cache, in GB."""
    answer_store: Path
    """Ledger of translators' and language models' answers."""
    data_root: Path | None
    """Folder of local data."""
    offline: bool
    """Whether only stored answers may be used."""


def data_root_of(named: object) -> Path | None:
    """Return the folder of local data: the setting, or environment variable SEMBLANCE_DATA; ~ is expanded."""
    root = named or os.environ.get("SEMBLANCE_DATA")
    return Path(str(root)).expanduser().absolute() if root else None


def workplace_of(
    *, cache: str, cache_gigabytes: float, answer_store: str, data_root: str | None, offline: bool
) -> Workplace:
    """Return the workplace for some settings and the user's environment; only this function reads the variables.

    SEMBLANCE_ANSWERS overrides ``answer_store``, SEMBLANCE_DATA is used without ``data_root``, and SEMBLANCE_OFFLINE=1
    means ``offline: true``.
    """
    return Workplace(
        cache=Path(cache).expanduser(),
        cache_gigabytes=cache_gigabytes,
        answer_store=Path(os.environ.get("SEMBLANCE_ANSWERS") or answer_store),
        data_root=data_root_of(data_root),
        offline=offline or os.environ.get("SEMBLANCE_OFFLINE", "") not in ("", "0"),
    )
