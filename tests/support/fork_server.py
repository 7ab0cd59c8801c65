"""Start Python's programs as forks of one process that has loaded PyTorch, Snakemake and the packages around them.

``python -m tests.support.fork_server SOCKET PROCESS`` is that process, as long as PROCESS lives. ``programs`` starts it,
once for all processes that share the tests, and returns a folder for the front of PATH. Its ``python`` and ``snakemake``
hand their arguments, files, folder and environment over to that process, which forks; other commands go to Python. A
program finds the project's modules unloaded, as in a process of its own.

It saves the start of Python and the imports of each program. On two busy cores ``tests/pipeline/test_plan.py`` took 89
seconds with forks and 118 without; ``tests/pipeline/test_gaps.py``, which runs many jobs, took 196 with forks, while
without them one of its three tests was done after 240. A file that starts few programs gains nothing.
``SEMBLANCE_TEST_PROCESSES=plain`` starts plain processes, as a user does; ``.ci/run`` runs two files that way.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.support.snakemake_plans import PLAIN, ROOT, prepare

PACKAGES = (
    "torch", "transformers", "sentence_transformers", "pandas", "scipy.stats", "sklearn.cluster", "sklearn.decomposition",
    "sklearn.linear_model", "sklearn.preprocessing", "matplotlib.pyplot", "pyarrow.parquet", "jinja2", "pytest",
    "transformers.models.auto.modeling_auto", "transformers.models.bert.modeling_bert", "safetensors.torch", "datasets",
    "snakemake.cli", "snakemake.api", "snakemake.workflow", "snakemake.dag", "snakemake.scheduling.job_scheduler",
)  # fmt: skip
CLIENT = """#!{python} -IS
import json, os, socket, sys
words = sys.argv[1:]
if sys.argv[0].endswith("snakemake"):
    words[:0] = ["-m", "snakemake"]
if words[:1] != ["-c"] and words[:1] + words[1:2] not in [["-m", name] for name in {modules!r}]:
    os.execv({python!r}, [{python!r}, *words])
server = socket.socket(socket.AF_UNIX)
server.connect({place!r})
socket.send_fds(server, [b"."], [0, 1, 2])
server.sendall(json.dumps([words, os.getcwd(), dict(os.environ)]).encode() + b"\\n")
sys.exit(int(server.recv(9)))
"""
MODULES = ("workflow_scripts", "workflow_scripts.jobs", "snakemake", "pytest")


@cache
def programs() -> Path:
    """Return a folder with these programs, for the front of PATH; it exists as long as pytest runs."""
    if PLAIN:
        return Path(sys.executable).parent
    shared = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = Path(tempfile.gettempdir(), f"semblance-{shared or uuid.uuid4().hex}")
    place = folder / "socket"
    try:
        folder.mkdir()
    except FileExistsError:
        _wait_for(place)
        return folder
    text = CLIENT.format(python=sys.executable, place=str(place), modules=MODULES)
    for name in ("python", "snakemake"):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for_jobs = ("PYTHONPATH", "PYTHONSAFEPATH")  # as a study that a test has opened leaves them
    environment = {name: value for name, value in os.environ.items() if name not in for_jobs}
    pytest = os.getppid() if shared else os.getpid()
    command = [sys.executable, "-m", "tests.support.fork_server", place, str(pytest)]
    _wait_for(place, subprocess.Popen(command, cwd=ROOT, env=environment))
    return folder


def _wait_for(place: Path, server: subprocess.Popen[bytes] | None = None) -> None:
    while not place.exists():
        assert server is None or server.poll() is None
        time.sleep(0.05)


def wait_for_a_program(place: Path, pytest: int) -> list[str]:
    """Serve as long as a process lives; returns in a child, which is to be the program of these words."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that hand over the exit codes
    ended = os.pidfd_open(pytest)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place.with_suffix(".new")))
    listening.listen(64)
    place.with_suffix(".new").rename(place)
    while True:
        if ended in select.select([listening, ended], [], [])[0]:
            shutil.rmtree(place.parent)
            os._exit(0)
        asking, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            words = _become(asking)
            if (job := os.fork()) == 0:
                asking.close()
                return words
            if asking in select.select([asking, os.pidfd_open(job)], [], [])[0]:
                os.killpg(0, signal.SIGKILL)  # the program was killed: its fork is, and what this has started
            code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
            asking.sendall(str(code % 256).encode())
            os._exit(0)
        asking.close()


def _become(asking: socket.socket) -> list[str]:
    """Take over files, folder and environment of the program that asks; returns its words."""
    _, files, *_ = socket.recv_fds(asking, 1, 3)
    for stream, file in enumerate(files):
        os.dup2(file, stream)
    words, folder, environment = json.loads(asking.makefile("rb").readline())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for name in [
        name for name in sys.modules if name.partition(".")[0] in ("tests", "workflow_scripts", "__mp_main__")
    ]:
        del sys.modules[name]
    path = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:1] = path if environment.get("PYTHONSAFEPATH") else [folder, *path]
    return list(words)


def run(words: list[str]) -> int:
    """Be ``python WORDS``; returns the exit code."""
    kind, what, *rest = words
    sys.argv = [kind, *rest]  # -m as while Python looks for the module
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), vars(sys.modules["__main__"]))
    except SystemExit as stop:
        if isinstance(stop.code, str):
            sys.stderr.write(f"{stop.code}\n")
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    for name in PACKAGES:
        importlib.import_module(name)
    prepare()
    conversion = importlib.import_module("transformers.conversion_mapping")
    conversion.get_checkpoint_conversion_mapping("bert")  # compiles a thousand patterns
    gc.freeze()
    code = run(wait_for_a_program(Path(sys.argv[1]), int(sys.argv[2])))
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Python would take the packages apart, and so copy them: half a second of each program
