"""The entry script that deletes weights which a study does not keep."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests import jobs
from workflow_scripts.columns.training import DROPPED, HISTORY
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import kept
from workflow_scripts.provenance.artefacts import (
    check_model_folder,
    job_record,
    read_record,
    read_table,
    write_table,
    writing_model_folder,
)

RUN = Path("results/study/runs/simcse")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of three seeds, of which the second scored best; each model is kept beside itself."""
    monkeypatch.chdir(tmp_path)
    for seed, scores in ((1, [0.5, 0.6]), (2, [0.8, 0.1]), (10, [None, 0.7])):
        model, history = RUN / f"seed{seed}/model", RUN / f"seed{seed}/history.parquet"
        wildcards = {"run": "simcse", "seed": str(seed)}
        record = job_record(
            "train_encoder",
            settings={},
            inputs={},
            outputs=[model / "record.json", history],
            wildcards=wildcards,
        )
        with writing_model_folder(model, record) as place:
            (place / "0_Transformer").mkdir()
            (place / "0_Transformer/model.safetensors").write_bytes(b"weights %d" % seed)
            (place / "config.json").write_text("{}")
        rows = [
            {"step": n, "loss": 1.0, "learning_rate": 0.0, "gradient_norm": 1.0, "dev_score": score}
            for n, score in enumerate(scores)
        ]
        write_table(history, pa.Table.from_pylist(rows, schema=HISTORY), record)
        kept.keep([model, history], [], record.key)
    return RUN


def drop(keep, seeds=(1, 2, 10), histories=True):
    files = [RUN / f"seed{seed}/history.parquet" for seed in seeds] if histories else []
    settings, output = {"keep_models": keep, "seeds": list(seeds)}, RUN / "dropped_weights.parquet"
    call = jobs.call_of("drop_models", settings, run="simcse", histories=files, dropped=output)
    jobs.begin_here("drop_models", call)
    return read_table(output, DROPPED).to_pylist()


def left():
    return [
        seed for seed in (1, 2, 10) if (RUN / f"seed{seed}/model/0_Transformer/model.safetensors").exists()
    ]


def test_the_seed_that_scored_highest_stays(run, monkeypatch):
    dropped = drop("best")
    assert left() == [2]
    assert [row["file"] for row in dropped] == [
        f"{RUN}/seed{seed}/model/0_Transformer/model.safetensors" for seed in (1, 10)
    ]
    record = read_record(RUN / "seed1/model")
    assert dropped[0]["sha256"] == record.files["0_Transformer/model.safetensors"]
    assert (RUN / "seed1/model/config.json").exists()
    assert not (RUN / "seed1/.kept/model").exists()  # whose links would hold the bytes
    assert (RUN / "seed2/.kept/model").exists()
    check_model_folder(RUN / "seed2/model")


def test_no_seed_stays_where_none_is_kept(run, monkeypatch):
    assert len(drop("none")) == 3
    assert left() == []


def test_the_first_seed_of_a_run_that_was_not_trained_stays(run, monkeypatch):
    drop("best", histories=False)
    assert left() == [1]


def test_a_second_try_after_a_kill_lists_the_same(run, monkeypatch):
    first = drop("best")
    assert drop("best") == first


def test_whoever_reads_dropped_weights_is_told_how_to_make_them_again(run, monkeypatch):
    drop("none")
    with pytest.raises(DataError, match=r"model\.safetensors: missing.*Delete .*record\.json and rerun"):
        check_model_folder(RUN / "seed1/model")
