"""Records on disk: inputs by role, of this version and of those before."""

import hashlib
import json

import pytest

from workflow_scripts.provenance.artefacts import RECORD_KEY, content_identity
from workflow_scripts.provenance.record import Input, Label, Record, gap_label, merged_labels

SCORES = {"path": "results/a/scores/x.parquet", "sha256": "2" * 64}
MORE = {"path": "results/a/scores/y.parquet", "sha256": "1" * 64}
MODEL = {"path": "results/a/runs/plain/record.json", "sha256": "3" * 64}
HUB = {"path": "hub:owner/name@01234/1_Pooling/config.json", "sha256": "4" * 64}
ORIGIN = {
    "commit": None, "dirty": False, "python": "3.11", "processor": "a processor", "capability": "", "threads": 1,
    "blas": "",
}  # fmt: skip
DECIDES = {
    "rule": "make_table",
    "wildcards": {"experiment": "main"},
    "settings": {"suite": "sts"},
    "meaning": {"workflow_scripts/columns.py": "5" * 64},
    "packages": {"torch": "2.0"},
}


def written(inputs):
    """A record as JSON, with a key that is computed here."""
    inner = [
        ["model", MODEL["sha256"]],
        *([f"scores/{one['path']}", one["sha256"]] for one in (SCORES, MORE)),
    ]
    text = json.dumps(DECIDES | {"inputs": inner}, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()
    return DECIDES | {"key": key, "inputs": inputs, "outputs": ["t.parquet"], "labels": [], "origin": ORIGIN}


BEFORE = {
    f"scores/{SCORES['path']}": SCORES,
    f"scores/{MORE['path']}": MORE,
    "model": MODEL,
    "1_Pooling/config.json": HUB,
}
NOW = {"scores": [SCORES, MORE], "model": MODEL, "1_Pooling/config.json": HUB}


@pytest.mark.parametrize("inputs", [BEFORE, NOW], ids=["before roles had lists", "now"])
def test_inputs_are_read_by_role_and_the_key_still_agrees(inputs):
    record = Record.model_validate(written(inputs))
    assert record.inputs == {
        "scores": [Input(**SCORES), Input(**MORE)],
        "model": Input(**MODEL),
        "1_Pooling/config.json": Input(**HUB),
    }
    assert record.recomputed_key() == record.key
    assert json.loads(record.to_json())["inputs"] == NOW
    assert record.sources == [Input(**HUB)]


def test_the_order_of_inputs_of_a_role_is_kept_and_counts():
    record = Record.model_validate(written(NOW | {"scores": [MORE, SCORES]}))
    assert [one["path"] for one in json.loads(record.to_json())["inputs"]["scores"]] == [
        MORE["path"],
        SCORES["path"],
    ]
    assert record.recomputed_key() != record.key


def test_labels_that_are_texts_in_older_records_have_a_kind():
    given = written(NOW) | {"labels": ["a stand-in", "gap: x: no source"]}
    substitution, gap = Record.model_validate(given).labels
    assert substitution == Label(kind="substitution", text="a stand-in")
    assert gap == gap_label("x: no source")
    again = json.loads(Record.model_validate(given).to_json())["labels"]
    assert again == [{"kind": "substitution", "text": "a stand-in"}, {"kind": "gap", "text": "x: no source"}]
    assert Record.model_validate(given | {"labels": again}).labels == [substitution, gap]


def test_labels_are_sorted_as_texts_and_each_is_there_once():
    found = merged_labels(["z", None, "", "a"], [gap_label("m"), Label(kind="substitution", text="z")])
    assert [*map(str, found)] == ["a", "gap: m", "z"]
    assert [label.kind for label in found] == ["substitution", "gap", "substitution"]


def test_an_identity_has_labels_as_texts(tmp_path):
    """So that files written before keep theirs."""
    page = tmp_path / "a.md"
    page.write_text(f"text\n<!-- {RECORD_KEY} x -->\n")
    label, content = gap_label("m"), b"text\n"
    assert content_identity(page, [label]) == hashlib.sha256(b'["gap: m"]' + content).hexdigest()
