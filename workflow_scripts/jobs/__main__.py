"""Run one job: ``python -m workflow_scripts.jobs RULE``, with its call (``provenance.job``) on standard input.

The call has the module of the job's function, which has the name of the rule.

The call may also be an argument, as for the processes of a training, which torchrun starts.
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
    """Run the job, or become torchrun, which starts the job's processes."""
    rule, *given = arguments
    text = given[0] if given else sys.stdin.read()
    call = json.loads(text)
    job = begin(rule, call)
    rank = os.environ.get("RANK")
    if rank is None and job.restore():  # torchrun starts the processes of a training after this
        return
    share_compiled(job.workplace.cache)
    processes = call["settings"].get("training", {}).get("gpus", 1)
    if rank is None:
        asked = job.operational.get("gpu", 0)  # limited by Snakemake's GPUs
        cards.take(processes if asked and processes > 1 else asked)
        if processes > 1:
            become(["workflow_scripts.jobs", rule, text], processes)
    else:
        cards.end_with_parent()
    gc.disable()  # imports make no garbage, and collection takes a fifth of PyTorch's import time
    module = importlib.import_module(f"workflow_scripts.{call['module']}")
    gc.freeze()  # loaded modules stay
    gc.enable()
    getattr(module, rule)(job)
    if __name__ == "__main__":  # other processes, such as tests, load further modules
        check_loaded(job.start.meaning)
    if rank in (None, "0"):
        job.keep()


def become(module: Sequence[str], processes: int) -> None:
    """Replace this process by torchrun, which then gets signals and starts the processes."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    sys.stdout.flush()
    os.execvp(torchrun[0], [*torchrun, f"--nproc-per-node={processes}", "-m", *module])


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
