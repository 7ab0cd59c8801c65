"""The entry scripts train_encoder, continue_mlm and pool_encoder, run in this process."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests import jobs, tiny
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import method_modules, simcse
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.artefacts import (
    check_model_folder,
    job_record,
    read_record,
    read_table,
    verify_checksum,
    writing_model_folder,
)

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


@pytest.mark.parametrize("rule", RULES)
def test_a_training_writes_checksummed_outputs_and_leaves_nothing_else(workshop, rule):
    jobs.make_inputs(workshop)
    jobs.run_here(rule, jobs.config(rule))
    record = check_model_folder(jobs.MODEL)
    verify_checksum(HISTORY_FILE)
    assert record.rule == rule
    metrics = ["metrics.parquet"] if rule == "train_encoder" else []
    named = [f"run/{name}" for name in metrics]
    assert record.outputs == ["run/history.parquet", *named, "run/model/record.json"]
    assert (
        set(record.inputs) == {"encoder", "corpus", "dev"} if rule == "train_encoder" else {"base", "corpus"}
    )
    left = ["history.parquet", "model", *metrics]
    assert sorted(path.name for path in Path("run").iterdir()) == sorted(left)
    method = "workflow_scripts/methods/simcse.py"
    assert (method in record.meaning) == (rule == "train_encoder")
    assert {"torch", "transformers"} <= record.packages.keys()
    history = read_table(HISTORY_FILE, HISTORY)
    assert history["step"].to_pylist() == list(range(1, jobs.STEPS + 1))
    scored = [
        step for step, score in enumerate(history["dev_score"].to_pylist(), start=1) if score is not None
    ]
    assert scored == ([3, 6, 9, 12] if rule == "train_encoder" else [])
    assert pq.read_table("speed.parquet").column_names == ["step", "sentences_per_second"]
    assert load_backbone(jobs.MODEL).config.hidden_size == tiny.WIDTH
    labels = ["a tiny encoder stands in for a real one"] if rule == "continue_mlm" else []
    assert read_record(HISTORY_FILE).labels == labels


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


def test_a_training_in_chunks_makes_the_weights_of_one_without_under_the_same_key(workshop, monkeypatch):
    """Sixteen views a step, five at a time, twice: by dropout of .1, twelve steps and the checkpoint that scored best."""
    jobs.make_inputs(workshop)
    made, records, sizes = [], [], tiny.passes(monkeypatch)
    for chunk in (None, 5):
        sizes.clear()
        jobs.run_here("train_encoder", jobs.config("train_encoder", chunk=chunk))
        made.append(load_file(jobs.MODEL / "model.safetensors"))
        records.append(check_model_folder(jobs.MODEL))
        assert sizes.count(5) == (0 if chunk is None else 6 * jobs.STEPS)
    whole, chunked = made
    no_effect = "self.key.bias"  # softmax cancels it: its gradient is rounding, which Adam scales up
    for name, weights in whole.items():
        if not name.endswith(no_effect):
            torch.testing.assert_close(chunked[name], weights, rtol=0, atol=1e-4, msg=name)
    assert records[0].key == records[1].key


# What was made before


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
    "a loss that is no number": (spoil_weights, r"^TrainingError: .*nan"),
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


def pool():
    """Make a frozen run."""
    files = {"encoder": "encoder/record.json", "record": jobs.MODEL / "record.json"}
    jobs.call("pool_encoder", {"method": FROZEN}, method_modules(FROZEN), run="frozen", seed="1", **files)


def test_a_frozen_run_is_the_encoder_and_keeps_its_prompt_and_knows_its_mask(workshop):
    jobs.make_inputs(workshop)
    pool()
    assert check_model_folder(jobs.MODEL).rule == "pool_encoder"
    encoder, tokenizer = load_encoder(jobs.MODEL)
    before, after = load_backbone(Path("encoder")).state_dict(), encoder.backbone.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert encoder.template.model_dump() == TEMPLATE
    assert int(encoder.readout.mask_id) == tokenizer.mask_token_id


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
        pool() if rule == "pool_encoder" else jobs.run_here(rule, jobs.config(rule))
