"""Two artefacts differ by what their records say, and down to the input that made the difference."""

import math
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from tests.rooms.verbs.conftest import STUDY, flip_a_byte
from tests.support.verb_answers import data, printed
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_record, write_page, writing_model_folder
from workflow_scripts.provenance.record import merged_labels
from workflow_scripts.verbs.diff import Difference, Step, numeric_differences, sentence
from workflow_scripts.verbs.records import ABSENT, Change


def steps(a, b):
    """The steps of a comparison; its exit code and verdict agree with the first."""
    code, said = data("diff", a, b)
    found = [
        step | {"changes": _of_step(step, said["differences"]), "numbers": _of_step(step, said["numbers"])}
        for step in said["steps"]
    ]
    assert code == (not said["good"]) == bool(found[0]["changes"] or not said["contents_equal"])
    return found


def _of_step(step, rows):
    """The rows of one step, without its number."""
    own = [row for row in rows if row["step"] == step["step"]]
    return [{key: value for key, value in row.items() if key != "step"} for row in own]


def sections(step):
    return [(change["section"], change["key"]) for change in step["changes"]]


def change(section, key, a, b):
    return {"section": section, "key": key, "a": a, "b": b}


def test_an_artefact_does_not_differ_from_itself_or_its_copy(root):
    table, model = Path(STUDY, "tables/main.parquet"), Path(STUDY, "runs/plain/seed1/model")
    copy = Path(shutil.copy(table, Path(STUDY, "tables/copy.parquet")))
    for a, b in ((table, table), (table, copy), (model, model / "record.json")):
        equal = "Contents and records are equal."
        a_name, b_name = (str(path / "record.json" if path == model else path) for path in (a, b))
        assert printed("diff", a, b) == (0, f"{equal}\nA {a_name}\nB {b_name}\nno difference\n")


def test_files_of_one_artefact_are_not_compared_with_each_other(root):
    model = Path(STUDY, "runs/plain/seed1/model")
    with pytest.raises(
        DataError, match=r"files of one artefact, .*model/record\.json\. Choose two artefacts"
    ):
        printed("diff", model / "model.safetensors", model / "1_Pooling/config.json")


@pytest.mark.parametrize("verb", ["diff", "explain", "rebuild"])
def test_a_missing_file_of_a_model_folder_is_not_its_record(root, verb):
    model = Path(STUDY, "runs/plain/seed1/model")
    with pytest.raises(DataError, match=r"modle\.safetensors: no such file"):
        printed(verb, model / "modle.safetensors", *([model] if verb == "diff" else []))


@pytest.fixture
def other_study(study, monkeypatch):
    """The same study under another name, but for the sentences it keeps."""
    monkeypatch.setattr(study, "STUDY", "results/other")
    study.write_study(max_words=40, value=0.6)


def test_a_difference_is_followed_from_report_to_setting(root, other_study):
    *above, last = steps(f"{STUDY}/report.html", "results/other/report.html")
    assert {section for step in above for section, _ in sections(step)} == {"input"}
    followed = ["figure", "table", "scores/scores/sts/suite/plain/seed1.parquet", "model", "corpus"]
    assert [step["followed"] for step in above] == followed
    assert last["changes"] == [change("setting", "corpus.max_words", 50, 40)]
    assert ("value", pytest.approx(0.1)) in [(one["name"], one["largest"]) for one in above[2]["numbers"]]
    code, shown = printed("diff", f"{STUDY}/report.html", "results/other/report.html")
    assert code == 1
    assert shown.startswith(
        "The contents differ, because of input corpus: setting corpus.max_words (50 and 40)."
    )


def test_an_input_that_cannot_be_followed_has_a_reason(root, other_study):
    """The two datasets are equal, though the record of each names another place."""
    flip_a_byte(f"{STUDY}/runs/plain/seed1/model/record.json")
    name = "scores/sts/suite/plain/seed1.parquet"
    (step,) = steps(f"{STUDY}/{name}", f"results/other/{name}")
    assert sections(step) == [("input", "model")]
    assert "not followed: model: " in printed("diff", f"{STUDY}/{name}", f"results/other/{name}")[1]


def test_a_cause_may_have_the_same_record():
    """A job that is not deterministic gives another input with the same record."""
    of_input = Change("input", "model", "0123", "4567")
    first = Step("a", "b", False, [of_input], [], [], "model")
    last = Step("c", "d", False, [], [], [], "")
    said = "The contents differ, because of input model, whose records are equal."
    assert sentence([first, last]) == said


WORDS = "workflow_scripts/data/words.py"


def test_code_packages_and_labels_are_compared_separately(root):
    """Code, packages, machine, commit and labels are compared separately from contents."""
    record = read_record(Path(STUDY, "tables/main.parquet"))
    origin = {"commit": "0123", "processor": "Abacus"}
    changes = {
        "meaning": {file: sha for file, sha in record.meaning.items() if file != WORDS},
        "packages": {**record.packages, "torch": "2.9"},
        "origin": record.origin.model_copy(update=origin),
        "labels": merged_labels(["other engine"]),
        "settings": {"a": {"b": [1, {"c": 2}]}, "empty": {}},
    }
    for name, made in (("a", record), ("b", record.model_copy(update=changes))):
        write_page(Path(f"{name}.svg"), "<svg/>", made)
        with writing_model_folder(Path(name), made) as folder:
            (folder / "model.safetensors").write_bytes(b"weights")
    for suffix in (".svg", ""):
        code, said = data("diff", f"a{suffix}", f"b{suffix}")
        assert code == 1
        assert said["contents_equal"]
        assert _of_step({"step": 1}, said["differences"]) == [
            change("setting", "a.b", ABSENT, [1, '{"c": 2}']),
            change("setting", "empty", ABSENT, "{}"),
            change("code", WORDS, record.meaning[WORDS], ABSENT),
            change("package", "torch", ABSENT, "2.9"),
            change("machine", "processor", record.origin.processor, "Abacus"),
            change("commit", "", record.origin.commit, "0123"),
            change("label", "other engine", ABSENT, "present"),
            change("label", "stand-in encoder", "present", ABSENT),
        ]
    write_page(Path("c.svg"), "<svg><text/></svg>", record)
    assert not data("diff", "a.svg", "c.svg")[1]["contents_equal"]


# By how much


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.5, 2.0], (2, 3, 1.0, 0.75)),
        ([1, 2], [1, 5], (1, 2, 3.0, 3.0)),
        ([1.0, None], [1.0, 2.0], (1, 2, None, None)),
        ([0.0, None], [None, None], (1, 2, None, None)),
        (["x", "y"], ["x", "z"], (1, 2, None, None)),
        ([[1.0, 2.0], [3.0]], [[1.0, 4.0], [3.0]], (1, 3, 2.0, 2.0)),
        ([[1.0], [3.0]], [[1.0, 4.0], [3.0]], (1, 2, None, None)),
        ([math.nan, 1.0], [math.nan, 2.0], (1, 2, 1.0, 1.0)),
        ([math.nan, 1.0], [math.nan, 1.0], None),
        ([None, "x"], [None, "x"], None),
        ([1.0, 2.0], [1.0], None),  # tables of different lengths
    ],
)
def test_a_column_is_compared_cell_by_cell(tmp_path, a, b, expected):
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    for path, column in zip(paths, (a, b), strict=True):
        pq.write_table(pa.table({"c": column}), path)
    assert numeric_differences(*paths) == ([Difference("c", *expected)] if expected else [])


def test_weights_are_compared_over_all_tensors(tmp_path):
    """Weights are compared over all tensors of a file and data of figures by column."""
    for name, weight in (("a", [1.0, 2.0, 3.0]), ("b", [1.0, 2.5, 2.0])):
        (tmp_path / name).mkdir()
        tensors = {
            "w": torch.tensor(weight, dtype=torch.bfloat16),
            "same": torch.ones(2),
            name: torch.ones(1),
        }
        save_file(tensors, tmp_path / name / "model.safetensors")
        pq.write_table(pa.table({"mean": [1.0, sum(weight)]}), tmp_path / name / "sweep.parquet")
    records = [tmp_path / name / "record.json" for name in ("a", "b")]
    differing = Difference("sweep.parquet: mean", 1, 2, 0.5, 0.5)
    assert numeric_differences(*records) == [Difference("model.safetensors", 2, 5, 1.0, 0.75), differing]
