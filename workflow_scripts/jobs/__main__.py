"""Several jobs by one command, one after the other or side by side (``provenance.line`` has the form of the lines).

    python -m workflow_scripts.jobs evaluate_sts ... --then evaluate_geometry ...
    python -m workflow_scripts.jobs --beside seed record -m workflow_scripts.jobs.train_encoder --seed 1 2 ...

Starting Python and PyTorch takes longer than a small job. Each of these jobs has its own settings, key and record, and
is kept and put back on its own, as if it had been started alone. One that fails does not stop the others.

Side by side, each is a process of its own: a step of a small encoder takes a GPU less time than Python takes to launch
its kernels, so that several trainings wait for one interpreter, whatever streams it gives them, while processes launch
theirs at the same time. What that gains on a GPU has not been measured. The modules are imported once, before the
processes part, and nothing there may ask for a GPU, since CUDA does not survive a fork.
"""

import gc
import importlib
import os
import runpy
import signal
import sys
import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from workflow_scripts.errors import EXIT_INTERRUPTED, EXIT_TRY_AGAIN, one_line_errors
from workflow_scripts.provenance.line import (
    BESIDE,
    MODULE,
    jobs_beside,
    jobs_of,
    log_beside,
    names_beside,
)

_PASSED_ON = {signal.SIGTERM, signal.SIGUSR1, signal.SIGINT}
"""What asks a job to stop, and reaches each of those side by side."""
_FROM_TERMINAL = 0x80
"""What Linux has for the origin of a Ctrl-C (SI_KERNEL), which reaches every process of the terminal by itself."""
_THREADS = tuple(f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"))
"""Variables by which Snakemake tells a job its number of threads."""


def main(line: Sequence[str]) -> None:
    """Run the jobs; exits with the code of the first that failed, or of an interruption."""
    if line[:1] == [BESIDE]:
        with one_line_errors():
            sys.exit(_side_by_side(line))
    codes = []
    for job in jobs_of(line):
        codes.append(_run(*job))
        if codes[-1] == EXIT_INTERRUPTED:
            sys.exit(codes[-1])
    failed, done = next(filter(None, codes), 0), codes.count(0)
    if failed and done:
        said = f"What {done} of {len(codes)} jobs of this command made is kept, and put back by the next run."
        print(said, file=sys.stderr)  # noqa: T201
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


def _side_by_side(line: Sequence[str]) -> int:
    """The exit code of jobs that run at the same time, each in a process of its own."""
    names = names_beside(line)
    module, *words = line[line.index(MODULE) + 1 :]
    jobs = jobs_beside(names, words)
    _share_threads(len(jobs))
    # Before anything is imported: a thread of a library would else be ended by what is meant for the jobs.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
    importlib.import_module(module)
    gc.freeze()  # else the first collection of each process copies the pages of all modules
    children = []
    for job, log in zip(jobs, _logs(names[0], jobs), strict=True):
        child = _fork()
        if not child:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _become(module, job, log)
        children.append(child)
    return _exit_code(_watch(children))


def _share_threads(jobs: int) -> None:
    """Tell libraries the threads of one job, where Snakemake tells those of all: sums depend on their number."""
    for name in _THREADS:
        if os.environ.get(name, "").isdigit():
            os.environ[name] = str(max(1, int(os.environ[name]) // jobs))


def _logs(name: str, jobs: Sequence[Sequence[str]]) -> list[Path | None]:
    """The log of each job but the first, which has that of this process; None where this process has none."""
    own = Path("/proc/self/fd/1").resolve()
    if own.suffix != ".log":
        return [None] * len(jobs)
    first, *others = (job[job.index(f"--{name}") + 1] for job in jobs)
    return [None, *(log_beside(own, name, first, value) for value in others)]


def _fork() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python 3.12 warns of other threads; only libraries for algebra have some by now, and restart theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become(module: str, arguments: Sequence[str], log: Path | None) -> None:
    """Be the process of one job, as if it had been started alone, and leave."""
    if log:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.close(file)
    sys.argv = [module, *arguments]
    del sys.modules[module]  # which runs once more, by its own name for itself
    runpy.run_module(module, run_name="__main__")
    sys.exit()


def _watch(children: Collection[int]) -> list[int]:
    """Pass signals on to some processes until all have ended; their exit codes, as a shell has them."""
    codes: dict[int, int] = {}
    while running := [child for child in children if child not in codes]:
        told = signal.sigwaitinfo({*_PASSED_ON, signal.SIGCHLD})
        if told.si_signo != signal.SIGCHLD and told.si_code != _FROM_TERMINAL:
            for child in running:
                os.kill(child, told.si_signo)
        for child in running:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                codes[child] = code if code >= 0 else 128 - code
    return [codes[child] for child in children]


def _exit_code(codes: Iterable[int]) -> int:
    """That of a job that was interrupted, or else of the first that failed."""
    return max(codes, key=lambda code: (code in (EXIT_TRY_AGAIN, EXIT_INTERRUPTED), code != 0), default=0)


if __name__ == "__main__":
    main(sys.argv[1:])
