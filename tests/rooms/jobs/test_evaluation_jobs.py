"""The entry scripts of evaluation, whole, on a tiny encoder: what they write, and what becomes of absent data."""

import pyarrow.parquet as pq
import pytest

from tests.support import toys
from tests.support.evaluation_jobs import WILDCARDS, dataset, gaps_of, made, run, scores_in
from workflow_scripts.columns import ATTENTION, LABELLED, PAIRS, SENTENCES
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.provenance.artefacts import read_record, read_table, writing_model_folder
from workflow_scripts.settings.names import Template

TEXTS = toys.sentences(40, seed=7)
GONE = "no source of the dataset is available"


def classes(folder, name="classes", *, paired=False):
    rows = [
        {"split": "", "text1": one, "text2": two if paired else None, "label": f"{n % 2}"}
        for n, (one, two) in enumerate(zip(TEXTS, reversed(TEXTS), strict=True))
    ]
    return dataset(folder, name, LABELLED, rows)


LABELS = {"clustering": ["two runs stand in for ten"]}
SEARCH = {"max_pairs": None}
SUITES = {
    "clustering": (
        {"seeds": 2, "n_init": 1, "label": "two runs stand in for ten"}, {"accuracy", "nmi", "v_measure"},
    ),
    "transfer": ({"graded": [], "classifier": "exact", "folds": 2, "seed": 1}, {"accuracy", "dev_accuracy"}),
    "search": (SEARCH, {"mrr@10", "recall@1", "recall@10"}),
}  # fmt: skip


def evaluated(kind, model, scores, datasets, **more):
    suite = SUITES[kind][0] | {"datasets": [path.stem for path in datasets], "max_tokens": 32} | more
    wildcards = WILDCARDS | {"kind": kind}
    run("evaluate_suite", {"suite": suite}, wildcards, model=model, datasets=datasets, scores=scores)
    return scores_in(scores)


@pytest.mark.parametrize("kind", SUITES)
def test_a_suite_scores_what_is_there_and_lists_what_is_not(kind, model, tmp_path):
    there = classes(tmp_path, paired=kind == "search")
    rows = evaluated(kind, model, tmp_path / "scores.parquet", [there, dataset(tmp_path, "gone", LABELLED)])
    assert gaps_of(rows) == {"gone": GONE}
    assert {row["metric"] for row in rows if row["task"] == "classes"} == SUITES[kind][1]
    assert [*map(str, read_record(tmp_path / "scores.parquet").labels)] == LABELS.get(kind, [])


def test_a_readout_of_the_suite_takes_the_place_of_the_runs_own(model, tmp_path):
    """The suite reads [CLS] in place of the mean."""
    there, readout = classes(tmp_path), {"kind": "pooling", "pooler": "cls_before_pooler", "layers": None}
    own = evaluated("clustering", model, tmp_path / "own.parquet", [there])
    assert evaluated("clustering", model, tmp_path / "cls.parquet", [there], readout=readout) != own


@pytest.mark.parametrize("index", [None, {"nlist": 2, "nprobe": 1}])
def test_the_time_of_a_query_stands_in_a_file_of_times(model, tmp_path, index):
    datasets = [classes(tmp_path, paired=True), dataset(tmp_path, "gone", LABELLED)]
    suite = SEARCH | {"datasets": ["classes", "gone"], "max_tokens": 32, "index": index}
    times = tmp_path / "times.parquet"
    run("time_search", {"suite": suite}, model=model, datasets=datasets, table=times)
    found = {row["task"]: row for row in pq.read_table(times).to_pylist()}
    assert found["classes"]["metric"] == "retrieval_ms"
    assert found["classes"]["value"] > 0
    assert (found["gone"]["value"], found["gone"]["note"]) == (None, "no pair is marked as duplicates")


ATTENTION_SUITE = {
    "energy": {"dataset": "text", "max_sentences": 5, "max_tokens": 32, "batch_size": 2},
    "maps": {"sentences": [TEXTS[0]], "layers": [2], "max_tokens": 32},
}


@pytest.mark.parametrize(
    ("schema", "columns"), [(SENTENCES, ["sentence"]), (PAIRS, ["sentence1", "sentence2"]), (SENTENCES, [])]
)
def test_attention_is_measured_on_sentences_or_pairs(model, tmp_path, schema, columns):
    """Attention is measured on sentences or pairs and drawn without."""
    texts = TEXTS if columns else []
    rows = [dict.fromkeys(schema.names) | dict.fromkeys(columns, text) for text in texts]
    files = {"scores": tmp_path / "scores.parquet", "maps": tmp_path / "maps.parquet"}
    table = dataset(tmp_path, "text", schema, rows)
    run("map_attention", {"suite": ATTENTION_SUITE}, model=model, dataset=table, **files)
    scores, maps = scores_in(files["scores"]), read_table(files["maps"], ATTENTION)
    measured = [("layer:1", 5), ("layer:2", 5), ("mean", 5)]
    assert [(row["aggregation"], row["n"]) for row in scores if row["n"]] == (measured if texts else [])
    assert gaps_of(scores) == ({} if texts else {"text": GONE})
    assert set(maps["layer"].to_pylist()) == {2}


def test_measures_that_leave_out_a_template_say_so(tiny_bert, model, tmp_path):
    """Costs and energies are of one length of sentences, with or without a template around them."""
    own = toys.encoder(tiny_bert)
    template = Template(text="the river [X] .", add_period=False)
    prompted = SentenceEncoder(
        own.backbone, own.tokenizer, own.readout_settings, head=False, head_at_test=False, template=template
    )
    toys.save(tmp_path / "prompted", prompted)
    with writing_model_folder(tmp_path / "base", made(tmp_path / "base")) as place:
        toys.write_model(place, "bert")
    files = {name: tmp_path / f"{name}.parquet" for name in ("scores", "times", "energies", "maps")}
    text = dataset(
        tmp_path, "text", SENTENCES, [{"sentence": one, "document": 0, "position": 0} for one in TEXTS]
    )
    for encoder, ending, energies in [
        (model, "8 tokens", None),
        (tmp_path / "prompted/record.json", "8 tokens with those of the template", "sentences without the encoder's template"),
    ]:  # fmt: skip
        cost = {"tokens": 8, "batch_sizes": [1], "repeats": 1, "warmup": 0}
        measured = {"base": tmp_path / "base/record.json", "scores": files["scores"], "times": files["times"]}
        run("evaluate_cost", {"suite": cost}, model=encoder, **measured)
        notes = {row["metric"]: row["note"] for row in scores_in(files["scores"])}
        assert notes["gmac_total"] == f"one sentence of {ending}"
        assert {row["note"].partition(",")[0] for row in scores_in(files["times"])} == {ending}
        measured = {"dataset": text, "scores": files["energies"], "maps": files["maps"]}
        run("map_attention", {"suite": ATTENTION_SUITE}, model=encoder, **measured)
        assert {row["note"] for row in scores_in(files["energies"])} == {energies}
