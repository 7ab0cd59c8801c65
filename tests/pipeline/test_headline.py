"""The headline study from text to page, at toy scale: its grids on the embedded encoder, trained for a few steps."""

import csv
import re
from itertools import cycle

import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.snakemake_plans import copy_tree, planned_jobs, snakemake
from workflow_scripts.columns import NOT_RUN

STUDY = "config/headline.yaml"
TOY = """
name: headline
data_root: toy
training: {epochs: null, max_steps: 2, batch_size: 8, cpu_threads: 1}
development: {max_tokens: 12}
contamination: null
corpora: {wiki1m: {max_sentences: 200}}
methods:
  supervised_simcse: {training: {epochs: null, max_steps: 2, batch_size: 8}}
  supervised_layerattpooler: {training: {epochs: null, max_steps: 2, batch_size: 8}}
  jtcse: {training: {max_tokens: 16}}
exemplars: {wiki1m_extractive: {word_list_size: 8, sentences: 12, min_uses_per_word: 1, listed_share: 0.2}}
suites:
  sts: {eight_sts: {datasets: [sts12, stsb_test]}}
  clustering: {short_texts: {datasets: [agnews], seeds: 2, n_init: 1}}
  transfer:
    senteval: {folds: 2}
    twelve_tasks: {datasets: [mr, mrpc, sick_graded, stsb_graded], folds: 2}
"""
SMALLER = {"seeds": "[1]", "max_steps": "4", "batch_size": "8", "every": "2"}
"""Values in the grids that stand for their scale."""
TEXTS = [
    f"{who} {does} {what}."
    for who in ("The river", "A child", "Our neighbour", "The old train")
    for does in ("follows", "paints", "remembers", "leaves")
    for what in ("the quiet town", "a red kite", "his sister", "two small boats")
]


def table_of(form, split):
    """Columns of a form, and rows of made-up data."""
    if form == "pairs":
        rows = zip(cycle("xy"), TEXTS, TEXTS[7:], cycle("012345"), strict=False)
        return ["subset", "sentence1", "sentence2", "score"], rows
    if form == "triples":
        return ["anchor", "positive", "negative"], zip(TEXTS, TEXTS[1:], TEXTS[9:], strict=False)
    texts = [f"{split} {text}" for text in TEXTS[:24]]
    return ["text1", "text2", "label"], zip(texts, reversed(texts), cycle("12"), strict=False)


def made_up(folder, dataset, block):
    """Sources of a dataset of the same form, and with the same splits and columns, written below ``folder``."""
    said = str(block["sources"])
    groups = block["contract"].get("groups", {}) if block["form"] == "labelled" else {}
    files = {}
    for split in groups or [""]:
        columns, rows = table_of(block["form"], split)
        path = folder / dataset / f"{split or 'all'}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
        files[path.stem] = {"path": f"{dataset}/{path.name}", "sha256": None}
    read = {column: column for column in columns if column != "text2" or "text2" in said}
    options = {"separator": ",", "quoted": True, "columns": read} | (
        {"graded": True} if "'graded'" in said else {}
    )
    return [{"kind": "local", "files": files, "reader": "delimited", "options": options}]


def made_smaller(tree):
    """Replace texts and weights of a copy of the pipeline by small ones, and numbers in its grids."""
    for name in ("datasets", "corpora", "encoders"):
        file = tree / f"config/{name}.yaml"
        content = yaml.safe_load(file.read_text())
        for dataset, block in content.get("datasets", {}).items():
            if block["form"] == "sentences":
                embedded = content["datasets"]["wiki_extract"]
                block |= {"sources": embedded["sources"], "contract": embedded["contract"]}
            else:
                block |= {"sources": made_up(tree / "toy", dataset, block), "contract": {"min_rows": 1}}
        if name == "encoders":
            content["encoders"]["bert_base"] = content["encoders"]["minilm"]
        file.write_text(yaml.safe_dump(content, sort_keys=False))
    for grid in (tree / "config/experiments").glob("headline_*.yaml"):
        text = grid.read_text()
        for key, value in SMALLER.items():
            text = re.sub(rf"\b{key}: (\d+|\[1, 2, 3\])", f"{key}: {value}", text)
        grid.write_text(text)
    (tree / "config/toy.yaml").write_text(TOY)
    return tree


def test_the_headline_study_is_planned_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    jobs = planned_jobs(copy_tree(tmp_path), configfile=STUDY)
    assert jobs["train_encoder"] == 39
    assert jobs["evaluate_suite"] == 18
    assert jobs["make_table"] == 7


@pytest.mark.slow
def test_the_headline_study_ends_in_a_page_with_verdicts(tmp_path):
    """The headline study ends in a page with printed numbers and verdicts."""
    tree = made_smaller(copy_tree(tmp_path))
    code, printed = snakemake(
        tree, "--cores", "2", "--quiet", "rules", "--configfile", STUDY, "config/toy.yaml"
    )
    assert code == 0, printed[-5000:]
    check_results(tree / "results/headline")


def check_results(results):
    tables = {path.stem: pq.read_table(path).to_pylist() for path in (results / "tables").glob("*.parquet")}
    assert len(tables) == 8
    # A toy has fewer tasks than the means that Table 1 of the extraction study prints.
    printed = {name for name, rows in tables.items() if any(row["published"] for row in rows)}
    assert printed == tables.keys() - {"headline_systems", "extraction_table1"}
    empty = [row for rows in tables.values() for row in rows if row["mean"] is None]
    assert {(row["run"], row["heading"]) for row in empty} == {
        ("simcse.bert_base.wiki1m", "gain")
    }  # the baseline
    labels = " ".join(label for row in tables["headline_systems"] for label in row["labels"])
    assert "without round trips" in labels
    assert "stand in for exemplars" in labels
    claims = pq.read_table(results / "claims.parquet").to_pylist()
    held = {(claim["paper"], claim["claim"]) for claim in claims if claim["verdict"] != NOT_RUN}
    assert len(held) == 12
    assert {paper for paper, _ in held} == {
        "s2sent",
        "layerattpooler",
        "three_r",
        "jtcse",
    }
    page = (results / "report.html").read_text()
    assert all(
        text in page
        for text in ("One system of each paper, side by side", "How one system of each paper compares")
    )
