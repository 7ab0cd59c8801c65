"""Run one job: ``python -m workflow_scripts.jobs RULE``, with its call (``provenance.job``) on standard input.

The call names the module of the function that does the work, which is called as its rule.

The call may also be given as an argument, as to the processes that share a training, which torchrun starts.
"""

import gc
import importlib
import json
import os
import sys
from collections.abc import Sequence

from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance import cards
from workflow_scripts.provenance.cache import share_compiled
from workflow_scripts.provenance.job import begin, check_loaded


def main(arguments: Sequence[str]) -> None:
    """Run the job, or become what starts the processes that share it."""
    rule, *given = arguments
    text = given[0] if given else sys.stdin.read()
    call = json.loads(text)
    job = begin(rule, call)
    rank = os.environ.get("RANK")
    if rank is None and job.restore():  # the processes that share a training are started after this
        return
    share_compiled(job.workplace.cache)
    processes = call["settings"].get("training", {}).get("gpus", 1)
    if rank is None:
        asked = job.operational.get("gpu", 0)  # no more than Snakemake may give away at once
        cards.take(processes if asked and processes > 1 else asked)
        if processes > 1:
            become(["workflow_scripts.jobs", rule, text], processes)
    else:
        cards.end_with_parent()
    gc.disable()  # imports make no garbage, and looking for it takes a fifth of the time that PyTorch needs
    module = importlib.import_module(f"workflow_scripts.{call['module']}")
    gc.freeze()  # what has been loaded stays
    gc.enable()
    getattr(module, rule)(job)
    if __name__ == "__main__":  # other processes, such as tests, load more modules than a job
        check_loaded(job.start.meaning)
    if rank in (None, "0"):
        job.keep()


def become(module: Sequence[str], processes: int) -> None:
    """Become torchrun, which starts the processes, so that signals reach it."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    sys.stdout.flush()
    os.execvp(torchrun[0], [*torchrun, f"--nproc-per-node={processes}", "-m", *module])


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
