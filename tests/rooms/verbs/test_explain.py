"""The tree behind a file leads to its sources, and the tree behind a cell to its own sources alone."""

from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.rooms.verbs.conftest import HUB, STUDY, flip_a_byte
from tests.support.verb_answers import data, printed
from workflow_scripts.columns import TABLE as TABLE_COLUMNS
from workflow_scripts.errors import DataError

TABLE = Path(STUDY, "tables/main.parquet")
SCORE = f"{STUDY}/scores/sts/suite/plain/seed1.parquet"
MODEL = f"{STUDY}/runs/plain/seed1/model"


def explained(path, *cell):
    """Data of the verb on a file or a cell; the exit code says whether anything is broken."""
    code, said = data("explain", path, *(["--cell", ",".join(cell)] if cell else []))
    states = {node["state"] for node in said["files"]}
    assert code == (not said["good"]) == bool(states & {"rebuilt since", "damaged", "missing"})
    return said


def states(said):
    return {node["path"].removeprefix(f"{STUDY}/"): node["state"] for node in said["files"]}


WHOLE = {
    "scores/sts/suite/plain/seed1.parquet": "as recorded",
    "runs/plain/seed1/model/record.json": "as recorded",
    "encoders/minilm/record.json": "as recorded",
    "corpora/wiki/train.parquet": "as recorded",
    "datasets/stsb.parquet": "as recorded",
    "resources/prompt.txt": "file",
    "hub:owner/stsb@0123456789": "source",
    "package:minilm==1.0/model.safetensors": "source",
}


def test_the_tree_of_a_score_ends_at_its_sources(root, study):
    """The tree of a score ends at its sources and marks files that changed."""
    assert states(explained(SCORE)) == WHOLE
    study.write_dataset(score=4.5)
    Path(STUDY, "corpora/wiki/train.parquet").unlink()
    flip_a_byte(f"{STUDY}/encoders/minilm/model.safetensors")
    broken = {"datasets/stsb.parquet": "rebuilt since", "corpora/wiki/train.parquet": "missing"}
    found = states(explained(SCORE))
    assert found | broken | {"encoders/minilm/record.json": "damaged"} == found
    assert printed("explain", TABLE)[0] == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resources/prompt.txt", "not an artefact"),
        (f"{STUDY}/tables/mian.parquet", f"lists one. Did you mean {TABLE}"),
        (f"{STUDY}/rnus/plain/seed1/model", f"lists one. Did you mean {STUDY}/runs? Or make it: `"),
        (
            f"{STUDY}/runs/plain/seed1/history.parquet",
            "Make it: `snakemake --cores all --configfile CONFIG -- results/study/runs/plain",
        ),
    ],
)
def test_a_file_without_a_record_is_one_line_with_a_remedy(root, name, said):
    """A file without a record is one line with a command or the nearest name."""
    Path(STUDY, "runs/plain/seed1/history.parquet").unlink()
    with pytest.raises(DataError, match=name) as refused:
        printed("explain", name)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "verb", [("explain",), ("explain", "--into"), ("rebuild",), ("diff", "results/study/report.html")]
)
def test_a_folder_of_artefacts_is_told_from_a_missing_file(root, verb):
    """A folder of several artefacts is told from a missing file."""
    with pytest.raises(
        DataError,
        match=r"results/study/scores: a folder, not an artefact\. Choose one of its 3 artefacts, such as",
    ):
        printed(*verb, "results/study/scores")


# Cells


def test_a_cell_leads_to_its_own_run_and_no_other(root):
    said = explained(TABLE, "run=simcse", "seed=2", "metric=spearman")
    (row,) = said["rows"]
    assert (row["run"], row["seed"], row["value"], said["narrowed"]) == ("simcse", 2, 0.7, True)
    own = {path for path in states(said) if path.startswith(("scores", "runs"))}
    assert own == {"scores/sts/suite/simcse/seed2.parquet", "runs/simcse/seed2/model/record.json"}
    assert "resources/prompt.txt" in states(said)
    (model,) = (node for node in said["files"] if node["role"] == "model")
    assert model["depth"] == 2
    facts = {
        (row["section"], row["key"]): row["value"] for row in said["facts"] if row["path"] == model["path"]
    }
    assert facts["setting", "method.temperature"] == 0.05
    assert facts["commit", ""]
    assert {"code", "package", "machine"} <= {section for section, _ in facts}


def test_the_tree_has_jobs_hashes_labels_and_what_it_leaves_out(root):
    code, shown = printed("explain", TABLE, "--cell", "run=simcse,seed=1")
    assert code == 0
    assert "[1] stand-in encoder" in shown
    assert "seed2" not in shown
    (model,) = (line for line in shown.splitlines() if "model: " in line)
    assert model.strip().startswith("├── model: ")
    assert "train_encoder(run=simcse, seed=1)" in model
    assert "(2 inputs of other rows left out)\n" in shown


def test_labels_of_an_input_that_was_made_again_are_shown_too(root, study):
    study.write_encoder(labels=("another stand-in",))
    code, shown = printed("explain", SCORE)
    assert code == 1
    assert {"[1] another stand-in", "[2] stand-in encoder"} <= {*shown.splitlines()}


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("simcse", r"--cell simcse: no '='\. Write column=value, such as run=simcse"),
        ("runs=simcse", r"no column 'runs'\. Did you mean run\?"),
        ("run=simsce", r"no row with run=simsce\. Did you mean simcse\?"),
        ("run=plain,seed=2", r"no row with seed=2\. Choose from: 1\."),
    ],
)
def test_a_missing_cell_is_one_line_with_the_present_ones(root, cell, complaint):
    with pytest.raises(DataError, match=complaint):
        printed("explain", TABLE, "--cell", cell)


# Tables of experiments and of the extraction study


SPEARMAN = {"suite": "suite", "task": "STSB", "aggregation": "all", "metric": "spearman"}
COLUMNS = [
    SPEARMAN | {"heading": "Spearman", "scale": 100},
    SPEARMAN | {"heading": "Pearson", "metric": "pearson", "scale": 100},
    {"heading": "both", "mean_of": ["Spearman", "Pearson"]},
    {"heading": "each", "ratio_of": ["Spearman", "Pearson"]},
    {"heading": "gain", "gain_of": "both"},
    {"heading": "threshold", "path_of": "threshold", "step": -1},
]


@pytest.fixture
def experiment(root, study):
    """The table of an experiment in which simcse is compared with plain."""
    study.write_scores("simcse", 2, value=0.5)
    rows = [
        SPEARMAN | {"run": run, "heading": heading, "baseline": baseline, "mean": 60.0}
        for heading in ("Spearman", "both", "each", "gain", "threshold")
        for run, baseline in (("simcse", "plain"), ("plain", None))
    ]
    return study.write(
        "make_table",
        "tables/experiment.parquet",
        pa.Table.from_pylist(rows, schema=TABLE_COLUMNS),
        inputs={"scores": study.score_files()},
        settings={"experiment": {"columns": COLUMNS}},
    )


OWN, BASELINE = "the row's own", "the baseline's"


def test_a_difference_leads_to_the_scores_of_its_baseline_too(root, experiment):
    said = explained(experiment, "run=simcse", "heading=Spearman")
    assert [tuple(row.values()) for row in said["scores"]] == [
        ("Spearman", "simcse", 1, 70.0, OWN),
        ("Spearman", "simcse", 2, 50.0, OWN),
        ("Spearman", "plain", 1, 70.0, BASELINE),
    ]
    runs = {path for path in states(said) if path.startswith("runs/")}
    assert runs == {
        f"runs/{run}/model/record.json" for run in ("simcse/seed1", "simcse/seed2", "plain/seed1")
    }


@pytest.mark.parametrize(
    ("heading", "behind"),
    [
        ("Spearman", ["Spearman"]),
        *((heading, ["Pearson", "Spearman"]) for heading in ("both", "each", "gain")),
        ("threshold", []),  # a metric of the training, of which there are no scores
    ],
)
def test_a_column_leads_to_the_scores_that_it_is_computed_from(root, experiment, heading, behind):
    said = explained(experiment, "run=plain", f"heading={heading}")
    assert [tuple(row.values()) for row in said["scores"]] == [(one, "plain", 1, 70.0, OWN) for one in behind]
    assert {path for path in states(said) if path.startswith("runs/")} == {
        "runs/plain/seed1/model/record.json"
    }


def test_a_cell_shows_the_settings_of_its_run_and_its_baseline(root, experiment, study):
    study.write_run("simcse", 1, temperature=0.1)
    values = {
        "method.module": ("simcse", "plain"),
        "method.temperature": (0.1, 0.05),
        "training.steps": (3, 3),
    }
    assert explained(experiment, "run=simcse", "heading=Spearman")["made_with"] == [
        {"setting": setting, "run": run, "value": value}
        for setting, pair in values.items()
        for run, value in zip(("simcse", "plain"), pair, strict=True)
    ]
    printed_table = printed("explain", experiment, "--cell", "run=simcse,heading=Spearman")[1]
    line = next(line for line in printed_table.splitlines() if "method.temperature" in line)
    assert [cell.strip() for cell in line.split("│")] == ["method.temperature", "0.1", "0.05"]


@pytest.mark.parametrize(
    ("cell", "files"),
    [
        ("heading=BERT", ["plain/a"]),
        ("heading=RE", ["random/a", "random/b"]),
        ("run=avg: RE", ["random/b"]),
    ],
)
def test_a_cell_of_extraction_leads_to_its_representation(root, study, cell, files):
    """There are two representations, each scored on two tasks."""
    scores = []
    for representation, task in product(("plain", "random"), ("a", "b")):
        file = f"scores/extraction/sts/{representation}/{task}.parquet"
        wildcards = {"kind": "sts", "representation": representation, "task": task}
        study.write("extract_scores", file, pa.table({"value": [0.5]}), wildcards=wildcards)
        scores.append(file)
    settings = {
        "names": {"models": {"BERT": {"representation": "plain"}, "RE": {"representation": "random"}}}
    }
    rows = [
        {"run": run, "heading": heading, "suite": "sts", "task": task}
        for run, heading, task in (("avg", "BERT", "a"), ("avg", "RE", "a, b"), ("avg: RE", "STS", "b"))
    ]
    table = pa.Table.from_pylist(rows, schema=TABLE_COLUMNS)
    path = study.write(
        "tabulate_extraction", "tables/b.parquet", table, inputs={"scores": scores}, settings=settings
    )
    found = [*states(explained(path, cell))][1:]
    assert found == [f"scores/extraction/sts/{file}.parquet" for file in files]


@pytest.mark.parametrize("verb", ["explain", "rebuild"])
def test_a_file_that_another_program_wrote_can_be_made_again(root, verb):
    table = f"{STUDY}/tables/main.parquet"
    pq.write_table(pq.read_table(table).replace_schema_metadata(None), table)
    with pytest.raises(
        DataError, match=f"another program has written it.* Make it again: .*--forcerun {table}"
    ):
        printed(verb, table)


# The other direction


def test_files_made_from_a_source_are_listed_up_to_the_report(root):
    """Files made from a file or a source are listed up to the report."""

    def into(name):
        return {
            row["made_into"].removeprefix(f"{STUDY}/")
            for row in data("explain", name, "--into")[1]["downstream"]
        }

    pages = {"tables/main.parquet", "figures/main.svg", "report.html"}
    assert into(SCORE) == pages
    assert into(f"{MODEL}/model.safetensors") == pages | {"scores/sts/suite/plain/seed1.parquet"}
    assert "datasets/stsb.parquet" in into(HUB.path)
    assert len(into(HUB.path)) == 1 + 3 + 3
    assert "corpora/wiki/train.parquet" in into("resources/prompt.txt")
    assert into(f"{STUDY}/report.html") == set()
    with pytest.raises(DataError, match=r"no record names it\. Name a file below results/"):
        printed("explain", "https://example.org/other", "--into")
    with pytest.raises(DataError, match=f"no record names it. Did you mean {STUDY}/report.html[?]"):
        printed("explain", f"{STUDY}/reprot.html", "--into")
