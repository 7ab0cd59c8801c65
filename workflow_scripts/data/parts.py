"""A zip archive that lies in parts, read where they lie: it is never joined on disk."""

import hashlib
import io
import os
import re
import zipfile
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from workflow_scripts.errors import DataError

_LEADS_OUT = re.compile(r"[/\\\\]|[A-Za-z]:|(.*[/\\\\])?\.\.([/\\\\]|$)")
"""Names of an archive that begin at a root, or go up."""


class Joined(io.RawIOBase):
    """Files read as one, one after the other."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.name = f"{len(files)} parts from {files[0]} to {files[-1]}"
        self._files = [file.open("rb", buffering=0) for file in files]
        self._ends = [*accumulate(os.fstat(file.fileno()).st_size for file in self._files)]
        self._at = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte, counted from the start, from here or from the end."""
        self._at = (0, self._at, self._ends[-1])[whence] + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read what fits and is left of the current part; 0 bytes at the end."""
        number = bisect_right(self._ends, self._at)
        if number == len(self._files):
            return 0
        left = self._ends[number] - self._at
        self._files[number].seek(-left, os.SEEK_END)
        count = self._files[number].readinto(memoryview(buffer)[:left])
        self._at += count
        return count

    def close(self) -> None:
        """Close all parts."""
        for file in self._files:
            file.close()
        super().close()


def folder_in(parts: Sequence[Path], sha256: str, path: str) -> zipfile.Path:
    """A folder of the archive that lies in ``parts``.

    Raises:
        DataError: if the parts are not the archive, it is no zip, or a name in it leads out of it.
    """
    joined = io.BufferedReader(Joined(parts))
    if (found := hashlib.file_digest(joined, "sha256").hexdigest()) != sha256:
        raise DataError(
            f"{joined.name}: sha256 {found}; pinned {sha256}. Check their order, or get them again."
        )
    try:
        archive = zipfile.ZipFile(joined)
    except zipfile.BadZipFile as error:
        raise DataError(f"{joined.name}: no zip archive. Name another source.") from error
    if outside := next(filter(_LEADS_OUT.match, archive.namelist()), None):
        raise DataError(f"{joined.name}: {outside} leads out of the archive. Take another one.")
    return zipfile.Path(archive, f"{path}/")
