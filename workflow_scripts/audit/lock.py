"""Write down what a study holds: every artefact's seal, and the code, packages and sources behind them.

The file is sorted and small enough to commit beside numbers taken from the study: who runs the study again
compares two locks and sees what differs.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from workflow_scripts.artefacts import atomic
from workflow_scripts.audit.disk import Look, collect, look_at_all
from workflow_scripts.audit.reading import is_outside, print_json
from workflow_scripts.audit.verify import studies_of
from workflow_scripts.errors import DataError


def lock(root: Path, study: Path) -> dict[str, Any]:
    """Seals of all artefacts of one study, and what their records agree on.

    Raises:
        DataError: if an artefact is damaged: a lock must not vouch for it.
    """
    tree = collect(root, [study])
    looks = look_at_all(tree, advance=lambda _bytes: None)
    if damaged := sorted(name for name, look in looks.items() if look.damage):
        raise DataError(
            f"{damaged[0]}: damaged. Run python -m workflow_scripts.audit verify, mend, and lock again."
        )
    records = [look.record for look in looks.values() if look.record]
    sources = {
        used.path: used.sha256
        for record in records
        for used in record.inputs.values()
        if is_outside(used.path)
    }
    return {
        "artefacts": {name: look.seal for name, look in looks.items() if _stands_alone(name, look)},
        "code": {path: sha for record in records for path, sha in record.code.items()},
        "commits": sorted({f"{record.commit}{' (dirty)' * record.dirty}" for record in records}),
        "packages": {name: version for record in records for name, version in record.packages.items()},
        "sources": sources,
    }


def _stands_alone(name: str, look: Look) -> bool:
    return look.seal is not None and (look.record is not None or Path(name).name == "record.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the study and the file to write."""
    parser.add_argument("study", type=Path, help="folder of the study: results/<study>")
    parser.add_argument("--to", type=Path, help="file to write; left out, the lock is printed")


def run(args: argparse.Namespace) -> int:
    """Write or print the lock."""
    (study,) = studies_of(args.root, [args.study])
    found = lock(args.root, study)
    if args.to is None:
        print_json(found)
        return 0
    with atomic(args.to) as temporary:
        temporary.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
    return 0
