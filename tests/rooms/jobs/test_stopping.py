"""A training that its scheduler asks to stop, as a process of its own."""

import os
import signal
import time

from tests import jobs
from workflow_scripts.errors import EXIT_TRY_AGAIN
from workflow_scripts.provenance.artefacts import identity


def start(folder, call):
    return jobs.Started("train_encoder", call, folder, os.environ | {"GIT_DIR": os.devnull})


def test_a_training_asked_to_stop_leaves_with_75_and_goes_on_to_the_same_bytes(
    tmp_path, monkeypatch, torch_settings
):
    """SIGTERM to the job as its rule starts it; the comparison is made by this process, which never stopped.

    Identities are compared, not bytes: this process has loaded more packages, which each file's origin says.
    """
    settings = jobs.config("train_encoder", max_steps=120, checkpoint_minutes=0)
    call = jobs.training_call("train_encoder", settings)
    stopped, whole = (jobs.make_inputs(tmp_path / name) for name in ("stopped", "whole"))
    monkeypatch.chdir(whole)
    jobs.run_here("train_encoder", settings)
    training = start(stopped, call)
    checkpoints = stopped / "run/model.checkpoints"
    while training.poll() is None and not list(checkpoints.glob("*/COMPLETE.json")):
        time.sleep(0.005)
    training.send_signal(signal.SIGTERM)
    printed, _ = training.communicate()
    assert training.returncode == EXIT_TRY_AGAIN, printed
    assert printed.splitlines()[-1].startswith("Preempted: stopped after step ")
    assert "Traceback" not in printed
    assert [path.name for path in (stopped / "run").iterdir()] == ["model.checkpoints"]
    again = start(stopped, call)
    printed, _ = again.communicate()
    assert again.returncode == 0, printed
    made = [
        {name: identity(place / "run" / name) for name in jobs.files_of(place / "run")}
        for place in (stopped, whole)
    ]
    assert made[0] == made[1] and len(made[0]) > 8
