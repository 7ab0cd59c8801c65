"""A key is found wherever a run could have left it, and never printed."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from safetensors.numpy import save_file

from tests.unit.audit.conftest import STUDY
from workflow_scripts.audit.__main__ import main
from workflow_scripts.audit.secrets import keys_of, secrets
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_record, write_table

CANARY = "canary-7f3a91c2"


def found(root):
    return {
        (secret.path.removeprefix(f"{STUDY}/"), secret.place)
        for secret in secrets(root, {"LLM_API_KEY": CANARY})[1]
    }


def test_a_clean_study_is_searched_and_clean(root):
    files, hits = secrets(root, {"LLM_API_KEY": CANARY})
    assert files >= 20
    assert hits == []


@pytest.mark.parametrize(
    "folder", ["logs/study/train", "benchmarks/study", ".snakemake/scripts", "answers", "crates/study"]
)
def test_a_key_in_any_file_of_a_run_is_found(root, folder):
    Path(folder).mkdir(parents=True)
    Path(folder, "file").write_bytes(b"\0" * 5000 + CANARY.encode() + b"\n")
    assert found(root) == {(f"{folder}/file", "byte 5000")}


def test_a_key_in_a_record_is_found(root):
    path = Path(STUDY, "tables/main.parquet")
    record = read_record(path)
    write_table(path, pa.table({"a": [1]}), record.model_copy(update={"settings": {"key": CANARY}}))
    ((name, place),) = found(root)
    assert name == "tables/main.parquet" and place.startswith("byte")


@pytest.mark.parametrize("value", [CANARY, [f"a {CANARY}"]])
def test_a_key_in_a_packed_column_is_found(root, value):
    path = Path(STUDY, "tables/main.parquet")
    rows = [["text"] if isinstance(value, list) else "text"] * 5000 + [value]
    write_table(path, pa.table({"answer": rows}), read_record(path))
    assert ("tables/main.parquet", "column answer") in found(root)


def test_a_key_in_the_header_of_weights_is_found(root):
    import numpy as np

    save_file({"w": np.zeros(4)}, Path(STUDY, "encoders/minilm/model.safetensors"), metadata={"note": CANARY})
    assert [name for name, _ in found(root)] == ["encoders/minilm/model.safetensors"]


FORMS = [
    "sk-" + "a1B2" * 8,
    "hf_" + "aB3" * 12,
    "ghp_" + "x9" * 18,
    "AKIA" + "ABCD1234" * 2,
    "Authorization: Bearer abcdefghijklmnopqrst",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "https://user:password@example.org/x",
]


@pytest.mark.parametrize("text", FORMS)
def test_well_known_forms_are_found_without_any_variable(root, text):
    Path("logs").mkdir()
    Path("logs/job.log").write_text(f"request failed: {text}\n")
    _, (hit,) = secrets(root, {})
    assert hit.path == "logs/job.log"


@pytest.mark.parametrize(
    "text", ["a risk-assessment-of-something-large", "sk-learn", "http://a.b/c:d@e", "task_key=1"]
)
def test_ordinary_text_is_not(root, text):
    Path("logs").mkdir()
    Path("logs/job.log").write_text(text)
    assert secrets(root, {})[1] == []


def test_variables_are_chosen_by_their_names():
    environment = {
        "A_KEY": "12345678",
        "HF_TOKEN": "abcdefgh",
        "PATH": "12345678",
        "B_KEY": "short",
        "MINE": "abcdefgh",
    }
    assert keys_of(environment, []) == {"A_KEY": "12345678", "HF_TOKEN": "abcdefgh"}
    assert keys_of(environment, ["MINE"])["MINE"] == "abcdefgh"
    with pytest.raises(DataError, match="B_KEY: not set"):
        keys_of(environment, ["B_KEY"])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("mine.yaml", "llms: {a: {key_variable: TOY_ENTRY}}"),
        ("config/sub/mine.yml", 'key_variable: "TOY_ENTRY"  # ours'),
        (
            ".snakemake/metadata/x",
            json.dumps({"shellcmd": json.dumps({"llm": {"key_variable": "TOY_ENTRY"}})}),
        ),
    ],
)
def test_a_key_is_searched_for_whatever_its_variable_is_called(root, monkeypatch, capsys, file, text):
    for name, content in ((file, text), ("logs/job.log", f"sent {CANARY}")):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    monkeypatch.setenv("TOY_ENTRY", CANARY)
    monkeypatch.setattr(sys, "argv", ["audit", "secrets", "--json"])
    assert main() == 1
    assert "value of TOY_ENTRY" in capsys.readouterr().out


def test_the_command_fails_and_prints_where_but_not_what(root, monkeypatch, capsys):
    Path("logs").mkdir()
    Path("logs/job.log").write_text(CANARY)
    monkeypatch.setenv("LLM_API_KEY", CANARY)
    for options in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["audit", "secrets", *options])
        assert main() == 1
        printed = capsys.readouterr().out
        assert "logs/job.log" in printed and "LLM_API_KEY" in printed
        assert CANARY not in printed
    assert json.loads(printed)["green"] is False
