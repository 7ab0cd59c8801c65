"""What artefacts hold besides their records, and besides what a page shows that differs from run to run.

Seconds, the machine and the commit are in elements of the class ``varies``. Whoever asks whether two pages say the same
leaves these out; the checksum of a page covers them as all else.
"""

import re
from pathlib import Path

from workflow_scripts.provenance.artefacts import contents_of, identity_of
from workflow_scripts.provenance.record import Record

_VARIES = re.compile(rb'<(td|span) class="varies[a-z ]*">[^<]*</\1>')


def contents_hash(path: Path, record: Record) -> str:
    """Hash of what every run of its job gives alike, computed anew: what was sealed again may claim another."""
    pieces = contents_of(path, record)  # a page is one piece
    return identity_of(
        (_VARIES.sub(b"", piece) for piece in pieces) if path.suffix == ".html" else pieces, ()
    )
