"""Every method and reading of config/methods.yaml: trained, saved, and loaded by others in a process of their own."""

import inspect
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from datasets import Dataset, DatasetDict
from huggingface_hub import ModelCard
from mteb.abstasks import AbsTaskSTS
from transformers import AutoModel

from tests.support import small_methods, toys, training_jobs
from tests.support.evaluation_jobs import sts_metadata
from tests.support.snakemake_plans import DEMO, ROOT, merged_config, run_alone
from workflow_scripts.columns import EXEMPLARS, PAIRS, SCORES, TEACHER, TRIPLES, WORD_COUNTS
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import mteb_scores, sts
from workflow_scripts.evaluation.correlation import cosine, spearman
from workflow_scripts.evaluation.finished_tasks import run_tasks
from workflow_scripts.methods import load_method
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import (
    check_model_folder,
    job_record,
    read_record,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.cache import Cache
from workflow_scripts.settings.grids import Run
from workflow_scripts.settings.overrides import Override
from workflow_scripts.settings.study import Configuration, written

CONFIG = merged_config(DEMO)
SETTINGS = Configuration.strictly(CONFIG)
RUNS = [
    (name, reading)
    for name, block in CONFIG["methods"].items()
    if block.get("readout", {}).get("kind") not in small_methods.OF_A_FOLDER
    for reading in ("default", *block.get("readings", {}))
]
NAMES = [f"{name}-{reading}" for name, reading in RUNS]
EACH = [pytest.param(name, marks=[] if name.endswith("-default") else pytest.mark.slow) for name in NAMES]
TRAINING = training_jobs.CONFIGS["train_encoder"]["training"] | {
    "max_steps": 2,
    "batch_size": 4,
    "max_tokens": 16,
}
ROWS = 12
LIMIT = 128
# One batch for whoever encodes them: two readings of S2Sent look at the whole batch. Longer than a training reads.
TEXTS = [*toys.sentences(6, seed=7), *(" and ".join(toys.sentences(3, seed=seed)) for seed in range(6))]
GOLD = np.random.default_rng(1).random(len(TEXTS) // 2)


def make_encoder(folder, kind):
    """A tiny encoder of four layers, with the length of its positions as its limit."""
    record = job_record("count_words", settings={}, inputs={}, outputs=[])
    with writing_model_folder(folder, record) as place:
        toys.write_model(place, kind, num_hidden_layers=4, max_position_embeddings=LIMIT)
        tokenizer = toys.make_tokenizer(kind)
        tokenizer.model_max_length = LIMIT
        tokenizer.save_pretrained(place)


def make_inputs(folder):
    """Everything that any method reads."""
    record = job_record("count_words", settings={}, inputs={}, outputs=[])
    training_jobs.make_inputs(folder)  # a corpus of sentences, and development pairs
    columns = [toys.sentences(ROWS, seed=seed) for seed in (1, 2, 3)]
    write_table(Path("triples.parquet"), pa.table(columns, schema=TRIPLES), record)
    rows = [dict.fromkeys(EXEMPLARS.names, 0) | {"sentence": t, "source": "toy"} for t in columns[2]]
    write_table(Path("pool.parquet"), pa.Table.from_pylist(rows, schema=EXEMPLARS), record)
    words = [
        {"rank": n, "word": w, "count": 9, "change_rate": 1.0, "peak": False}
        for n, w in enumerate(toys.WORDS)
    ]
    write_table(Path("words.parquet"), pa.Table.from_pylist(words, schema=WORD_COUNTS), record)
    vectors = np.random.default_rng(0).normal(size=(ROWS, toys.WIDTH)).astype(np.float32)
    teacher = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), toys.WIDTH)
    table = pa.table(
        [teacher.cast(TEACHER.field("vector").type), pa.array([2] * ROWS, pa.int32())], schema=TEACHER
    )
    write_table(Path("vectors.parquet"), table, record)
    make_encoder(Path("plain"), "bert")
    make_encoder(Path("decoder"), "llama")
    mlm = training_jobs.config("continue_mlm", max_steps=1, warmup_steps=0)
    files = {"base": "plain/record.json", "corpus": "corpus/train.parquet", "record": "encoder/record.json"}
    training_jobs.call(
        "continue_mlm",
        mlm,
        checkpoint_minutes=0,
        encoder="toy",
        **files,
        history="mlm.parquet",
    )


def train(name, method, encoders):
    settings = {"method": method, "training": TRAINING, "development": {"every": 2, "max_tokens": 16}}
    outputs = {what: f"{name}/{what}.parquet" for what in ("history", "metrics")}
    auxiliary = {"exemplars": ["pool.parquet"], "teacher": ["vectors.parquet"]}
    if method.get("words"):
        auxiliary["words"] = ["words.parquet"]
    files = {"corpus": "triples.parquet", "dev": "corpus/dev.parquet", "record": f"{name}/model/record.json"}
    training_jobs.call(
        "train_encoder",
        settings,
        checkpoint_minutes=0,
        run=name,
        seed="1",
        encoder=encoders,
        **files,
        **auxiliary,
        **outputs,
    )


def settings_of(name, reading):
    """The method of a run, as the rules hand it to its job."""
    run = Run(name, "minilm", None, reading, Override(), (1,))
    return written(SETTINGS, run)["method"]


def make(name, method):
    """Make one run: what its module asks for says which job does."""
    module = load_method(method["module"])
    encoder = "decoder" if "lora_rank" in str(method) else "encoder"
    if hasattr(module, "Objective"):
        several = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(module.build).parameters.values())
        train(
            name,
            method,
            ["one/model/record.json", "two/model/record.json"] if several else f"{encoder}/record.json",
        )
        return
    outputs = {"run": name, "seed": "1", "record": f"{name}/model/record.json"}
    if method["module"] == "frozen":
        text = {"text": ["triples.parquet"], "gpu": 0} if method.get("whitening") else {}
        training_jobs.call(
            "build_frozen", {"method": method}, encoder="encoder/record.json", **text, **outputs
        )
        return
    members = ["one/model/record.json", "two/model/record.json"]
    joined = members if "weights" in method else ["jtcse-default/model/record.json"]
    training_jobs.call("build_ensemble", {"method": method}, encoder=joined, **outputs)


def asked_for(request):
    """The runs that selected tests of this file look at, and jtcse-default, from which others are made."""
    here = [item for item in request.session.items if item.path == request.path]
    runs = {item.callspec.params.get("run") for item in here if hasattr(item, "callspec")}
    return [run for run, name in zip(RUNS, NAMES, strict=True) if name in {*runs, "jtcse-default"}]


@pytest.fixture(scope="module")
def models(request, tmp_path_factory):
    """The model folders of all runs asked for, made here, and what a process that lacks this project made of them."""
    asked = asked_for(request)
    folder = tmp_path_factory.mktemp("every_method")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setattr("workflow_scripts.provenance.record.git_state", lambda: (None, False))
    make_inputs(folder)
    first = settings_of("simcse", "default")
    for name in ("one", "two"):
        make(name, first)
    for name, reading in asked:
        make(f"{name}-{reading}", settings_of(name, reading))
    folders = [f"{name}-{reading}/model" for name, reading in asked]
    Path("asked.json").write_text(json.dumps({"folders": folders, "texts": TEXTS}))
    done = run_alone(folder, "-c", ELSEWHERE)
    assert done.returncode == 0, done.stderr
    yield json.loads(Path("answers.json").read_text())
    patch.undo()


ELSEWHERE = """
import json, sys
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

asked = json.load(open("asked.json"))
answers = {}
for folder in asked["folders"]:
    answer = answers[folder.split("/")[0]] = {"refused": "", "auto": ""}
    try:
        model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    except ValueError as error:
        answer["refused"] = str(error)
        model = SentenceTransformer(folder, device="cpu", local_files_only=True, trust_remote_code=True)
    answer["length"] = model.max_seq_length
    answer["vectors"] = model.encode(asked["texts"]).tolist()
    answer["alone"] = model.encode(asked["texts"][:1]).tolist()
    model.max_seq_length = 12
    answer["cut"] = model.encode(asked["texts"]).tolist()
    try:
        AutoModel.from_pretrained(folder)
    except ValueError as error:
        answer["auto"] = str(error)
    ours = [name for name in sys.modules if name.startswith("workflow_scripts")]
    answer["needs_project"] = bool(ours)
    for name in ours:
        del sys.modules[name]
json.dump(answers, open("answers.json", "w"))
"""


def score(vectors):
    """Spearman with made-up judgements, as tables print it."""
    vectors = np.asarray(vectors, dtype=np.float64)
    return f"{100 * spearman(GOLD, cosine(vectors[::2], vectors[1::2])):.2f}"


@pytest.mark.parametrize("run", EACH)
def test_sentence_transformers_gives_the_vectors_and_score(models, run):
    """sentence-transformers gives the vectors and the score of the pipeline."""
    encoder = load_encoder(Path(run, "model"))
    answer = models[run]
    # A whitening map divides by the smallest deviations, and multiplies rounding with them.
    tolerance = 1e-3 if "whitened" in run else 1e-5
    tokens = [len(ids) for ids in encoder.tokenizer(TEXTS)["input_ids"]]
    assert TRAINING["max_tokens"] < max(tokens) <= answer["length"] <= LIMIT
    assert answer["length"] == LIMIT or encoder.template is not None
    expected = encoder.encode(TEXTS, answer["length"])
    np.testing.assert_allclose(answer["vectors"], expected, atol=tolerance)
    assert score(answer["vectors"]) == score(expected)
    alone = encoder.encode(TEXTS[:1], answer["length"])  # without padding
    np.testing.assert_allclose(answer["alone"], alone, atol=tolerance)
    cut = encoder.encode(TEXTS, 12)
    np.testing.assert_allclose(answer["cut"], cut, atol=tolerance)
    assert np.abs(cut - expected).max() > 1e-3


@pytest.mark.parametrize("run", EACH)
def test_code_is_run_for_documented_kinds_only(models, run):
    """Code is run for the documented kinds only, and AutoModel never gives half a model."""
    encoder = load_encoder(Path(run, "model"))
    built_in = (
        isinstance(encoder, SentenceEncoder)
        and encoder.readout_settings.kind == "pooling"
        and encoder.template is None
    )
    assert ("trust_remote_code=True" in models[run]["refused"]) == (not built_in)
    assert not models[run]["needs_project"]
    if not built_in or encoder.head_at_test:
        assert "load it with sentence_transformers.SentenceTransformer" in models[run]["auto"]
        return
    assert not models[run]["auto"]
    model = AutoModel.from_pretrained(Path(run, "model"))
    batch = encoder.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, output_hidden_states=True
        )
    chosen = torch.stack([states.hidden_states[index] for index in encoder.readout_settings.indices]).mean(
        dim=0
    )
    weight = batch.attention_mask.unsqueeze(-1)
    pooled = (
        chosen[:, 0] if encoder.readout_settings.mode == "cls" else (chosen * weight).sum(1) / weight.sum(1)
    )
    np.testing.assert_allclose(pooled, encoder.encode(TEXTS, LIMIT), atol=1e-5)


PAIRS_OF_STS = list(zip(toys.sentences(24, seed=20), toys.sentences(24, seed=21), strict=True))
JUDGEMENTS = np.random.default_rng(2).integers(0, 6, size=24) / 1.0


class TinySTS(AbsTaskSTS):
    """A task of mteb's own kind on local data."""

    metadata = sts_metadata("TinySTS", "local/tiny")

    def load_data(self, num_proc=None, *, timer=None, **_):
        left, right = zip(*PAIRS_OF_STS, strict=True)
        columns = {"sentence1": left, "sentence2": right, "score": JUDGEMENTS}
        self.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
        self.data_loaded = True


def test_every_method_and_readout_is_among_them():
    """Every method and every readout of the project is among them."""
    folder = ROOT / "workflow_scripts"
    methods = {path.stem for path in (folder / "methods").glob("*.py")} - {"__init__", "contrastive"}
    readouts = {*small_methods.READOUTS} - small_methods.OF_A_FOLDER
    assert {block["module"] for block in CONFIG["methods"].values()} == methods
    used = [settings_of(*run) for run in RUNS]
    assert {method["readout"]["kind"] for method in used if "readout" in method} == readouts


def scored(folder, task, max_tokens, cache):
    """The first value that mteb gives of a task, its main score."""
    settings = {"lists": ["none"], "max_tokens": max_tokens, "batch_size": 8, "metrics": []}
    config = mteb_scores.Config(**settings)
    evaluation = mteb_scores.Evaluation(folder, config, cache, missing={})
    run_tasks([evaluation.run(task, "")], Cache(None, 1), lost)
    return evaluation.scores(task)[0].value


def lost(task, error):
    raise AssertionError(f"{task} failed") from error


@pytest.mark.parametrize("max_tokens", [12, 80])
@pytest.mark.parametrize(
    "run",
    [
        f"{name}-default"
        for name in ("simcse", "simcse_s2sent", "simcse_layerattpooler", "jtcse", "simcse_3r", "distil", "ensemble",
                     "promptbert", "llm2vec", "frozen_avg")
    ],
)  # fmt: skip
def test_mteb_gives_the_number_of_the_pipelines_own_evaluation(models, tmp_path, run, max_tokens):
    found = scored(Path(run, "model"), TinySTS(), max_tokens, tmp_path)
    left, right = zip(*PAIRS_OF_STS, strict=True)
    rows = [[""] * len(left), left, right, JUDGEMENTS]
    table = pa.table(
        [pa.array(row, field.type) for row, field in zip(rows, PAIRS, strict=True)], schema=PAIRS
    )
    encoder = load_encoder(Path(run, "model"))
    task = sts.load("tiny", table, sts.Config(datasets=["tiny"], max_tokens=max_tokens))
    scores = task.score(*(encoder.encode(texts, max_tokens) for texts in task.columns))
    own = next(s for s in scores if (s.metric, s.aggregation) == ("spearman", "all"))
    assert f"{100 * found:.2f}" == f"{100 * own.value:.2f}"


def test_mteb_runs_no_code_of_an_altered_folder(models, tmp_path):
    """mteb runs no code of a folder whose record does not hold."""
    folder = Path(shutil.copytree("jtcse-default/model", tmp_path / "model"))
    code = folder / "encoder_sum.py"
    code.write_text(f"{code.read_text()}\nraise SystemExit('foreign code ran')\n")
    with pytest.raises(DataError, match=r"encoder_sum\.py: changed since it was written"):
        scored(folder, TinySTS(), 12, tmp_path / "cache")
    (folder / "record.json").unlink()
    with pytest.raises(ValueError, match="trust_remote_code"):
        scored(folder, TinySTS(), 12, tmp_path / "cache")


def score_file(run, seed, value):
    """Scores as an evaluation of one run and seed leaves them."""
    record = job_record(
        "evaluate_sts",
        settings={},
        code_hashes={},
        versions={},
        inputs={},
        outputs=[],
        wildcards={"run": run, "seed": str(seed)},
    )
    rows = [
        ("lee", "all", "spearman", value),
        ("lee", "subset:x", "spearman", 0.1),
        ("gone", "all", "spearman", None),
    ]
    table = [
        {"run": run, "seed": seed, "suite": "lee", "task": task, "aggregation": over, "metric": metric,
         "value": number, "n": 9, "note": ""}
        for task, over, metric, number in rows
    ]  # fmt: skip
    path = f"scores/sts/lee/{run}/seed{seed}.parquet"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_table(Path(path), pa.Table.from_pylist(table, schema=SCORES), record)
    return path


def write_card(run):
    """The card of one run, from its folder, two seeds' scores and its history."""
    source = {"name": "minilm", "licence": "Apache-2.0", "origin": "a package", "hub": "some/encoder"}
    data = {"name": "wiki", "licence": "CC BY-SA", "origin": "Wikipedia", "citation": "its authors"}
    data |= {"hub": "some/text", "language": "en"}
    method = settings_of(*run.split("-", 1))
    settings = {"encoders": [source], "data": [data], "method": method, "training": TRAINING}
    scores = [score_file(run, 1, 0.5729), score_file(run, 2, 0.5529)]
    files = {"model": f"{run}/model/record.json", "scores": scores}
    files["record"] = f"{run}/card/record.json"
    files["citations"] = str(ROOT / "CITATION.cff")
    files["template"] = str(ROOT / "resources/report/model_card.md.j2")
    history = [f"{run}/history.parquet"] if Path(run, "history.parquet").exists() else []
    training_jobs.call("write_model_card", settings, run=run, seed="1", history=history, **files)
    return Path(run, "card/README.md")


@pytest.mark.parametrize(
    "run", ["simcse-default", "jtcse-default", "promptbert-default", "frozen_avg-default"]
)
def test_a_card_says_what_a_model_is_and_leaves_its_folder_alone(models, run):
    before = training_jobs.files_of(Path(run, "model"))
    path = write_card(run)
    assert training_jobs.files_of(Path(run, "model")) == before
    assert check_model_folder(path.parent).rule == "write_model_card"
    card = ModelCard.load(path)
    data = card.data
    assert (data.license, data.base_model, data.library_name) == (
        "apache-2.0", ["some/encoder"], "sentence-transformers",
    )  # fmt: skip
    assert (data.datasets, data.language) == (["some/text"], ["en"])
    assert not re.search(
        r"[0-9a-f]{64}|semblance\.record", path.read_text("utf-8")
    )  # of files: in record.json
    assert "@software{semblance" in card.text
    assert [(r.dataset_name, r.metric_type, r.metric_value) for r in data.eval_results] == [
        ("lee", "spearman_all", 0.5729)
    ]
    assert "| lee | lee | all | spearman | 0.5729 | 0.5629 ± 0.0141 (2) |" in card.text.splitlines()
    assert "- wiki, from Wikipedia; licence CC BY-SA; cite its authors" in card.text.splitlines()
    trained = run != "frozen_avg-default"
    assert (
        "2 steps; the checkpoint of step 2 is kept, the best on the development set" in card.text
    ) == trained
    assert ("trust_remote_code=True" in card.text) == (run.split("-")[0] in ("jtcse", "promptbert"))
    for label in read_record(Path(run, "model")).labels:
        assert f"- {label}" in card.text
