"""Write down what studies hold: every artefact's seal and contents, and the code, packages and sources behind them.

The file is sorted and small enough to commit beside numbers taken from a study: who runs it again compares two
locks and sees what differs. A seal covers the record and with it the commit; the hash under "contents" covers
what a file holds besides, and is the same at every commit that makes the same.
"""

import argparse
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workflow_scripts.artefacts import RECORD_FILE, atomic, page_text
from workflow_scripts.audit.diff import before_footer
from workflow_scripts.audit.disk import Look, collect, look_at_all
from workflow_scripts.audit.reading import console, is_outside, print_json
from workflow_scripts.audit.verify import studies_of
from workflow_scripts.errors import DataError

LOCK = Path("results/provenance.lock.json")
"""Where the lock lies unless asked otherwise: the one file below results/ that Git keeps."""


def lock(root: Path, studies: Iterable[Path]) -> dict[str, Any]:
    """Seals and contents of all artefacts of ``studies``, and what their records agree on.

    Raises:
        DataError: if an artefact is damaged: a lock must not vouch for it.
    """
    tree = collect(root, studies)
    looks = look_at_all(tree, advance=lambda _bytes: None)
    if damaged := sorted(name for name, look in looks.items() if look.damage):
        raise DataError(
            f"{damaged[0]}: damaged. Run python -m workflow_scripts.audit verify, mend, and lock again."
        )
    sealed = {name: look for name, look in sorted(looks.items()) if _stands_alone(name, look)}
    records = [look.record for look in sealed.values() if look.record]
    given = [given for record in records for given in record.inputs.values()]
    return {
        "artefacts": {name: look.seal for name, look in sealed.items()},
        "contents": {name: _contents(root / name, look) for name, look in sealed.items()},
        "code": {path: sha for record in records for path, sha in record.code.items()},
        "commits": sorted({f"{record.commit}{' (dirty)' * record.dirty}" for record in records}),
        "packages": {name: version for record in records for name, version in record.packages.items()},
        "sources": {used.path: used.sha256 for used in given if is_outside(used.path)},
    }


def _stands_alone(name: str, look: Look) -> bool:
    return look.seal is not None and (look.record is not None or Path(name).name == RECORD_FILE)


def _contents(path: Path, look: Look) -> str:
    """Hash of what an artefact holds besides its record."""
    if look.record is not None and look.record.files:
        content = json.dumps(look.record.files, sort_keys=True).encode()
    else:
        content = before_footer(path) if path.suffix == ".parquet" else page_text(path)
    return hashlib.sha256(content).hexdigest()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the studies and the file to write."""
    parser.add_argument(
        "studies", type=Path, nargs="*", help="folders of studies; default: all below results/"
    )
    parser.add_argument("--to", type=Path, help=f"file to write; default: {LOCK}")


def run(args: argparse.Namespace) -> int:
    """Write the lock; with --json, print it instead."""
    found = lock(args.root, studies_of(args.root, args.studies))
    if args.json:
        print_json(found)
        return 0
    place = args.to or args.root / LOCK
    with atomic(place) as temporary:
        temporary.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
    console().print(f"{place}: {len(found['artefacts'])} artefacts", style="green", soft_wrap=True)
    return 0
