"""Write a lock file: the checksum and contents of every artefact, and the code, packages and sources behind them.

The file is sorted, and small enough to commit together with the numbers of a study. A checksum covers the record, which
names settings, code and packages; the hash under "contents" leaves the record out, so that it is the same wherever the
results are the same.

With --check FILE, nothing is written: the artefacts are held against a lock that was written before. Each that was
added, removed or changed is listed with what in its making differs: settings, code, packages, sources, inputs, and if
none of these, the machine. Where nothing differs, it was edited and sealed again, or its job does not repeat itself.
Exit code 1 if any artefact was added or removed, or has other contents.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workflow_scripts.audit.lock_check import check, show
from workflow_scripts.audit.lookup import check_file_place
from workflow_scripts.audit.printing import console, print_json
from workflow_scripts.audit.tree import read_tree
from workflow_scripts.audit.verify import studies_of
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import atomic

LOCK = Path("results/provenance.lock.json")
"""Default path of the lock: the one file below results/ that Git tracks."""


def lock(root: Path, studies: Iterable[Path]) -> dict[str, Any]:
    """Checksums and contents of all artefacts of ``studies``, and the code, packages and sources in their records.

    Raises:
        DataError: if an artefact is damaged or gone, since a lock must not vouch for it.
    """
    tree = read_tree(root, studies)
    if tree.damaged:
        raise DataError(
            f"{tree.damaged[0]}: damaged. Run python -m workflow_scripts.audit verify, repair it, and lock again."
        )
    if tree.missing:
        raise DataError(
            f"{tree.missing[0]}: missing, though its job's other files are there. "
            "Run python -m workflow_scripts.audit verify, repair it, and lock again."
        )
    return tree.as_lock()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit lock`` takes."""
    parser.add_argument(
        "studies", type=Path, nargs="*", help="folders of studies; default: all below results/"
    )
    parser.add_argument("--to", type=Path, help=f"file to write; default: {LOCK}")
    parser.add_argument(
        "--check", type=Path, metavar="FILE", help="hold the artefacts against this lock, and write nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Write the lock, or with --json print it; with --check, compare instead, and end with 1 if anything differs."""
    studies = studies_of(args.root, args.studies)
    if args.check is not None:
        return _run_check(args, studies)
    place = args.to or args.root / LOCK
    check_file_place(place)
    found = lock(args.root, studies)
    if args.json:
        print_json(found)
        return 0
    with atomic(place) as temporary:
        temporary.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
    console().print(f"{place}: {len(found['artefacts'])} artefacts", style="green", soft_wrap=True)
    return 0


def _run_check(args: argparse.Namespace, studies: list[Path]) -> int:
    found = check(args.root, studies, args.check)
    if args.json:
        print_json(found.as_data())
    else:
        show(found, console())
    return 1 if found.differences else 0
