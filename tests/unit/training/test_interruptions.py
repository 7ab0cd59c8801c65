"""Trainings that were killed, stopped or damaged end in the same bytes as one that was not."""

import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from tests.interruptions import BETWEEN, TRY_AGAIN, cases
from tests.jobs import STEPS
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.provenance.closure import ROOT

CASES = cases()
WHOLE = {"train_encoder": "nothing", "continue_mlm": "mlm: nothing"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every case played once, in a process of its own that forks for each run."""
    folder = tmp_path_factory.mktemp("interruptions")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "tests.interruptions", str(folder)]
    played = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def outcomes(folder):
    return json.loads((folder / "outcomes.json").read_text())


def expected_files(outcomes, case):
    name = "nothing, other settings" if case.then else WHOLE[case.rule]
    return outcomes[name]["files"]


def test_there_is_something_to_compare(outcomes):
    for name in ("nothing", "nothing, other settings", "mlm: nothing"):
        files = outcomes[name]["files"]
        assert {
            "model.safetensors",
            "config.json",
            "tokenizer.json",
            "record.json",
            "history",
        } <= files.keys()
        assert all(file for kind, file in files.items() if kind != "metrics" or not name.startswith("mlm"))
        assert outcomes[name]["steps"] == list(range(1, STEPS + 1))
    one, other = (outcomes[name]["files"] for name in ("nothing", "nothing, other settings"))
    for file in ("model.safetensors", "record.json", "history"):
        assert one[file] != other[file]


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_a_training_left_in_peace(outcomes, name):
    """Hashes of every file of the model folder and of the tables; nothing else is left beside them."""
    found, case = outcomes[name], CASES[name]
    assert found["code"] == 0, found["log"]
    assert found["files"] == expected_files(outcomes, case)
    metrics = ["metrics.parquet"] if case.rule == "train_encoder" else []
    assert found["left"] == sorted(["history.parquet", "model", *metrics])
    assert "Traceback" not in found["log"] and "-inf" not in found["log"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.interruptions])
def test_the_interruption_took_place(outcomes, name):
    between, case = outcomes[name]["between"], CASES[name]
    assert between["codes"] == [case.code] * len(case.interruptions)
    done = ("killed writing the history", "killed with all written", "asked to stop in the last step")
    assert between["model"] == (name in done)


@pytest.mark.parametrize("name", CASES)
def test_it_went_on_where_the_last_whole_checkpoint_was(outcomes, name):
    assert outcomes[name]["steps"] == list(range(CASES[name].start, STEPS + 1))


@pytest.mark.parametrize("name", ["asked to stop", "Ctrl-C", "mlm: asked to stop"])
def test_a_request_to_stop_leaves_a_checkpoint_and_no_model(outcomes, name):
    between = outcomes[name]["between"]
    assert between == {"codes": [TRY_AGAIN], "model": False, "checkpoints": [f"step{BETWEEN:08d}"]}
    assert (
        f"Preempted: stopped after step {BETWEEN} of {STEPS}; run the job again to go on."
        in outcomes[name]["log"]
    )


def test_the_history_has_every_step_once(folder):
    histories = sorted(folder.glob("*/run/history.parquet"))
    assert len(histories) == len(CASES)
    for path in histories:
        table = pq.read_table(path)
        assert table.schema.remove_metadata() == HISTORY
        assert table["step"].to_pylist() == list(range(1, STEPS + 1))
