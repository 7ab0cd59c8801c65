"""Jobs that Snakemake starts, as forks of one process to which PyTorch and the packages around it are no news.

``python -m tests.forks SOCKET`` is that process. ``with_forks`` starts it and gives a folder with a program ``python`` that
hands a job over to it, and anything else to Python. The project's modules a job finds unloaded, as in a process of its own.
"""

import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.planning import ROOT

PACKAGES = (
    "torch", "transformers", "sentence_transformers", "pandas", "scipy.stats", "sklearn.cluster", "sklearn.decomposition",
    "sklearn.linear_model", "sklearn.preprocessing", "matplotlib.pyplot", "pyarrow.parquet", "jinja2",
    "transformers.models.auto.modeling_auto", "transformers.models.bert.modeling_bert", "safetensors.torch", "datasets",
)  # fmt: skip
CLIENT = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:3] != ["-m", "workflow_scripts.jobs"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({place!r})
socket.send_fds(server, [b"."], [0, 1, 2])
server.sendall(json.dumps([sys.argv[3:], os.getcwd(), dict(os.environ)]).encode())
server.shutdown(socket.SHUT_WR)
sys.exit(int(server.recv(9)))
"""


@contextmanager
def with_forks(folder: Path) -> Iterator[Path]:
    """A folder with such a program, for the front of PATH."""
    place, client = folder / "socket", folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, place=str(place)))
    client.chmod(0o755)
    server = subprocess.Popen([sys.executable, "-m", "tests.forks", place], cwd=ROOT)
    try:
        while not place.exists():
            assert server.poll() is None
            time.sleep(0.05)
        yield folder
    finally:
        server.kill()
        server.wait()


def wait_for_a_job(place: Path) -> None:
    """Serve jobs for ever; returns in a child, whose job is the next one."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that hand over the exit codes
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place.with_suffix(".new")))
    listening.listen(64)
    place.with_suffix(".new").rename(place)
    while True:
        asking, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if (job := os.fork()) == 0:
                return _become(asking)
            code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
            asking.sendall(str(code % 256).encode())
            os._exit(0)
        asking.close()


def _become(asking: socket.socket) -> None:
    """Take over files, folder, environment and words of the program that asks."""
    _, files, *_ = socket.recv_fds(asking, 1, 3)
    for stream, file in enumerate(files):
        os.dup2(file, stream)
    with asking, asking.makefile("rb") as text:
        words, folder, environment = json.loads(text.read())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for name in [
        name for name in sys.modules if name.partition(".")[0] in ("tests", "workflow_scripts", "__mp_main__")
    ]:
        del sys.modules[name]
    sys.path[:1] = environment["PYTHONPATH"].split(os.pathsep)
    sys.argv = ["-m", *words]  # as while Python looks for the module


if __name__ == "__main__":
    for name in PACKAGES:
        importlib.import_module(name)
    wait_for_a_job(Path(sys.argv[1]))
    runpy.run_module("workflow_scripts.jobs", run_name="__main__", alter_sys=True)
