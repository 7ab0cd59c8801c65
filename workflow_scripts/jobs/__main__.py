"""Several jobs in one process: python -m workflow_scripts.jobs evaluate_sts ... --then evaluate_geometry ...

Starting Python and PyTorch takes longer than a small job. Each of these jobs has its own settings, key and record, and
is kept and put back on its own, as if it had been started alone. One that fails does not stop those behind it.
"""

import importlib
import sys
from collections.abc import Iterable

from workflow_scripts.errors import EXIT_INTERRUPTED, one_line_errors
from workflow_scripts.provenance.job import jobs_of


def main(line: Iterable[str]) -> None:
    """Run one job after the other, unless interrupted; exits with the code of the first that failed."""
    failed = 0
    for job in jobs_of(line):
        code = _run(*job)
        if code == EXIT_INTERRUPTED:
            sys.exit(code)
        failed = failed or code
    sys.exit(failed)


def _run(name: str, *arguments: str) -> int:
    """The exit code of one job."""
    sys.argv = [name, *arguments]
    try:
        with one_line_errors():
            importlib.import_module(f"workflow_scripts.jobs.{name}").main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
            return 1
        return end.code or 0
    return 0


if __name__ == "__main__":
    main(sys.argv[1:])
