import hashlib
import shutil
from functools import partial
from unittest.mock import Mock

import pytest

from tests.planning import ROOT
from tests.verbs import printed
from workflow_scripts.errors import ConfigError, UnreachableError
from workflow_scripts.tools import pin
from workflow_scripts.tools.pin import find_pins, write

TSV = "score\tsentence1\tsentence2\n4\ta\tb\n0\tc\td\n"
COMMIT = "c" * 40
LINES = "".join(f"Sentence {number} of a thousand.\n" for number in range(1000))
BLOCKS = """\
# A comment with sha256: null in it.
datasets:
  toy:   # two files
    form: labelled
    sources:
      - kind: local
        files:
          train: {path: train.tsv,   sha256: null}  # before
          test:
            path: test.tsv
            sha256: null
        reader: delimited
        options: {columns: {label: l, text1: t}}
      - {kind: hub_files, repository: team/toy, revision: null, files: {x: {path: x, sha256: null}}, reader: lines}
    contract: {rows: 2}
    about: {origin: o, url: not stated, language: en, licence: l, citation: c}
  pairs:
    form: pairs
    sources:
      - kind: local
        files: {all: {path: pairs.tsv, sha256: null}}
        reader: delimited
        options: {columns: {sentence1: sentence1, sentence2: sentence2, score: score}}
    contract: {rows: 2, score_range: [0, 5]}
    about: {origin: o, url: not stated, language: en, licence: l, citation: c}
  lines:
    form: sentences
    sources: [{kind: local, files: {text: {path: lines.txt, sha256: null}}, reader: lines, options: {cleaning: none}}]
    contract:
      min_rows: 900  # at least
    about: {origin: o, url: not stated, language: en, licence: l, citation: c}

encoders:
  flow: {fetch: {licence: MIT, sources: [{kind: hub, repository: team/flow}]}}
  block:
    fetch:
      licence: MIT
      sources:
        - kind: hub
          repository: team/block  # why
        - {kind: local, path: models/x}
"""


FILES = {"lines.txt": LINES, "pairs.tsv": TSV, "train.tsv": "l\tt\n1\ta\n", "test.tsv": "l\tt\n2\tb\n"}


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(pin, "find", lambda *_: COMMIT)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    path = tmp_path / "toy.yaml"
    path.write_text(BLOCKS)
    return path


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_pins_are_written_and_nothing_else_of_the_file(file, line_end):
    file.write_bytes(BLOCKS.replace("\n", line_end).encode())
    pins, left = find_pins(file, [], file.parent)
    write(file, pins)
    expected = BLOCKS.replace("revision: null", f"revision: {COMMIT}")
    expected = expected.replace("team/flow", f"team/flow, revision: {COMMIT}")
    expected = expected.replace("team/block  # why", f"team/block\n          revision: {COMMIT}  # why")
    for name, text in FILES.items():
        for between in (",   ", ", ", "\n            "):
            pinned = f"{name}{between}sha256: {sha256(text)}"
            expected = expected.replace(f"{name}{between}sha256: null", pinned)
    assert expected.count("sha256: null") == 2  # a comment, and a file that the commit fixes
    assert left == [] and file.read_bytes().decode() == expected.replace("\n", line_end)
    assert find_pins(file, [], file.parent) == ([], [])


def test_what_is_not_there_or_breaks_its_contract_is_left_and_named(file, monkeypatch):
    (file.parent / "test.tsv").unlink()
    (file.parent / "pairs.tsv").write_text(TSV.replace("4", "7"))
    monkeypatch.setattr(pin, "find", Mock(side_effect=UnreachableError("hub:team/toy (not reached)")))
    pins, (toy, on_hub, pairs) = find_pins(file, ["toy", "pairs"], file.parent)
    assert pins == [] and on_hub == "datasets.toy: hub:team/toy (not reached)"
    assert f"datasets.toy: no source is available: {file.parent}/test.tsv does not exist" in toy
    assert "datasets.pairs: scores from 0.0 to 7.0" in pairs


@pytest.fixture
def folder(tmp_path, monkeypatch, file):
    """A pipeline's folder with its own configuration, and the toy's data."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copy(ROOT / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    return partial(printed, "pin")


def test_the_command_prints_what_it_writes_and_what_it_leaves(folder, file, tmp_path):
    before = {path: path.read_bytes() for path in (tmp_path / "config").rglob("*.yaml")}
    code, said = folder("pairs", "--configfile", "toy.yaml", "--dry-run")
    assert code == 0 and file.read_text() == BLOCKS
    pin = f"datasets.pairs: local:pairs.tsv: sha256 {sha256(TSV)}"
    assert f"toy.yaml: would write: {pin}" in said
    code, said = folder("pairs", "--configfile", "toy.yaml")
    assert code == 0 and "toy.yaml: wrote: datasets.pairs" in said
    assert folder("pairs", "--configfile", "toy.yaml") == (0, "Nothing is open.\n")
    code, said = folder("sts16")
    assert code == 1
    left = f"left: datasets.sts16: no source is available: {tmp_path}/sts/sts16.tsv"
    assert f"config/datasets.yaml: {left}" in said
    assert {path: path.read_bytes() for path in before} == before


def test_a_configuration_that_is_not_one_and_a_name_that_is_none_are_refused(folder, file):
    with pytest.raises(ConfigError, match=r"pin: sts61 is not defined\. Did you mean sts17\?"):
        folder("sts61")
    file.write_text(BLOCKS.replace(", sha256: null", ""))
    with pytest.raises(ConfigError, match=r"datasets\.pairs\.sources\.0\.files\.all: without sha256"):
        folder("pairs", "--configfile", "toy.yaml")
