import hashlib
import re
import shutil

import pytest
import yaml

from tests.planning import ROOT
from tests.verbs import printed
from workflow_scripts.data.sources import load
from workflow_scripts.errors import ConfigError, DataError, UnreachableError
from workflow_scripts.settings.datasets import Dataset
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


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(pin, "find", lambda *_: COMMIT)
    (tmp_path / "lines.txt").write_text(LINES)
    (tmp_path / "pairs.tsv").write_text(TSV)
    for name in ("train", "test"):
        (tmp_path / f"{name}.tsv").write_text("l\tt\n1\ta\n" if name == "train" else "l\tt\n2\tb\n")
    path = tmp_path / "toy.yaml"
    path.write_text(BLOCKS)
    return path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_pins_are_written_and_nothing_else_of_the_file(file):
    pins, left = find_pins(file, [], file.parent)
    write(file, pins)
    hashes = {name: sha256(file.parent / f"{name}.tsv") for name in ("train", "test", "pairs")}
    expected = BLOCKS.replace("train.tsv,   sha256: null", f"train.tsv,   sha256: {hashes['train']}, size: 8")
    expected = expected.replace(
        "test.tsv\n            sha256: null",
        f"test.tsv\n            sha256: {hashes['test']}\n            size: 8",
    )
    expected = expected.replace(
        "pairs.tsv, sha256: null", f"pairs.tsv, sha256: {hashes['pairs']}, size: {len(TSV)}"
    )
    lines = hashlib.sha256(LINES.encode()).hexdigest()
    expected = expected.replace("lines.txt, sha256: null", f"lines.txt, sha256: {lines}, size: {len(LINES)}")
    expected = expected.replace("revision: null", f"revision: {COMMIT}")
    expected = expected.replace("team/flow", f"team/flow, revision: {COMMIT}")
    expected = expected.replace("team/block  # why", f"team/block\n          revision: {COMMIT}  # why")
    assert file.read_text() == expected
    assert yaml.safe_load(expected)["encoders"]["block"]["fetch"]["sources"][0]["revision"] == COMMIT
    assert left == []
    assert find_pins(file, [], file.parent) == ([], [])


def test_ends_of_lines_stay_as_they_are(file):
    file.write_bytes(BLOCKS.replace("\n", "\r\n").encode())
    write(file, find_pins(file, ["toy"], file.parent)[0])
    written = file.read_bytes()
    assert b"\r\n            size: 8\r\n" in written
    assert written.count(b"\n") == written.count(b"\r\n") == BLOCKS.count("\n") + 1


def test_a_file_that_is_cut_in_a_word_is_refused_once_it_is_pinned(file):
    """Its contract alone takes it."""
    write(file, find_pins(file, ["lines"], file.parent)[0])
    whole, cut = file.parent / "lines.txt", LINES[: LINES.index("Sentence 930") + 4]
    whole.write_text(cut)
    block = yaml.safe_load(file.read_text())["datasets"]["lines"]
    del block["about"]
    promise = f"{whole}: {len(cut)} bytes; pinned {len(LINES)}. It was cut off: download it again"
    with pytest.raises(DataError, match=re.escape(promise)):
        load("lines", Dataset.parse(block, "datasets.lines"), file.parent)


def test_what_is_not_there_is_left_and_named(file, monkeypatch):
    (file.parent / "test.tsv").unlink()

    def nobody(*_):
        raise UnreachableError("hub:team/toy (not reached)")

    monkeypatch.setattr(pin, "find", nobody)
    pins, (first, second) = find_pins(file, ["toy"], file.parent)
    assert pins == []
    assert f"datasets.toy: no source is available: {file.parent}/test.tsv does not exist" in first
    assert second == "datasets.toy: hub:team/toy (not reached)"


def test_a_file_that_breaks_the_contract_is_not_pinned(file):
    (file.parent / "pairs.tsv").write_text(TSV.replace("4", "7"))
    pins, (line,) = find_pins(file, ["pairs"], file.parent)
    assert pins == [] and "datasets.pairs: scores from 0.0 to 7.0" in line


@pytest.fixture
def folder(tmp_path, monkeypatch, file):
    """A pipeline's folder with its own configuration, and the toy's data."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copy(ROOT / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return printed("pin", *arguments, "--data-root", tmp_path)

    return call


def test_the_command_prints_what_it_writes_and_what_it_leaves(folder, file, tmp_path):
    before = {path: path.read_bytes() for path in (tmp_path / "config").rglob("*.yaml")}
    code, said = folder("pairs", "--configfile", "toy.yaml", "--dry-run")
    assert code == 0 and file.read_text() == BLOCKS
    pin = f"datasets.pairs: local:pairs.tsv: sha256 {sha256(tmp_path / 'pairs.tsv')}"
    assert f"toy.yaml: would write: {pin}" in said
    code, said = folder("pairs", "--configfile", "toy.yaml")
    assert code == 0 and "toy.yaml: wrote: datasets.pairs" in said
    assert folder("pairs", "--configfile", "toy.yaml") == (0, "Nothing is open.\n")
    code, said = folder("sts16")
    assert code == 1
    left = f"left: datasets.sts16: no source is available: {tmp_path}/sts/sts16.tsv"
    assert f"config/datasets.yaml: {left}" in said
    (tmp_path / "clustering").mkdir()
    assert folder()[0] == 0
    assert {path: path.read_bytes() for path in before} != before  # commits of encoders
    datasets = tmp_path / "config/datasets.yaml"
    assert datasets.read_bytes() == before[datasets]


def test_a_configuration_that_is_not_one_and_a_name_that_is_none_are_refused(folder, file):
    with pytest.raises(ConfigError, match=r"pin: sts61 is not defined\. Did you mean sts17\?"):
        folder("sts61")
    file.write_text(BLOCKS.replace(", sha256: null", ""))
    with pytest.raises(ConfigError, match=r"datasets\.pairs\.sources\.0\.files\.all: without sha256"):
        folder("pairs", "--configfile", "toy.yaml")
