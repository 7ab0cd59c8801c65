"""JSON lines and Parquet."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.columns import FORMS
from workflow_scripts.data.readers.records import Config, read
from workflow_scripts.errors import DataError

PAIRS = {"sentence1": "a", "sentence2": "b", "score": "s"}
ROWS = [
    {"a": "It rains.", "b": "It \u2028pours.", "s": 4.5, "n": 1},
    {"a": "2020-01-01", "b": "c", "s": None, "n": 2},
]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("asked the network")

    monkeypatch.setattr("socket.socket.connect", refuse)


def written(folder, rows, name):
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        text = json.dumps(rows) if name == "list.json" else "\r\n".join(json.dumps(row) for row in rows)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def rows_of(files, columns, form):
    table = read(files, Config(columns=columns, format=form)).table
    assert table.schema in FORMS.values()
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("name", ["x.jsonl", "list.json", "x.jsonl.gz", "x.parquet", "[odd]*.parquet"])
def test_pairs_of_both_formats_are_the_same(tmp_path, name):
    files = {"all": written(tmp_path, ROWS, name)}
    rows = rows_of(files, PAIRS, "parquet" if name.endswith("parquet") else "json")
    assert rows == [("", "It rains.", "It \u2028pours.", 4.5), ("", "2020-01-01", "c", None)]


def test_triples_and_labelled_texts_in_parts(tmp_path):
    files = {part: written(tmp_path, ROWS[:1], f"{part}.jsonl") for part in ("test", "train")}
    triples = rows_of(files, {"anchor": "a", "positive": "b"}, "json")
    assert triples == [("It rains.", "It \u2028pours.", None)] * 2
    found = rows_of(files, {"text1": "a", "label": "n"}, "json")
    assert found == [("train", "It rains.", None, "1"), ("test", "It rains.", None, "1")]


@pytest.mark.parametrize(
    ("content", "columns", "form", "message"),
    [
        (
            b'{"a": "x"}\n{"a": \n',
            PAIRS,
            "json",
            r"all: not json: .*\. Correct the file, or the option format\.",
        ),
        (b'{"a": "x"}\n', PAIRS, "parquet", "all: not parquet: "),
        (b'{"a": "x", "b": "y"}\n', PAIRS, "json", r"all: no column 's'; has \['a', 'b'\]"),
        (b'{"a": "x", "b": "y", "s": "high"}\n', PAIRS, "json", "column 's' cannot be read as double"),
        (
            b'{"a": "x", "b": "2020-01-01", "s": 1}\n',
            PAIRS,
            "json",
            "column 'b' cannot be read as string: it holds time",
        ),
        (b'{"a": ["x"], "b": "y", "s": 1}\n', PAIRS, "json", "column 'a' cannot be read as string"),
    ],
)
def test_a_misfit_is_one_line(tmp_path, content, columns, form, message):
    (tmp_path / "all").write_bytes(content)
    with pytest.raises(DataError, match=message) as stopped:
        rows_of({"all": tmp_path / "all"}, columns, form)
    assert "\n" not in str(stopped.value)
