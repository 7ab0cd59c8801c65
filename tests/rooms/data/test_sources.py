import hashlib
import json
import re
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.columns import LABELLED, PAIRS
from workflow_scripts.data import sources
from workflow_scripts.data.datasets import check_contract, load, load_planned
from workflow_scripts.data.sources import Repository, SourcePlan
from workflow_scripts.errors import DataError, MissingError, UnreachableError
from workflow_scripts.settings.base import ConfigError
from workflow_scripts.settings.sources import Dataset

TSV = "subset\tscore\tsentence1\tsentence2\nA\t4.4\ta\tb\nB\t0\tc\td\n"
REVISION = "0" * 40
OTHER = "1" * 64
ON_HUB = f"hub:team/toy@{REVISION}"
COLUMNS = {name: name for name in ("sentence1", "sentence2", "score")}


def dataset(*sources, form="pairs", contract=None, **more):
    block = {"form": form, "sources": list(sources), "contract": contract or {}, **more}
    return Dataset.parse(block, "datasets.toy")


def local(path="toy.tsv", sha256=None):
    files = {"all": {"path": path, "sha256": sha256}}
    options = {"columns": COLUMNS | {"subset": "subset"}}
    return {"kind": "local", "files": files, "reader": "delimited", "options": options}


def hub(**more):
    found = {"kind": "hub", "repository": "team/toy", "revision": REVISION}
    return found | {"splits": ["test"], "columns": COLUMNS} | more


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rows_of(loaded):
    return [tuple(row.values()) for row in loaded.table.to_pylist()]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "toy.tsv").write_text(TSV, "utf-8")
    return tmp_path


@pytest.fixture
def hub_copy(tmp_path, monkeypatch):
    """A function that writes the files of a download."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(sources, "download", lambda *_: tmp_path / "toy")

    def write(**splits):
        (tmp_path / "toy/data").mkdir(parents=True, exist_ok=True)
        for split, columns in splits.items():
            pq.write_table(pa.table(columns), tmp_path / f"toy/data/{split}-00000-of-00001.parquet")

    return write


@pytest.fixture
def hub_that(monkeypatch):
    """A function that has every download fail."""
    return lambda error: monkeypatch.setattr(
        sources, "download", Mock(side_effect=error("hub:team/toy: told so"))
    )


def test_the_first_source_is_read_and_the_hub_comes_last(root, hub_that):
    """The first available source is read and the Hub comes last."""
    hub_that(AssertionError)
    found, origin = load("toy", dataset(hub(), local("other.tsv"), local()), root)
    assert found.table.num_rows == 2
    assert (origin["all"].path, origin["all"].sha256) == ("local:toy.tsv", sha256(root / "toy.tsv"))


def test_a_file_has_one_of_the_pinned_hashes_or_is_refused(root):
    pins = [OTHER, sha256(root / "toy.tsv")]
    assert len(load("toy", dataset(local(sha256=pins)), root)[0].table) == 2
    (root / "toy.tsv").write_text(TSV + "A\t1\te\tf\n", "utf-8")
    with pytest.raises(DataError, match=rf"toy\.tsv: sha256 [0-9a-f]+; pinned {OTHER} or {pins[1]}\. Put"):
        load("toy", dataset(local(sha256=pins)), root)
    with pytest.raises(ConfigError, match="sha256"):  # leaving it out has to be written down
        dataset({**local(), "files": {"all": {"path": "toy.tsv"}}})


def test_an_empty_list_of_hashes_pins_nothing(root):
    with pytest.raises(
        DataError, match=rf"toy\.tsv: sha256: an empty .* Set it to {sha256(root / 'toy.tsv')}, or"
    ):
        load("toy", dataset(local(sha256=[])), root)


def test_texts_that_were_not_decoded_are_counted_in_the_log(root, capsys):
    """As in one text of STS12; published numbers are computed on it."""
    (root / "toy.tsv").write_text(TSV + "A\t1\te\ufffd\tf\nA\t1\t\ufffd\ufffdg\th\ufffd\n", "utf-8")
    assert len(load("toy", dataset(local()), root)[0].table) == 4
    assert "datasets.toy: 3 texts contain U+FFFD" in capsys.readouterr().out
    (root / "toy.tsv").write_text(TSV, "utf-8")
    load("toy", dataset(local()), root)
    assert "U+FFFD" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ({"rows": 3}, "rows 2; its contract says 3"),
        ({"groups": {"A": 2}}, "groups"),
        ({"min_rows": 3}, "rows 2; its contract says at least 3"),
        ({"score_range": [1, 5]}, "scores from 0.0 to 4.4"),
        ({"score_range": [0, 4]}, "scores from 0.0 to 4.4"),
    ],
)
def test_rows_that_break_the_contract_are_refused(root, contract, message):
    kept = {"rows": 2, "groups": {"A": 1, "B": 1}, "score_range": [0, 4.4]}
    assert load("toy", dataset(local(), contract=kept), root)
    with pytest.raises(DataError, match=rf"datasets\.toy: {message}"):
        load("toy", dataset(local(), contract=contract), root)


def test_the_contract_names_rows_that_were_dropped(root):
    (root / "toy.tsv").write_text(TSV + "A\t1\t\tf\n", "utf-8")
    for contract in ({"rows": 3}, {"min_rows": 3}):
        with pytest.raises(DataError, match="rows 2, 1 more dropped for empty text; its contract says"):
            load("toy", dataset(local(), contract=contract), root)


def test_classes_and_negatives_are_checked():
    labelled = pa.Table.from_pylist([{"split": "", "text1": "a", "label": "1"}], schema=LABELLED)
    with pytest.raises(DataError, match="labels 1; its contract says 2"):
        check_contract("toy", dataset(local(), form="labelled", contract={"labels": 2}), labelled)
    triples = pa.table({"anchor": ["a", "b"], "positive": ["c", "d"], "negative": ["e", None]})
    with pytest.raises(DataError, match="row 2: negative is missing"):
        check_contract("toy", dataset(hub(), form="triples"), triples)


def labelled(*labels, splits=None, contract=None):
    """Check texts of these labels against a contract."""
    rows = [
        {"split": split, "text1": f"text {number}", "label": label}
        for number, (label, split) in enumerate(zip(labels, splits or [""] * len(labels), strict=True))
    ]
    table = pa.Table.from_pylist(rows, schema=LABELLED)
    check_contract("toy", dataset(local(), form="labelled", contract=contract), table)


@pytest.mark.parametrize(
    "other",
    [
        "sport ",
        "Sport",
        "sport\u00a0",
        "sport\u200b",
        "spo rt",
        "\uff53port",
        "SPORT",
        " sport",
        "sport\u00ad",
    ],
)
def test_labels_that_are_almost_the_same_are_refused(other):
    labelled("sport", "food", "sport", "food")
    with pytest.raises(
        DataError,
        match=rf"labels 'sport' \(2 rows\) and {re.escape(repr(other))} \(1\) differ only in spelling",
    ):
        labelled("sport", "food", other, "sport", contract={"labels": 3})


@pytest.mark.parametrize(
    ("one", "other"),
    [("caf\xe9", "cafe\u0301"), ("1", "1.0"), ("1", "01"), ("-1", "-1.00"), ("true", "TRUE")],
)
def test_labels_of_one_value_in_two_forms_are_refused(one, other):
    labelled(one, one, "2", "2")
    with pytest.raises(DataError, match="differ only in spelling"):
        labelled(one, "2", other, "2")


@pytest.mark.parametrize("missing", ["nan", "NaN", "NA", "None", "null", "N/A", "<NA>"])
def test_a_label_for_missing_values_is_no_class_by_default(missing):
    """A label for missing values is a class only if the contract counts it."""
    with pytest.raises(
        DataError, match=rf"label '{missing}' \(1 rows\) may stand for a missing value.* labels: 3 to"
    ):
        labelled("a", missing, "b", "b", "a")
    labelled("a", missing, "b", "b", "a", contract={"labels": 3})


def test_a_label_of_first_rows_only_is_the_name_of_a_column():
    thrice = ("label", "a", "b") * 3, [part for part in ("train", "dev", "test") for _ in range(3)]
    with pytest.raises(DataError, match="label 'label' occurs only in the first row"):
        labelled(*thrice[0], splits=thrice[1])
    with pytest.raises(DataError, match="label 'stars' occurs only in the first row"):
        labelled("stars", "a", "b", "a", "b")
    labelled("stars", "a", "b", "a", "b", contract={"labels": 3})
    labelled("2.5", "1", "3", "1", "3")
    labelled("a", "b", "c", "b")


def test_a_range_of_scores_holds_for_grades_too():
    labelled("1", "4.5", "1", "4.5", contract={"score_range": [1, 5]})
    with pytest.raises(DataError, match=r"scores from 1.0 to 4.5; its contract says \(0.0, 1.0\)"):
        labelled("1", "4.5", "1", "4.5", contract={"score_range": [0, 1]})
    with pytest.raises(DataError, match="score 'a' is not a number, but its contract has a score_range"):
        labelled("1", "a", "1", "a", contract={"score_range": [0, 1]})


def test_texts_that_are_all_numbers_are_another_column():
    pairs = {
        "subset": ["", ""],
        "sentence1": ["a 1", "2"],
        "sentence2": ["702876", "702977"],
        "score": [1.0, 2.0],
    }
    with pytest.raises(
        DataError, match=r"sentence2: all 2 texts are numbers, such as 702876\. Choose the column of"
    ):
        check_contract("toy", dataset(local()), pa.table(pairs, schema=PAIRS))


def test_a_missing_label_of_the_hub_is_no_class(hub_copy):
    columns = {"text1": "text", "label": "label"}
    for labels in ([1.0, None, 0.0], [1.0, float("nan"), 0.0], ["1", None, "0"]):
        hub_copy(test={"text": [*"abc"], "label": labels})
        with pytest.raises(DataError, match="row 2: label is missing"):
            load("toy", dataset(hub(columns=columns), form="labelled"), None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"sentence1": [1, 2]},
            "column 'sentence1' cannot be read as sentence1: its type is int64, not text",
        ),
        ({"score": ["4.5", "4,5"]}, "column 'score' cannot be read as score: score '4,5' is not a number"),
        ({"score": ["4.5", "1_0"]}, "score '1_0' is not a number"),
        ({"score": ["4.5", "NaN"]}, "score 'NaN' is not a number"),
    ],
)
def test_a_column_of_the_hub_that_is_another_is_named(hub_copy, columns, message):
    good = {"sentence1": [*"ab"], "sentence2": [*"cd"], "score": ["4.5", " "]}
    hub_copy(test=good)
    assert load("toy", dataset(hub()), None)[0].dropped == {"no score": 1}
    hub_copy(test=good | columns)
    with pytest.raises(DataError, match=f"^{ON_HUB}: .*{message}"):
        load("toy", dataset(hub()), None)


def test_unjudged_pairs_and_empty_triples_are_dropped(root, hub_copy):
    """O-02: the release of STS15 lists 8,500 pairs, of which 3,000 were judged."""
    (root / "toy.tsv").write_text(TSV + "A\t\te\tf\n", "utf-8")
    scores = pa.array([4.4, None, float("nan")])
    hub_copy(test={"sentence1": [*"abc"], "sentence2": [*"def"], "score": scores})
    for source, left in ((local(), 2), (hub(), 1)):
        found, _ = load("toy", dataset(source, contract={"rows": left}), root)
        assert (len(found.table), found.dropped) == (left, {"no score": 3 - left})
        with pytest.raises(
            DataError, match=rf"rows {left}, {3 - left} more dropped for no score; its con.*says 3"
        ):
            load("toy", dataset(source, contract={"rows": 3}), root)
    hub_copy(test={"a": ["a", "", "b", "c"], "p": ["p", "q", None, " "]})
    triples = hub(columns={"anchor": "a", "positive": "p"})
    found, _ = load("toy", dataset(triples, form="triples"), None)
    assert (rows_of(found), found.dropped) == ([("a", "p", None)], {"empty text": 3})


def test_pairs_with_an_empty_text_are_dropped_and_counted(root, hub_copy):
    (root / "toy.tsv").write_text(TSV + "A\t1\t\tf\nA\t2\te\t  \nA\t\t\tf\n", "utf-8")
    hub_copy(
        test={"sentence1": [*"ac", "", "\u00a0", ""], "sentence2": [*"bdfgh"], "score": [4.4, 0, 1, 2, None]}
    )
    for source in (local(), hub()):
        found, _ = load("toy", dataset(source, contract={"rows": 2}), root)
        assert found.table["sentence1"].to_pylist() == ["a", "c"]
        assert found.dropped == {"no score": 1, "empty text": 2}


def test_labelled_texts_that_are_empty_are_kept_and_counted(root, hub_copy):
    """Published numbers of SentEval count them."""
    columns = {"text1": "text", "text2": "more", "label": "label"}
    (root / "toy.tsv").write_text("text\tmore\tlabel\na\tb\tx\n\tc\tx\nd\t \ty\n", "utf-8")
    hub_copy(test={"text": ["a", "", "d"], "more": ["b", "c", " "], "label": [*"xxy"]})
    file = {**local(), "options": {"columns": columns}}
    for source in (file, hub(columns=columns)):
        found, _ = load("toy", dataset(source, form="labelled"), root)
        assert (len(found.table), found.dropped) == (3, {"kept: blank line": 2})


@pytest.mark.parametrize(
    ("scores", "message"),
    [([1, float("inf")], "row 2: score is not finite"), (["x", "1"], "'score' cannot be read")],
)
def test_a_score_that_is_infinite_or_text_is_named(hub_copy, scores, message):
    hub_copy(test={"sentence1": [*"ab"], "sentence2": [*"cd"], "score": scores})
    with pytest.raises(DataError, match=message):
        load("toy", dataset(hub()), None)


def test_a_hub_source_takes_one_language(hub_copy):
    """Nobody can tell then whether the groups of the contract are there."""
    scores = pa.array([1, 2, 3], pa.float32())
    hub_copy(test={"sentence1": [*"abc"], "sentence2": [*"def"], "score": scores, "lang": ["en", "de", "en"]})
    block = dataset(hub(filter={"lang": "en"}), contract={"groups": {"A": 1, "B": 1}})
    found, origin = load("toy", block, None)
    assert (found.table.schema, origin["hub"].path) == (PAIRS, ON_HUB)
    assert rows_of(found) == [(None, "a", "d", 1.0), (None, "c", "f", 3.0)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"tags": "a"}, "filter: column 'tags' cannot be compared with 'a': .*list.* Choose a column of"),
        ({"flag": "True"}, "filter: flag: no row has 'True'. Did you mean true"),
        ({"number": "1.0"}, "filter: number: no row has '1.0'. Choose from: 1, 2.5."),
    ],
)
def test_a_filter_without_rows_names_the_values(hub_copy, value, message):
    more = {"tags": [["a"], []], "flag": [True, False], "number": [1, 2.5]}
    hub_copy(test={"sentence1": [*"ab"], "sentence2": [*"cd"], "score": [1.0, 2.0]} | more)
    with pytest.raises(DataError, match=f"^{ON_HUB}: {message}"):
        load("toy", dataset(hub(filter=value)), None)
    assert len(load("toy", dataset(hub(filter={"flag": "true", "number": "1"})), None)[0].table) == 1


def test_a_filter_may_leave_no_row_of_one_split(hub_copy):
    pair = {"sentence1": ["a"], "sentence2": ["b"], "score": [1.0]}
    hub_copy(train=pair | {"lang": ["en"]}, test=pair | {"lang": ["de"]})
    source = hub(splits=["train", "test"], filter={"lang": "en"})
    assert len(load("toy", dataset(source), None)[0].table) == 1


FIELDS = "sentence1,sentence2,score\n"
DAMAGED = {
    "half a line of JSON": ({"test.jsonl": b'{"sentence1": "a", "sentence2": "b", "score": 1}\n{"sen'}, "JSON parse error"),
    "a long row": ({"test.csv": f"{FIELDS}a,b,1\na,b,1,2\n".encode()}, "Expected 3 fields in line 3, saw 4"),
    "Latin-1": ({"test.csv": f"{FIELDS}caf\xe9,b,1\n".encode("latin-1")}, "can't decode byte 0xe9"),
    "nothing": ({"test-00000-of-00001.parquet": b""}, "Parquet file size is 0 bytes"),
    "other columns": ({"test-1.csv": f"{FIELDS}a,b,1\n".encode(), "test-2.csv": b"sentence1,other\na,b\n"}, "other: large_string"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "found"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_of_the_hub_end_in_one_line(tmp_path, hub_copy, files, found):
    hub_copy()
    for name, content in files.items():
        (tmp_path / "toy/data" / name).write_bytes(content)
    with pytest.raises(DataError, match=f"^{ON_HUB}: its files cannot be read: .*{found}.*") as stopped:
        load("toy", dataset(hub()), None)
    assert re.search(r"\. Choose another revision, or correct a copy[^\n]*$", str(stopped.value))


@pytest.mark.parametrize("column", ["text", "label", "lang"])
def test_a_column_of_several_types_is_refused(tmp_path, hub_copy, column):
    hub_copy()
    cells = {"text": "a b", "label": "x", "lang": "en"}
    rows = [json.dumps(cells | {column: value}) for value in (cells[column], 1)]
    (tmp_path / "toy/data/test.jsonl").write_text("\n".join(rows))
    source = hub(columns={"text1": "text", "label": "label"}, filter={"lang": "en"})
    with pytest.raises(DataError, match=f"column '{column}' .* several types, such as .* and 1"):
        load("toy", dataset(source, form="labelled"), None)


def test_a_hub_source_puts_its_splits_under_our_names(hub_copy):
    train = {"sentence1": ["a"], "sentence2": ["b"], "score": [5.0]}
    hub_copy(train=train, validation={"sentence1": ["c"], "sentence2": ["d"], "score": [2.615]})
    columns = {"text1": "sentence1", "text2": "sentence2", "label": "score"}
    names = {"train": "train", "validation": "dev"}
    source = hub(splits=["validation", "train"], split_names=names, columns=columns)
    found, _ = load("toy", dataset(source, form="labelled"), None)
    assert rows_of(found) == [("dev", "c", "d", "2.615"), ("train", "a", "b", "5")]


@pytest.mark.parametrize(
    ("split", "column", "found"),
    [("test", "label", "no column 'score'"), ("train", "score", "Unknown split .* Check name, splits")],
)
def test_a_missing_column_or_split_of_the_hub_is_an_error(hub_copy, split, column, found):
    hub_copy(**{split: {"sentence1": ["a"], "sentence2": ["b"], column: [5.0]}})
    with pytest.raises(DataError, match=f"^{ON_HUB}: {found}") as stopped:
        load("toy", dataset(hub()), None)
    assert not isinstance(stopped.value, MissingError)


REPOSITORY = Repository(name="team/toy", revision=REVISION)
PLANS = {kind: SourcePlan(kind=kind, repositories=(REPOSITORY,)) for kind in ("hub", "unreachable", "absent")}


@pytest.mark.parametrize("optional", [True, False])
def test_an_unreachable_hub_stops_the_job(tmp_path, hub_that, optional):
    hub_that(UnreachableError)
    block = dataset(local(), hub(), optional=optional)
    with pytest.raises(UnreachableError, match=r"toy\.tsv does not .*hub:team/toy: told so\. Go online"):
        load_planned("toy", block, tmp_path, PLANS["hub"])


@pytest.mark.parametrize(
    ("error", "planned", "why"),
    [
        (MissingError, "hub", "not found"),
        (AssertionError, "unreachable", "Hub not reached"),
        (AssertionError, "absent", "not found"),
    ],
)
def test_a_gap_names_file_source_and_hash(tmp_path, hub_that, capsys, error, planned, why):
    """Missing data are a gap; a Hub that was not reached during planning is not asked."""
    hub_that(error)
    block = dataset(local(sha256=OTHER), local("other.tsv"), hub(), optional=True)
    rows, origin, gap = load_planned("toy", block, tmp_path, PLANS[planned])
    assert (len(rows.table), origin) == (0, {})
    files = f"local:toy.tsv (sha256 {OTHER}), or local:other.tsv (sha256 not pinned)"
    assert gap == f"toy: {why}; expected {files}, or {ON_HUB}"
    assert f"{tmp_path}/toy.tsv does not exist" in capsys.readouterr().out
    with pytest.raises(MissingError):
        load_planned("toy", block.model_copy(update={"optional": False}), tmp_path, PLANS[planned])


def test_planned_data_never_become_a_gap(root):
    """Data that were available during planning never become a gap."""
    was = sha256(root / "toy.tsv")
    planned = SourcePlan(kind="files", files={"local:toy.tsv": was})
    block = dataset(local(), optional=True)
    assert load_planned("toy", block, root, planned)[2] is None
    (root / "toy.tsv").write_text(TSV + "A\t1\te\tf\n", "utf-8")
    with pytest.raises(
        DataError, match=f"toy: read from local:toy.tsv .*, but planned with local:toy.tsv sha256:{was}"
    ):
        load_planned("toy", block, root, planned)
    (root / "toy.tsv").unlink()
    found = rf"toy\.tsv does not exist.* Planned with local:toy.tsv sha256:{was}\. Put it back"
    with pytest.raises(MissingError, match=found):
        load_planned("toy", block, root, planned)
