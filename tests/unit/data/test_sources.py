import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.columns.corpora import LABELLED, PAIRS
from workflow_scripts.config import ConfigError
from workflow_scripts.data import sources
from workflow_scripts.data.planned import NOT_REACHED, text_of
from workflow_scripts.data.sources import check_contract, load, load_planned
from workflow_scripts.errors import DataError, MissingError, UnreachableError
from workflow_scripts.settings.datasets import Dataset

TSV = "subset\tscore\tsentence1\tsentence2\nA\t4.4\ta\tb\nB\t0\tc\td\n"
REVISION = "0" * 40


def dataset(*sources, form="pairs", contract=None, **more):
    block = {
        "form": form,
        "sources": list(sources),
        "contract": contract or {},
        **more,
    }
    return Dataset.parse(block, "datasets.toy")


def local(path="toy.tsv", sha256=None):
    return {
        "kind": "local",
        "files": {"all": {"path": path, "sha256": sha256}},
        "reader": "delimited",
        "options": {"columns": {name: name for name in ("subset", "sentence1", "sentence2", "score")}},
    }


def hub(**more):
    columns = {"sentence1": "sentence1", "sentence2": "sentence2", "score": "score"}
    return {
        "kind": "hub",
        "repository": "team/toy",
        "revision": REVISION,
        "splits": ["test"],
        "columns": columns,
    } | more


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def root(tmp_path):
    (tmp_path / "toy.tsv").write_text(TSV, "utf-8")
    return tmp_path


@pytest.fixture
def hub_copy(tmp_path, monkeypatch):
    """A folder that `datasets` reads as a repository: what it does with a download, without the download."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(sources, "find", lambda *_: REVISION)
    monkeypatch.chdir(tmp_path)

    def write(**splits):
        for split, columns in splits.items():
            (tmp_path / "team/toy/data").mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), tmp_path / f"team/toy/data/{split}-00000-of-00001.parquet")

    return write


def test_the_first_source_that_is_there_is_read_and_named(root):
    found, origin = load("toy", dataset(local("other.tsv"), local()), root)
    assert found.table.num_rows == 2
    assert origin["all"].path == "local:toy.tsv"
    assert origin["all"].sha256 == sha256(root / "toy.tsv")


def test_bytes_that_are_not_the_pinned_ones_are_refused(root):
    with pytest.raises(DataError, match=r"toy\.tsv: sha256 .*; pinned 1111"):
        load("toy", dataset(local(sha256="1" * 64)), root)


def test_an_unpinned_file_is_held_to_its_contract(root):
    assert load("toy", dataset(local(), contract={"rows": 2, "groups": {"A": 1, "B": 1}}), root)
    with pytest.raises(DataError, match=r"datasets\.toy: rows 2; its contract says 3"):
        load("toy", dataset(local(), contract={"rows": 3}), root)


def test_leaving_out_a_hash_has_to_be_written_down():
    with pytest.raises(ConfigError, match="sha256"):
        dataset({**local(), "files": {"all": {"path": "toy.tsv"}}})


def test_every_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        MissingError,
        match=r"toy: no source is available: .*toy\.tsv does not exist \(sha256 not pinned\); "
        rf".*other\.tsv does not exist \(sha256 {'1' * 64}\)\.$",
    ):
        load("toy", dataset(local(), local("other.tsv", "1" * 64)), tmp_path)


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ({"groups": {"A": 2}}, "groups"),
        ({"min_rows": 3}, "2 rows; its contract says at least 3"),
        ({"score_range": [1, 5]}, "scores from 0.0 to 4.4"),
        ({"score_range": [0, 4]}, "scores from 0.0 to 4.4"),
    ],
)
def test_rows_that_break_the_contract_are_refused(root, contract, message):
    with pytest.raises(DataError, match=message):
        load("toy", dataset(local(), contract=contract), root)


def test_a_wrong_number_of_classes_is_refused():
    table = pa.Table.from_pylist([{"split": "", "text1": "a", "label": "1"}], schema=LABELLED)
    with pytest.raises(DataError, match="labels 1; its contract says 2"):
        check_contract("toy", dataset(local(), form="labelled", contract={"labels": 2}), table)


def test_groups_are_not_asked_of_a_source_that_does_not_tell_them():
    rows = [{"subset": None, "sentence1": "a", "sentence2": "b", "score": 1.0}] * 2
    promise = dataset(local(), contract={"rows": 2, "groups": {"A": 1, "B": 1}})
    check_contract("toy", promise, pa.Table.from_pylist(rows, schema=PAIRS))
    rows[0] = {**rows[0], "subset": "A"}
    with pytest.raises(DataError, match="groups"):
        check_contract("toy", promise, pa.Table.from_pylist(rows, schema=PAIRS))


def test_a_hub_source_takes_one_language_and_leaves_unknown_subsets_null(hub_copy, tmp_path):
    hub_copy(
        test={
            "sentence1": ["a", "b", "c"],
            "sentence2": ["d", "e", "f"],
            "score": pa.array([1, 2, 3], pa.float32()),
            "lang": ["en", "de", "en"],
        }
    )
    found, origin = load("toy", dataset(hub(where={"lang": "en"})), tmp_path)
    assert found.table.schema == PAIRS
    assert [tuple(row.values()) for row in found.table.to_pylist()] == [
        (None, "a", "d", 1.0),
        (None, "c", "f", 3.0),
    ]
    assert origin["hub"].path == f"hub:team/toy@{REVISION}"


def test_the_record_of_a_hub_source_holds_a_hash_of_its_rows(hub_copy, tmp_path):
    """So that a lock shows a change of what the Hub serves under one revision."""
    hashes = []
    for score in (5.0, 4.0, 5.0):
        hub_copy(test={"sentence1": ["a"], "sentence2": ["b"], "score": [score]})
        _, origin = load("toy", dataset(hub(), contract={"rows": 1}), tmp_path)
        hashes.append(origin["hub"].sha256)
    assert len(hashes[0]) == 64
    assert hashes[0] == hashes[2] != hashes[1]


def test_a_hub_source_puts_its_splits_under_our_names(hub_copy, tmp_path):
    hub_copy(
        train={"sentence1": ["a"], "sentence2": ["b"], "score": [5.0]},
        validation={"sentence1": ["c"], "sentence2": ["d"], "score": [2.615]},
    )
    source = hub(
        splits=["validation", "train"],
        split_names={"train": "train", "validation": "dev"},
        columns={"text1": "sentence1", "text2": "sentence2", "label": "score"},
    )
    found, _ = load("toy", dataset(source, form="labelled"), tmp_path)
    assert found.table.schema == LABELLED
    assert [tuple(row.values()) for row in found.table.to_pylist()] == [
        ("dev", "c", "d", "2.615"),
        ("train", "a", "b", "5"),
    ]


def test_a_hub_table_without_a_column_is_refused(hub_copy, tmp_path):
    hub_copy(test={"sentence1": ["a"], "sentence2": ["b"], "label": [5.0]})
    with pytest.raises(DataError, match="no column 'score'; has"):
        load("toy", dataset(hub()), tmp_path)


def test_a_split_that_the_hub_does_not_have_is_a_mistake_and_no_gap(hub_copy, tmp_path):
    hub_copy(train={"sentence1": ["a"], "sentence2": ["b"], "score": [5.0]})
    with pytest.raises(
        DataError, match=r"hub:team/toy@0+: ValueError: Unknown split.*Correct the block"
    ) as found:
        load("toy", dataset(hub()), tmp_path)
    assert not isinstance(found.value, MissingError)


def hub_that(monkeypatch, error):
    def find(repository, *_):
        raise error(f"hub:{repository}: told so")

    monkeypatch.setattr(sources, "find", find)


def test_a_source_on_this_machine_comes_before_the_hub(root, monkeypatch):
    hub_that(monkeypatch, AssertionError)
    assert "all" in load("toy", dataset(hub(), local()), root)[1]


@pytest.mark.parametrize("optional", [True, False])
def test_a_hub_that_cannot_be_asked_stops_and_makes_no_gap(tmp_path, monkeypatch, optional):
    hub_that(monkeypatch, UnreachableError)
    block = dataset(local(), hub(), optional=optional)
    with pytest.raises(
        UnreachableError, match=r"toy\.tsv does not exist .*hub:team/toy: told so\. Go online"
    ):
        load_planned("toy", block, tmp_path, f"hub:team/toy@{REVISION}")


def test_what_is_definitely_not_there_is_a_gap_that_names_file_source_and_hash(tmp_path, monkeypatch, capsys):
    hub_that(monkeypatch, MissingError)
    block = dataset(local(sha256="1" * 64), local("other.tsv"), hub(), optional=True)
    rows, origin, gap = load_planned("toy", block, tmp_path, f"hub:team/toy@{REVISION}")
    assert (len(rows.table), origin) == (0, {})
    files = f"local:toy.tsv (sha256 {'1' * 64}), or local:other.tsv (sha256 not pinned)"
    assert gap == f"toy: not there; expected {files}, or hub:team/toy@{REVISION}"
    assert f"{tmp_path}/toy.tsv does not exist" in capsys.readouterr().out
    with pytest.raises(MissingError):
        load_planned("toy", block.model_copy(update={"optional": False}), tmp_path, "none")


def test_a_hub_that_was_not_reached_when_planning_is_not_asked(tmp_path, monkeypatch):
    hub_that(monkeypatch, AssertionError)
    block = dataset(local(), hub(), optional=True)
    found = load_planned("toy", block, tmp_path, f"{NOT_REACHED}hub:team/toy@{REVISION}")
    assert (
        found.gap
        == f"toy: Hub not reached; expected local:toy.tsv (sha256 not pinned), or hub:team/toy@{REVISION}"
    )


def test_a_file_may_be_any_of_the_copies_that_are_pinned(root):
    block = local(sha256=["1" * 64, sha256(root / "toy.tsv")])
    assert len(load("toy", dataset(block), root)[0].table) == 2
    (root / "toy.tsv").write_text(TSV + "A\t1\te\tf\n", "utf-8")
    with pytest.raises(
        DataError, match=rf"toy\.tsv: sha256 [0-9a-f]+; pinned {'1' * 64} or [0-9a-f]+\. Down"
    ):
        load("toy", dataset(block), root)


def test_a_broken_set_is_a_gap_only_where_that_is_wanted(root, monkeypatch):
    """The label says what was found, and has no folder of this machine in it."""
    now = sha256(root / "toy.tsv")
    planned = text_of({"local:toy.tsv": now})
    broken = {
        f"toy: broken: toy.tsv: sha256 {now}; pinned {'1' * 64}. Download it again": local(sha256="1" * 64),
        "toy: broken: datasets.toy: rows 2; its contract says 3.": local(sha256=now),
    }
    for label, source in broken.items():
        block = dataset(source, optional=True, contract={"rows": 3})
        with pytest.raises(DataError):
            load_planned("toy", block, root, planned)
        rows, origin, gap = load_planned("toy", block, root, planned, gap_if_broken=True)
        assert (len(rows.table), origin) == (0, {})
        assert gap.startswith(label), gap
    hub_that(monkeypatch, UnreachableError)
    with pytest.raises(UnreachableError):
        load_planned("toy", dataset(hub(), optional=True), root, "none", gap_if_broken=True)


def test_what_was_there_when_planning_never_becomes_a_gap(root):
    planned = text_of({"local:toy.tsv": sha256(root / "toy.tsv")})
    block = dataset(local(), optional=True)
    assert load_planned("toy", block, root, planned).gap is None
    (root / "toy.tsv").write_text(TSV + "A\t1\te\tf\n", "utf-8")
    with pytest.raises(
        DataError, match=f"datasets.toy: read from local:toy.tsv .*, but planned with {planned}"
    ):
        load_planned("toy", block, root, planned)
    (root / "toy.tsv").unlink()
    with pytest.raises(
        MissingError, match=rf"toy\.tsv does not exist.* Planned with {planned}\. Put it back"
    ):
        load_planned("toy", block, root, planned)
