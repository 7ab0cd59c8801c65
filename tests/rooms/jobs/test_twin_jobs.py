"""Jobs of runs that are made of runs: 3R with its pool, sub_encoders to a twin, ensembles, teachers and students."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests import jobs, tiny
from workflow_scripts.columns.corpora import EXEMPLARS
from workflow_scripts.columns.training import METRICS, TEACHER
from workflow_scripts.methods import method_modules
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.artefacts import (
    check_model_folder,
    job_record,
    read_record,
    read_table,
    write_table,
)

CLS = {"kind": "pooling", "pooler": "cls_before_pooler", "layers": None}
SIMCSE = jobs.CONFIGS["train_encoder"]["method"]
JTCSE = {
    "module": "jtcse", "readout": CLS, "temperature": 0.05, "dropout": None, "terms": ["nce", "icnce", "ictm"],
    "cross_every": 1, "cross_mode": "parallel", "direction": "random", "modulus_weight": 0.5, "modulus_of": "pooler",
    "bypassed_layernorms": 0,
}  # fmt: skip
THREE_R = {
    "module": "three_r", "base": SIMCSE, "pool": "toy", "k": 3, "words": None, "identify": "batch",
    "subtract": "exemplars", "where": "after_head", "detach": False,
    "threshold": {"surrogate": "straight_through", "start": None, "temperature": 0.05, "travel": 0.1},
}  # fmt: skip
LABEL = "two rates stand in for two languages"


def run(script, settings, **arguments):
    """Call an entry script as its rule does."""
    modules = method_modules(settings["method"]) if "method" in settings else []
    jobs.call(script, settings, modules, **arguments)


def train(name, method, encoder, labels=(), **inputs):
    settings = jobs.config("train_encoder", max_steps=4) | {"method": method}
    settings |= {"labels": list(labels)} if labels else {}
    outputs = {what: f"{name}/{what}.parquet" for what in ("history", "metrics", "speed")}
    files = {
        "corpus": "corpus/train.parquet",
        "dev": "corpus/dev.parquet",
        "record": f"{name}/model/record.json",
    }
    run(
        "train_encoder",
        settings,
        checkpoint_minutes=0,
        run=name,
        seed="1",
        encoder=encoder,
        **files,
        **inputs,
        **outputs,
    )
    return Path(name, "model")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """Everything made once: a 3R run, two sub_encoders, their twin, their sum, its vectors and a student."""
    folder = tmp_path_factory.mktemp("sub_encoders")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setattr("workflow_scripts.provenance.record.git_state", lambda: (None, False))
    jobs.make_inputs(folder)
    texts = tiny.sentences(8, seed=9)
    rows = [dict.fromkeys(EXEMPLARS.names, 0) | {"sentence": t, "source": "toy"} for t in texts]
    record = job_record("count_words", settings={}, inputs={}, outputs=[])
    write_table(Path("pool.parquet"), pa.Table.from_pylist(rows, schema=EXEMPLARS), record)
    base = "encoder/record.json"
    train("three_r", THREE_R, base, exemplars=["pool.parquet"])
    sub_encoders = [
        f"{train(name, SIMCSE | {'dropout': d}, base)}/record.json" for name, d in (("a", 0.1), ("b", 0.2))
    ]
    twin = train("twin", JTCSE, sub_encoders, labels=[LABEL])
    ensemble = {"method": {"module": "ensemble", "weights": None}, "labels": [LABEL]}
    run("join_encoders", ensemble, run="sum", seed="1", encoder=sub_encoders, record="sum/model/record.json")
    pooled = {"method": {"module": "repooled", "readout": CLS | {"pooler": "avg"}}}
    run(
        "join_encoders",
        pooled,
        run="avg",
        seed="1",
        encoder=[f"{twin}/record.json"],
        record="avg/model/record.json",
    )
    files = {
        "model": f"{twin}/record.json",
        "sentences": "corpus/train.parquet",
        "vectors": "vectors.parquet",
    }
    run("encode_teacher", {"teacher": {"max_tokens": 16}}, teacher="twin", corpus="toy", seed="1", **files)
    student = {"module": "distil", "readout": CLS, "target": "sum", "dropout": None}
    train("student", student, base, teacher=["vectors.parquet"])
    yield folder
    patch.undo()


def vectors(name):
    encoder, tokenizer = load_encoder(Path(name, "model"))
    return encode(encoder, tokenizer, tiny.sentences(5), 16)


def test_a_run_of_3r_keeps_the_path_of_its_threshold_and_names_its_pool(workshop):
    table = read_table(Path("three_r/metrics.parquet"), METRICS)
    assert table["metric"].to_pylist() == ["threshold", "reduced_dimensions"] * 4
    record = check_model_folder(Path("three_r/model"))
    assert "exemplars/pool.parquet" in record.inputs
    assert {f"workflow_scripts/methods/{name}.py" for name in ("three_r", "simcse")} <= record.meaning.keys()
    assert len(read_table(Path("a/metrics.parquet"), METRICS)) == 0


def test_a_twin_is_trained_from_the_models_of_two_runs(workshop):
    record = check_model_folder(Path("twin/model"))
    assert {f"encoder/{name}/model/record.json" for name in "ab"} <= record.inputs.keys()
    assert record.labels == [LABEL]
    metric_names = set(read_table(Path("twin/metrics.parquet"), METRICS)["metric"].to_pylist())
    assert metric_names == {"nce", "icnce", "ictm", "forward"}
    encoder, _ = load_encoder(Path("twin/model"))
    assert isinstance(encoder, Ensemble)
    assert np.abs(vectors("twin") - vectors("sum")).max() > 1e-4


def test_an_ensemble_adds_up_what_its_runs_say(workshop):
    np.testing.assert_allclose(vectors("sum"), vectors("a") + vectors("b"), atol=1e-5)
    assert read_record(Path("sum/model")).labels == [LABEL]


def test_a_run_read_in_another_way_has_the_same_weights(workshop):
    one, other = (load_encoder(Path(name, "model"))[0].state_dict() for name in ("twin", "avg"))
    assert all((one[name] == other[name]).all() for name in one)
    assert np.abs(vectors("twin") - vectors("avg")).max() > 1e-4


def test_a_students_teacher_is_a_file_that_was_made_once(workshop):
    table = read_table(Path("vectors.parquet"), TEACHER)
    assert len(table) == 40
    assert set(table["encoders"].to_pylist()) == {2}
    found = np.array(table["vector"].to_pylist()[:5])
    np.testing.assert_allclose(found, vectors("twin"), atol=1e-5)
    assert read_record(Path("vectors.parquet")).labels == [LABEL]
    record = check_model_folder(Path("student/model"))
    assert "teacher/vectors.parquet" in record.inputs
    assert record.labels == [LABEL]


def test_vectors_of_another_corpus_are_refused(workshop):
    short = read_table(Path("vectors.parquet"), TEACHER).slice(0, 9)
    record = read_record(Path("vectors.parquet")).model_copy(update={"outputs": ["short.parquet"]})
    write_table(Path("short.parquet"), short, record)
    student = {"module": "distil", "readout": CLS, "target": "sum", "dropout": None}
    with pytest.raises(SystemExit, match=r"DataError: short\.parquet: 9 vectors; the corpus has 40 rows"):
        train("other", student, "encoder/record.json", teacher=["short.parquet"])
