"""The entry scripts train_encoder, continue_mlm and pool_encoder, run in this process."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests import jobs, tiny
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import method_modules, simcse
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.provenance.artefacts import (
    job_record,
    read_record,
    writing_model_folder,
)
from workflow_scripts.settings.methods import read_method

RULES = ("train_encoder", "continue_mlm")
HISTORY_FILE = Path("run/history.parquet")


@pytest.fixture
def workshop(tmp_path, monkeypatch, torch_settings):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "workflow_scripts.provenance.record.git_state", lambda: (None, False)
    )  # somebody may commit meanwhile
    return tmp_path


def test_what_the_metrics_tell_of_a_run_goes_with_its_model_and_its_path(workshop, monkeypatch):
    jobs.make_inputs(workshop)
    monkeypatch.setattr(simcse.Objective, "findings", lambda _self, paths: [f"it went wrong {paths}"])
    jobs.run_here("train_encoder", jobs.config("train_encoder"))
    for file in (jobs.MODEL / "record.json", HISTORY_FILE, HISTORY_FILE.with_name("metrics.parquet")):
        assert read_record(file).labels == ["it went wrong {}"]  # SimCSE has no metrics


def test_continued_training_changes_the_encoder_and_not_its_pooler(workshop):
    jobs.make_inputs(workshop)
    jobs.run_here("continue_mlm", jobs.config("continue_mlm"))
    before, after = (load_file(folder / "model.safetensors") for folder in (Path("encoder"), jobs.MODEL))
    assert before.keys() == after.keys()
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {"pooler.dense.weight", "pooler.dense.bias"}
    assert load_file(jobs.MODEL / "mlm_head.safetensors").keys() == {
        "bias", "dense.weight", "dense.bias", "norm.weight", "norm.bias",
    }  # fmt: skip


def test_seeds_give_different_encoders_and_a_seed_the_same_bytes(workshop, monkeypatch):
    jobs.make_inputs(workshop)
    made = []
    for seed in ("1", "1", "2"):
        monkeypatch.setattr(jobs, "SEED", seed)
        jobs.run_here("train_encoder", jobs.config("train_encoder"))
        made.append(jobs.files_of(Path("run")))
    assert made[0] == made[1]
    assert made[0]["model/model.safetensors"] != made[2]["model/model.safetensors"]


# What stops a training


def spoil_weights():
    weights = load_file("encoder/model.safetensors")
    weights["encoder.layer.1.output.dense.weight"][0, 0] = float("nan")
    record = job_record("count_words", settings={}, inputs={}, outputs=[])
    with writing_model_folder(Path("encoder"), record) as place:
        tiny.write_model(place, "bert")
        save_file(weights, place / "model.safetensors", metadata={"format": "pt"})


def flip_a_byte(name):
    content = bytearray(Path(name).read_bytes())
    content[len(content) // 2] ^= 1
    Path(name).write_bytes(content)


STOPS = {
    "a loss that is not a number": (spoil_weights, r"^TrainingError: .*nan"),
    "a small corpus": (lambda: None, r"^TrainingError: training: 7 rows, fewer than a batch of 8\. Lower batch_size\.$"),
    "damaged weights": (lambda: flip_a_byte("encoder/model.safetensors"), r"^DataError: .*encoder/model\.safetensors"),
    "a damaged corpus": (lambda: flip_a_byte("corpus/train.parquet"), r"^DataError: .*corpus/train\.parquet"),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", STOPS)
def test_what_stops_a_training_is_one_line_and_leaves_no_model(workshop, rule, name):
    spoil, line = STOPS[name]
    jobs.make_inputs(workshop, **({"texts": 7} if name == "a small corpus" else {}))
    spoil()
    with pytest.raises(SystemExit, match=line) as left:
        jobs.run_here(rule, jobs.config(rule))
    assert "\n" not in str(left.value.code)
    assert not jobs.MODEL.exists() and not HISTORY_FILE.exists()


# Frozen runs


TEMPLATE = {"text": 'This sentence : "[X]" means [MASK].', "add_period": False}
FROZEN = {"module": "frozen", "readout": {"kind": "mask_token"}, "template": TEMPLATE}


@pytest.mark.parametrize("rule", ["pool_encoder", "train_encoder"])
def test_an_encoder_that_tells_no_words_apart_ends_the_job(workshop, monkeypatch, rule):
    def alike(*arguments, **settings):
        backbone = load_backbone(*arguments, **settings)
        backbone.embeddings.word_embeddings.weight.data.zero_()
        return backbone

    jobs.make_inputs(workshop)
    monkeypatch.setattr("workflow_scripts.models.encoder.load_backbone", alike)
    place = "methods.frozen" if rule == "pool_encoder" else f"jobs.{rule}"
    monkeypatch.setattr(f"workflow_scripts.{place}.load_backbone", alike)
    with pytest.raises((ConfigError, SystemExit), match="sentences of different words have one vector"):
        if rule == "train_encoder":
            jobs.run_here(rule, jobs.config(rule))
        files = {"encoder": "encoder/record.json", "record": jobs.MODEL / "record.json"}
        jobs.call(
            "pool_encoder",
            {"method": FROZEN},
            method_modules(read_method(FROZEN, "methods")),
            run="frozen",
            seed="1",
            **files,
        )
