"""What a page shows that differs from run to run: seconds, the machine, the commit.

The page has it in elements of the class ``varies``. Whoever asks whether two pages say the same leaves these out; the
checksum of a page covers them as all else.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_VARIES = re.compile(rb'<(td|span) class="varies[a-z ]*">[^<]*</\1>')


def lasting(path: Path, contents: Iterable[bytes]) -> Iterator[bytes]:
    """Of an artefact's contents, in pieces, what every run gives alike; a page is one piece."""
    return (_VARIES.sub(b"", piece) if path.suffix == ".html" else piece for piece in contents)
