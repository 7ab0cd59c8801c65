"""A training that its scheduler asks to stop, by the real command."""

import json
import os
import signal
import subprocess
import sys
import time

from tests import jobs
from workflow_scripts.errors import EXIT_TRY_AGAIN
from workflow_scripts.provenance.artefacts import identity
from workflow_scripts.provenance.closure import ROOT

STEPS = 120


def start(folder, call):
    environment = {"PYTHONPATH": str(ROOT), "GIT_DIR": os.devnull, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "workflow_scripts.jobs", "train_encoder", json.dumps(call)],
        cwd=folder, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_training_asked_to_stop_leaves_with_75_and_goes_on_to_the_same_bytes(
    tmp_path, monkeypatch, torch_settings
):
    """SIGTERM to the real command; the comparison is made by this process, which never stopped.

    Identities are compared, not bytes: this process has loaded more packages, which each file's origin says.
    """
    settings = jobs.config("train_encoder", max_steps=STEPS, checkpoint_minutes=0)
    call = jobs.training_call("train_encoder", settings)
    stopped, whole = (jobs.make_inputs(tmp_path / name) for name in ("stopped", "whole"))
    training = start(stopped, call)
    checkpoints = stopped / "run/model.checkpoints"
    while training.poll() is None and not list(checkpoints.glob("*/COMPLETE.json")):
        time.sleep(0.005)
    training.send_signal(signal.SIGTERM)
    _, errors = training.communicate()
    assert training.returncode == EXIT_TRY_AGAIN, errors[-3000:]
    assert errors.splitlines()[-1].startswith("Preempted: stopped after step ")
    assert "Traceback" not in errors
    assert [path.name for path in (stopped / "run").iterdir()] == ["model.checkpoints"]
    again = start(stopped, call)
    _, errors = again.communicate()
    assert again.returncode == 0, errors[-3000:]
    monkeypatch.chdir(whole)
    jobs.run_here("train_encoder", settings)
    made = [
        {name: identity(place / "run" / name) for name in jobs.files_of(place / "run")}
        for place in (stopped, whole)
    ]
    assert made[0] == made[1] and len(made[0]) > 8
