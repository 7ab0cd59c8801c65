import hashlib
import shutil
import sys

import pytest
import yaml

from tests.planning import ROOT
from workflow_scripts.errors import ConfigError, UnreachableError
from workflow_scripts.tools import pin
from workflow_scripts.tools.pin import find_pins, pinned, write

TSV = "score\tsentence1\tsentence2\n4\ta\tb\n0\tc\td\n"
COMMIT = "c" * 40
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
        reader: labelled_tsv
        options: {label: l, text1: t}
      - {kind: hub_files, repository: team/toy, revision: null, files: {x: {path: x, sha256: null}}, reader: lines}
    contract: {rows: 2}
  pairs:
    form: pairs
    sources: [{kind: local, files: {pairs: {path: pairs.tsv, sha256: null}}, reader: scored_pairs_tsv}]
    contract: {rows: 2, score_range: [0, 5]}

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
    (tmp_path / "pairs.tsv").write_text(TSV)
    for name in ("train", "test"):
        (tmp_path / f"{name}.tsv").write_text("l\tt\n1\ta\n" if name == "train" else "l\tt\n2\tb\n")
    path = tmp_path / "toy.yaml"
    path.write_text(BLOCKS)
    return path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_pins_are_written_and_nothing_else_of_the_file(file):
    found = find_pins(file, [], file.parent)
    write(file, found.pins)
    hashes = {name: sha256(file.parent / f"{name}.tsv") for name in ("train", "test", "pairs")}
    expected = BLOCKS.replace("train.tsv,   sha256: null", f"train.tsv,   sha256: {hashes['train']}")
    expected = expected.replace(
        "test.tsv\n            sha256: null", f"test.tsv\n            sha256: {hashes['test']}"
    )
    expected = expected.replace("pairs.tsv, sha256: null", f"pairs.tsv, sha256: {hashes['pairs']}")
    expected = expected.replace("revision: null", f"revision: {COMMIT}")
    expected = expected.replace("team/flow", f"team/flow, revision: {COMMIT}")
    expected = expected.replace("team/block  # why", f"team/block\n          revision: {COMMIT}  # why")
    assert file.read_text() == expected
    assert yaml.safe_load(expected)["encoders"]["block"]["fetch"]["sources"][0]["revision"] == COMMIT
    assert len(found.pins) == 6 and found.left == []
    assert find_pins(file, [], file.parent) == ([], [])


def test_ends_of_lines_stay_as_they_are(file):
    file.write_bytes(BLOCKS.replace("\n", "\r\n").encode())
    write(file, find_pins(file, ["pairs"], file.parent).pins)
    changed = BLOCKS.replace(
        "pairs.tsv, sha256: null", f"pairs.tsv, sha256: {sha256(file.parent / 'pairs.tsv')}"
    )
    assert file.read_bytes() == changed.replace("\n", "\r\n").encode()


def test_what_is_not_there_is_left_and_named(file, monkeypatch):
    (file.parent / "test.tsv").unlink()

    def nobody(*_):
        raise UnreachableError("hub:team/toy (not reached)")

    monkeypatch.setattr(pin, "find", nobody)
    found = find_pins(file, ["toy"], file.parent)
    assert found.pins == []
    first, second = found.left
    assert f"datasets.toy: no source is available: {file.parent}/test.tsv does not exist" in first
    assert second == "datasets.toy: hub:team/toy (not reached)"


def test_a_file_that_breaks_the_contract_is_not_pinned(file):
    (file.parent / "pairs.tsv").write_text(TSV.replace("4", "7"))
    found = find_pins(file, ["pairs"], file.parent)
    assert found.pins == [] and "datasets.pairs: scores from 0.0 to 7.0" in found.left[0]


def test_a_block_that_several_share_is_pinned_once():
    pins = [pin.Pin(5, 9, "pin", "one"), pin.Pin(5, 9, "pin", "other")]
    assert pinned("key: null\n", pins) == "key: pin\n"


@pytest.fixture
def folder(tmp_path, monkeypatch, file):
    """A pipeline's folder with its own configuration, and the toy's data."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copy(ROOT / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["pin", *arguments, "--data-root", str(tmp_path)])
        with pytest.raises(SystemExit) as stop:
            pin.main()
        return stop.value.code

    return call


def test_the_command_prints_what_it_writes_and_what_it_leaves(folder, file, capsys, tmp_path):
    before = {path: path.read_bytes() for path in (tmp_path / "config").rglob("*.yaml")}
    assert folder("pairs", "--configfile", "toy.yaml", "--dry-run") == 0
    assert file.read_text() == BLOCKS
    assert (
        f"toy.yaml: would write: datasets.pairs: local:pairs.tsv: sha256 {sha256(tmp_path / 'pairs.tsv')}"
        in (capsys.readouterr().out)
    )
    assert folder("pairs", "--configfile", "toy.yaml") == 0
    assert "toy.yaml: wrote: datasets.pairs" in capsys.readouterr().out
    assert folder("pairs", "--configfile", "toy.yaml") == 0
    assert capsys.readouterr().out == "Nothing is open.\n"
    assert folder("sts16") == 1
    assert (
        f"config/datasets.yaml: left: datasets.sts16: no source is available: {tmp_path}/sts/sts16.tsv"
        in (capsys.readouterr().out)
    )
    (tmp_path / "clustering").mkdir()
    assert folder() == 0
    assert {path: path.read_bytes() for path in before} != before  # commits of encoders
    datasets = tmp_path / "config/datasets.yaml"
    assert datasets.read_bytes() == before[datasets]


def test_an_unknown_name_is_refused(folder):
    with pytest.raises(ConfigError, match=r"pin: sts61 is not defined\. Did you mean sts17\?"):
        pin.check_names([ROOT / "config/datasets.yaml"], ["sts61"])
