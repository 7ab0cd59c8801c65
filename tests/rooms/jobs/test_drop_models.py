"""The entry script that deletes weights which a study does not keep."""

from pathlib import Path

import pytest

from tests import jobs
from workflow_scripts.columns import DROPPED_WEIGHTS
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import (
    job_record,
    read_record,
    read_table,
    writing_model_folder,
)
from workflow_scripts.provenance.job import cache_key

RUN = Path("results/study/runs/simcse")


@pytest.fixture
def two_seeds(tmp_path, monkeypatch, cached):
    """A run of two seeds, whose models are cached."""
    monkeypatch.chdir(tmp_path)
    for seed in (1, 10):
        model = RUN / f"seed{seed}/model"
        wildcards = {"run": "simcse", "seed": str(seed)}
        record = job_record(
            "train_encoder", settings={}, inputs={}, outputs=[model / "record.json"], wildcards=wildcards
        )
        with writing_model_folder(model, record) as place:
            (place / "0_Transformer").mkdir()
            (place / "0_Transformer/model.safetensors").write_bytes(b"weights %d" % seed)
            (place / "config.json").write_text("{}")
        cache.put(cache_key(record), {"record": model})
    assert len([*cached.glob("??/*")]) == 2


def drop():
    output = RUN / "dropped_weights.parquet"
    jobs.call("drop_models", {"seeds": [1, 10]}, run="simcse", dropped=output)
    return read_table(output, DROPPED_WEIGHTS).to_pylist()


def test_weights_go_and_are_listed_with_their_hashes_whoever_tries_again(two_seeds, cached):
    dropped = drop()
    assert [row["file"] for row in dropped] == [
        f"{RUN}/seed{seed}/model/0_Transformer/model.safetensors" for seed in (1, 10)
    ]
    assert not any(Path(row["file"]).exists() for row in dropped)
    record = read_record(RUN / "seed1/model")
    assert dropped[0]["sha256"] == record.files["0_Transformer/model.safetensors"]
    assert (RUN / "seed1/model/config.json").exists()
    assert not [*cached.rglob("*.safetensors")]  # links would hold the bytes
    assert drop() == dropped
