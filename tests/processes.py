"""Commands that start other processes."""

import os
import signal
import subprocess
from collections.abc import Sequence


def run_together(command: Sequence[str], seconds: float, **environment: str) -> str | None:
    """Run a command that starts other processes, and end all of them if it takes too long.

    Returns:
        None if it ends well; else what it wrote about its failure, never empty.
    """
    process = subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own
    )
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # torchrun passes it on, and kills after half a minute
        process.communicate()
        return f"ended after {seconds:g} seconds"
    return (said.strip() or "no reason was given") if process.returncode else None
