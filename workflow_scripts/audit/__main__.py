"""Check and show where the files below results/ come from.

Every artefact carries a checksum, which a single changed byte invalidates, and a record of the settings, inputs,
code and packages that made it. These commands read both and need no network; only `adopt` changes what is there.
"""

import argparse
import sys
from pathlib import Path

from workflow_scripts.audit import (
    adopt,
    cost,
    crate,
    diff,
    explain,
    export,
    lineage,
    lock,
    rebuild,
    records,
    secrets,
    stale,
    verify,
)
from workflow_scripts.errors import one_line_errors

COMMANDS = {
    "verify": verify,
    "explain": explain,
    "lineage": lineage,
    "stale": stale,
    "adopt": adopt,
    "rebuild": rebuild,
    "records": records,
    "diff": diff,
    "cost": cost,
    "secrets": secrets,
    "crate": crate,
    "export": export,
    "lock": lock,
}


def main() -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m workflow_scripts.audit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=(module.__doc__ or "").splitlines()[0],
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument(
            "--root",
            type=Path,
            default=Path(),
            help="folder where snakemake ran; records name paths from there",
        )
        command.add_argument("--json", action="store_true", help="print data instead of a table")
        module.add_arguments(command)
    args = parser.parse_args()
    code: int = COMMANDS[args.command].run(args)
    return code


if __name__ == "__main__":
    with one_line_errors():
        sys.exit(main())
