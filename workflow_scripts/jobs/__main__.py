"""Run one job: ``python -m workflow_scripts.jobs RULE``, with its call (``provenance.job``) on standard input.

The call names the module of the function that does the work, which is called as its rule.

The call may also be given as an argument, as to the processes that share a training. On one machine, torchrun starts
these. In a SLURM job that spans several nodes, srun starts a torchrun on each of them, and they meet at the first node,
at a port that follows from the job's number. Which of the two it is decides no number: the processes share the batch.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence

from workflow_scripts.errors import ConfigError, one_line_errors
from workflow_scripts.provenance.job import begin

_FIRST_PORT, _PORTS = 20_000, 10_000
"""Below the ports that Linux gives to whoever asks for any."""

Say = Callable[..., str]


def main(arguments: Sequence[str]) -> None:
    """Run the job, or become what starts the processes that share it."""
    rule, *given = arguments
    text = given[0] if given else sys.stdin.read()
    call = json.loads(text)
    job = begin(rule, call)
    rank = os.environ.get("RANK")
    if rank is None and job.restore():  # the processes that share a training are started after this
        return
    processes = call["settings"].get("training", {}).get("gpus", 1)
    if processes > 1 and rank is None:
        become(["workflow_scripts.jobs", rule, text], processes)
    module = importlib.import_module(f"workflow_scripts.{call['module']}")
    if not gc.isenabled():  # as `snapshot` has left it
        gc.freeze()  # what has been loaded stays
        gc.enable()
    getattr(module, rule)(job)
    if rank in (None, "0"):
        job.keep()


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def command(
    module: Sequence[str],
    processes: int,
    job: str | None,
    say: Say = _said,
) -> list[str]:
    """The command that starts the processes.

    Args:
        module: The training's module and its arguments.
        processes: In all, each with a GPU where there are GPUs.
        job: Number of the SLURM job that this runs in, if any.
        say: What a command prints; asked about the job's nodes.

    Raises:
        ConfigError: if the processes cannot be dealt out evenly to the nodes.
    """
    nodes = nodes_of(job, say) if job else []
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    if len(nodes) < 2:
        return [*torchrun, "--standalone", f"--nproc-per-node={processes}", "-m", *module]
    if processes % len(nodes):
        raise ConfigError(f"training.gpus: {processes} processes on {len(nodes)} nodes. Make it a multiple.")
    meeting = f"{nodes[0]}:{_FIRST_PORT + int(str(job)) % _PORTS}"
    return [
        "srun", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", "--ntasks-per-node=1", "--kill-on-bad-exit=1",
        *torchrun, f"--nnodes={len(nodes)}", f"--nproc-per-node={processes // len(nodes)}",
        "--rdzv-backend=c10d", f"--rdzv-id={job}", f"--rdzv-endpoint={meeting}", "-m", *module,
    ]  # fmt: skip


def nodes_of(job: str, say: Say) -> list[str]:
    """Names of a job's nodes, the one first that its script runs on."""
    listed = say("squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()
    return say("scontrol", "show", "hostnames", listed).split() if listed else []


def become(module: Sequence[str], processes: int) -> None:
    """Become what starts the processes, so that signals reach it."""
    started = command(module, processes, os.environ.get("SLURM_JOB_ID"))
    sys.stdout.flush()
    os.execvp(started[0], started)


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
