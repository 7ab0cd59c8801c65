"""The entry scripts train_encoder, continue_mlm and build_frozen, run in this process."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.support import training_jobs
from workflow_scripts.methods import method_modules, simcse
from workflow_scripts.models.backbone import load_backbone
from workflow_scripts.provenance.artefacts import read_record
from workflow_scripts.settings.methods import read_method

HISTORY_FILE = Path("run/history.parquet")


@pytest.fixture
def workshop(tmp_path, monkeypatch, torch_settings):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "workflow_scripts.provenance.record.git_state", lambda: (None, False)
    )  # somebody may commit meanwhile
    return tmp_path


def test_caveats_of_metrics_go_with_the_model(workshop, monkeypatch):
    """What the metrics tell of a run goes with its model and its path."""
    training_jobs.make_inputs(workshop)
    monkeypatch.setattr(simcse.Objective, "labels", lambda _self, paths: [f"it went wrong {paths}"])
    training_jobs.run_here("train_encoder", training_jobs.config("train_encoder"))
    for file in (
        training_jobs.MODEL / "record.json",
        HISTORY_FILE,
        HISTORY_FILE.with_name("metrics.parquet"),
    ):
        assert [*map(str, read_record(file).labels)] == ["it went wrong {}"]  # SimCSE has no metrics


def test_continued_training_leaves_the_pooler_unchanged(workshop):
    """Continued training changes the encoder and not its pooler."""
    training_jobs.make_inputs(workshop)
    training_jobs.run_here("continue_mlm", training_jobs.config("continue_mlm"))
    before, after = (
        load_file(folder / "model.safetensors") for folder in (Path("encoder"), training_jobs.MODEL)
    )
    assert before.keys() == after.keys()
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {"pooler.dense.weight", "pooler.dense.bias"}
    assert load_file(training_jobs.MODEL / "mlm_head.safetensors").keys() == {
        "bias", "dense.weight", "dense.bias", "norm.weight", "norm.bias",
    }  # fmt: skip


def test_seeds_give_different_encoders_and_a_seed_the_same_bytes(workshop, monkeypatch):
    training_jobs.make_inputs(workshop)
    made = []
    for seed in ("1", "1", "2"):
        monkeypatch.setattr(training_jobs, "SEED", seed)
        training_jobs.run_here("train_encoder", training_jobs.config("train_encoder"))
        made.append(training_jobs.files_of(Path("run")))
    assert made[0] == made[1]
    assert made[0]["model/model.safetensors"] != made[2]["model/model.safetensors"]


# What stops a training


STOPS = {
    "a loss that is not a number": ({"weight_decay": 1e30}, [], r"^TrainingError: training: .* nan at step 2\. Reduce"),
    "a small corpus": ({"batch_size": 41}, [], r"^TrainingError: training: 40 rows, fewer than a batch of 41\. Set batch_size to 40 or less\.$"),
    "damaged weights": ({}, ["encoder/model.safetensors"], r"^DataError: .*encoder/model\.safetensors"),
    "a damaged corpus": ({}, ["corpus/train.parquet"], r"^DataError: .*corpus/train\.parquet"),
}  # fmt: skip


@pytest.mark.parametrize("rule", training_jobs.CONFIGS)
@pytest.mark.parametrize(("changes", "damaged", "line"), STOPS.values(), ids=STOPS)
def test_what_stops_a_training_is_one_line_and_leaves_no_model(workshop, rule, changes, damaged, line):
    training_jobs.make_inputs(workshop)
    for file in damaged:
        Path(file).write_bytes(Path(file).read_bytes() + b"\0")
    with pytest.raises(SystemExit, match=line) as left:
        training_jobs.run_here(rule, training_jobs.config(rule, **changes))
    assert "\n" not in str(left.value.code)
    assert not training_jobs.MODEL.exists()
    assert not HISTORY_FILE.exists()


# Frozen runs


TEMPLATE = {"text": 'This sentence : "[X]" means [MASK].', "add_period": False}
FROZEN = {"module": "frozen", "readout": {"kind": "mask_token"}, "template": TEMPLATE}
JOBS = {
    "train_encoder": lambda: training_jobs.run_here("train_encoder", training_jobs.config("train_encoder")),
    "build_frozen": lambda: training_jobs.call(
        "build_frozen", {"method": FROZEN}, method_modules(read_method(FROZEN, "methods")), run="frozen", seed="1",
        encoder="encoder/record.json", record=training_jobs.MODEL / "record.json",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", JOBS)
def test_an_encoder_that_tells_no_words_apart_ends_the_job(workshop, monkeypatch, rule):
    def alike(*arguments, **settings):
        backbone = load_backbone(*arguments, **settings)
        backbone.embeddings.word_embeddings.weight.data.zero_()
        return backbone

    training_jobs.make_inputs(workshop)
    for place in ("methods.frozen", "jobs.train_encoder"):
        monkeypatch.setattr(f"workflow_scripts.{place}.load_backbone", alike)
    with pytest.raises(SystemExit, match="sentences of different words have one vector"):
        JOBS[rule]()
