"""Run one job: ``python -m workflow_scripts.jobs RULE``, with its call (``provenance.job``) on standard input.

The call may also be given as an argument, as to the processes that share a training.
"""

import gc
import importlib
import json
import os
import sys
from collections.abc import Sequence

from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.job import begin


def main(arguments: Sequence[str]) -> None:
    """Run the job, or become what starts the processes that share it."""
    rule, *given = arguments
    text = given[0] if given else sys.stdin.read()
    call = json.loads(text)
    processes = call["settings"].get("training", {}).get("gpus", 1)
    if processes > 1 and "RANK" not in os.environ:
        from workflow_scripts.tools.launch import become  # which no job imports

        become(["workflow_scripts.jobs", rule, text], processes)
    job = begin(rule, call)
    script = importlib.import_module(f"workflow_scripts.jobs.{rule}")
    if not gc.isenabled():  # as `snapshot` has left it
        gc.freeze()  # what has been loaded stays
        gc.enable()
    script.main(job)


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
