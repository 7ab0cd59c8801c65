"""The entry scripts train_encoder, continue_mlm and pool_encoder, run in this process."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests import jobs, tiny
from workflow_scripts import artefacts
from workflow_scripts.artefacts import (
    check_model_folder,
    check_seal,
    job_record,
    read_record,
    read_table,
    write_table,
    writing_model_folder,
)
from workflow_scripts.errors import one_line_errors
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.schemas import HISTORY, PAIRS, SENTENCES
from workflow_scripts.training.session import development_score

RULES = ("train_encoder", "continue_mlm")
HISTORY_FILE = Path("run/history.parquet")


@pytest.fixture
def workshop(tmp_path, monkeypatch, torch_settings):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(artefacts, "git_state", lambda: (None, False))  # somebody may commit meanwhile
    return tmp_path


def write_corpus(texts):
    rows = [{"sentence": text, "document": number, "position": 0} for number, text in enumerate(texts)]
    record = job_record("split_corpus", settings={}, inputs={}, outputs=[])
    write_table(Path("corpus/train.parquet"), pa.Table.from_pylist(rows, schema=SENTENCES), record)


def stopped(rule, settings):
    """The line with which a job that cannot go on leaves."""
    with pytest.raises(SystemExit) as left:
        jobs.run_here(rule, settings)
    line = str(left.value.code)
    assert "\n" not in line
    assert not jobs.MODEL.exists()
    assert not HISTORY_FILE.exists()
    return line


@pytest.mark.parametrize("rule", RULES)
def test_a_training_writes_sealed_outputs_and_leaves_nothing_else(workshop, rule):
    jobs.make_inputs(workshop)
    jobs.run_here(rule, jobs.config(rule))
    record = check_model_folder(jobs.MODEL)
    check_seal(HISTORY_FILE)
    assert record.rule == rule
    watched = ["watched.parquet"] if rule == "train_encoder" else []
    assert record.outputs == ["run/history.parquet", "run/model/record.json", *(f"run/{w}" for w in watched)]
    assert (
        set(record.inputs) == {"encoder/encoder/record.json", "corpus", "dev"}
        if rule == "train_encoder"
        else {"base", "corpus"}
    )
    assert sorted(path.name for path in Path("run").iterdir()) == ["history.parquet", "model", *watched]
    method = "workflow_scripts/methods/simcse.py"
    assert (method in record.code) == (rule == "train_encoder")
    assert {"torch", "transformers"} <= record.packages.keys()
    history = read_table(HISTORY_FILE, HISTORY)
    assert history["step"].to_pylist() == list(range(1, jobs.STEPS + 1))
    assert pq.read_table("speed.parquet").column_names == ["step", "sentences_per_second"]
    assert load_backbone(jobs.MODEL).config.hidden_size == tiny.WIDTH
    labels = ["a tiny encoder stands in for a real one"] if rule == "continue_mlm" else []
    assert read_record(HISTORY_FILE).labels == labels


def test_the_checkpoint_that_scored_best_is_the_one_that_is_saved(workshop):
    jobs.make_inputs(workshop)
    jobs.run_here("train_encoder", jobs.config("train_encoder", learning_rate=0.03))
    scores = read_table(HISTORY_FILE, HISTORY)["dev_score"].to_pylist()
    evaluated = {step: score for step, score in enumerate(scores, start=1) if score is not None}
    assert list(evaluated) == [3, 6, 9, 12]
    assert max(evaluated.values()) > evaluated[12]  # else the last would do
    encoder, tokenizer = load_encoder(jobs.MODEL)
    again = development_score(encoder, tokenizer, read_table(Path("corpus/dev.parquet"), PAIRS), 16)()
    assert again == max(evaluated.values())


def test_the_head_that_was_trained_is_saved_and_not_used_at_test(workshop):
    jobs.make_inputs(workshop)
    jobs.run_here("train_encoder", jobs.config("train_encoder"))
    encoder, tokenizer = load_encoder(jobs.MODEL)
    bare = encode(encoder, tokenizer, ["The town."], 16)
    encoder.head_at_test = True
    assert np.abs(encode(encoder, tokenizer, ["The town."], 16) - bare).max() > 1e-3


def test_continued_training_changes_the_encoder_and_not_its_pooler(workshop):
    jobs.make_inputs(workshop)
    jobs.run_here("continue_mlm", jobs.config("continue_mlm"))
    before, after = (load_file(folder / "model.safetensors") for folder in (Path("encoder"), jobs.MODEL))
    assert before.keys() == after.keys()
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {"pooler.dense.weight", "pooler.dense.bias"}
    history = read_table(HISTORY_FILE, HISTORY)
    assert history["dev_score"].null_count == jobs.STEPS
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


@pytest.mark.parametrize("rule", RULES)
def test_a_loss_that_is_no_number_ends_in_one_line_without_a_model(workshop, rule):
    jobs.make_inputs(workshop)
    weights = load_file("encoder/model.safetensors")
    weights["encoder.layer.1.output.dense.weight"][0, 0] = float("nan")
    record = job_record("split_corpus", settings={}, inputs={}, outputs=[])
    with writing_model_folder(Path("encoder"), record) as place:
        tiny.write_model(place, "bert")
        save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    line = stopped(rule, jobs.config(rule))
    assert line.startswith("TrainingError: ")
    assert "nan" in line


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("texts", "complaint"), [(7, "7 rows, fewer than a batch of 8"), (0, "0 rows, fewer than a batch of 8")]
)
def test_a_corpus_smaller_than_a_batch_ends_in_one_line(workshop, rule, texts, complaint):
    jobs.make_inputs(workshop, texts=texts)
    line = stopped(rule, jobs.config(rule))
    assert line == f"TrainingError: training: {complaint}. Lower batch_size."


def test_a_development_set_without_pairs_ends_in_one_line(workshop):
    jobs.make_inputs(workshop, pairs=0)
    assert stopped("train_encoder", jobs.config("train_encoder")).startswith(
        "DataError: development set: no pairs"
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"training": {"learning_rat": 1.0}}, r"training.learning_rat"),
        ({"training": {"batch_size": 1}}, r"training.batch_size"),
        ({"method": {"temperature": 2.0}}, r"methods (simcse).temperature"),
        ({"method": {"module": "simce"}}, "workflow_scripts/methods/simce.py"),
        ({"development": {"every": 0}}, "development.every"),
        ({"training": {"max_tokens": 100}, "development": {"max_tokens": 100}}, "the encoder takes 64"),
    ],
)
def test_a_setting_that_is_wrong_is_named_in_one_line(workshop, change, complaint):
    jobs.make_inputs(workshop)
    write_corpus(["the town " * (40 + number) for number in range(9)])
    settings = jobs.config("train_encoder")
    for section, values in change.items():
        settings[section] |= values
    line = stopped("train_encoder", settings)
    assert line.startswith("ConfigError: ")
    assert complaint in line


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("damaged", ["encoder/model.safetensors", "corpus/train.parquet"])
def test_an_input_that_changed_since_it_was_written_is_refused(workshop, rule, damaged):
    jobs.make_inputs(workshop)
    content = bytearray(Path(damaged).read_bytes())
    content[len(content) // 2] ^= 1
    Path(damaged).write_bytes(content)
    line = stopped(rule, jobs.config(rule))
    assert line.startswith("DataError: ")
    assert damaged in line


# Untrained runs


def pool(settings):
    from workflow_scripts.pool_encoder import main

    arguments = {
        "config": json.dumps(settings),
        "run": "untrained_avg",
        "seed": "1",
        "encoder": "encoder/record.json",
    }
    arguments["record"] = str(jobs.MODEL / "record.json")
    before, sys.argv = sys.argv, ["pool_encoder", *(p for k, v in arguments.items() for p in (f"--{k}", v))]
    try:
        with one_line_errors():
            main()
    finally:
        sys.argv = before


UNTRAINED = {"module": "untrained", "readout": {"kind": "pooled", "pooler": "avg", "layers": None}}


def test_an_untrained_run_is_the_encoder_with_a_pooler(workshop):
    jobs.make_inputs(workshop)
    pool({"method": UNTRAINED, "max_tokens": 16})
    assert check_model_folder(jobs.MODEL).rule == "pool_encoder"
    before, after = (load_file(folder / "model.safetensors") for folder in (Path("encoder"), jobs.MODEL))
    assert all(torch.equal(before[name], after[name]) for name in before)
    encoder, _ = load_encoder(jobs.MODEL)
    assert (encoder.described.pooler, encoder.head) == ("avg", None)


def test_an_untrained_run_refuses_layers_that_are_not_there(workshop):
    jobs.make_inputs(workshop)
    with pytest.raises(SystemExit, match=r"DataError: readout\.layers \(9,\): .*0 to 2"):
        pool(
            {
                "method": UNTRAINED | {"readout": {"kind": "pooled", "pooler": "avg", "layers": [9]}},
                "max_tokens": 16,
            }
        )
    assert not jobs.MODEL.exists()
