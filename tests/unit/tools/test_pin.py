import hashlib
import re
import shutil

import pytest
import yaml

from tests.planning import ROOT
from tests.verbs import printed
from workflow_scripts.data.hub import HubFile
from workflow_scripts.data.sources import load
from workflow_scripts.errors import ConfigError, DataError, UnreachableError
from workflow_scripts.settings.datasets import Dataset
from workflow_scripts.tools import pin
from workflow_scripts.tools.pin import find_pins, pinned, write

TSV = "score\tsentence1\tsentence2\n4\ta\tb\n0\tc\td\n"
COMMIT = "c" * 40
LINES = "".join(f"Sentence {number} of a thousand.\n" for number in range(1000))
ON_HUB = {"x": HubFile(11, "e" * 64)}
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
    about: {origin: o, url: not stated, language: en, licence: l, citation: c}
  pairs:
    form: pairs
    sources: [{kind: local, files: {pairs: {path: pairs.tsv, sha256: null}}, reader: scored_pairs_tsv}]
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
    monkeypatch.setattr(pin, "describe", lambda *_: ON_HUB)
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
    found = find_pins(file, [], file.parent)
    write(file, found.pins)
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
    expected = expected.replace("min_rows: 900", "rows: 1000\n      min_rows: 900")
    expected = expected.replace("path: x, sha256: null", f"path: x, sha256: {'e' * 64}, size: 11")
    expected = expected.replace("revision: null", f"revision: {COMMIT}")
    expected = expected.replace("team/flow", f"team/flow, revision: {COMMIT}")
    expected = expected.replace("team/block  # why", f"team/block\n          revision: {COMMIT}  # why")
    assert file.read_text() == expected
    assert yaml.safe_load(expected)["encoders"]["block"]["fetch"]["sources"][0]["revision"] == COMMIT
    assert len(found.pins) == 9 and found.left == []
    assert find_pins(file, [], file.parent) == ([], [])


def test_ends_of_lines_stay_as_they_are(file):
    file.write_bytes(BLOCKS.replace("\n", "\r\n").encode())
    write(file, find_pins(file, ["toy", "lines"], file.parent).pins)
    written = file.read_bytes()
    assert b"\r\n            size: 8\r\n" in written and b"\r\n      rows: 1000\r\n" in written
    assert written.count(b"\n") == written.count(b"\r\n") == BLOCKS.count("\n") + 2


def lines_of(file):
    dataset = yaml.safe_load(file.read_text())["datasets"]["lines"]
    del dataset["about"]
    return load("lines", Dataset.parse(dataset, "datasets.lines"), file.parent)


def test_a_file_that_is_cut_in_a_word_is_refused_once_it_is_pinned(file):
    whole, cut = file.parent / "lines.txt", LINES[: LINES.index("Sentence 930") + 4]
    whole.write_text(cut)
    assert lines_of(file)[0].table["sentence"][-1].as_py() == "Sent"  # the contract alone takes it
    whole.write_text(LINES)
    write(file, find_pins(file, ["lines"], file.parent).pins)
    assert len(lines_of(file)[0].table) == 1000
    whole.write_text(cut)
    promise = f"{len(cut)} bytes; pinned {len(LINES)}. It was cut off: download it again"
    with pytest.raises(DataError, match=re.escape(f"{whole}: {promise}")):
        lines_of(file)
    whole.write_text(LINES.replace("thousand", "thousanb"))
    with pytest.raises(
        DataError, match=rf"lines\.txt: sha256 .*; pinned {hashlib.sha256(LINES.encode()).hexdigest()}"
    ):
        lines_of(file)


@pytest.mark.parametrize(
    ("sources", "contract", "expected"),
    [
        ("[{reader: a}, {reader: a}]", "{min_rows: 2}", "{rows: 5, min_rows: 2}"),
        ("[{reader: a}]", "{}", "{rows: 5}"),
        ("[{reader: a}, {reader: b}]", "{min_rows: 2}", None),
        ("[{reader: a}, {reader: a, options: {x: 1}}]", "{min_rows: 2}", None),
        ("[{reader: a}]", "{rows: 5}", None),
        ("[{reader: a}]", "&shared {min_rows: 2}", None),
    ],
)
def test_rows_are_pinned_where_every_source_must_have_them(tmp_path, sources, contract, expected):
    text = f"datasets: {{toy: {{sources: {sources}, contract: {contract}}}}}\n"
    (tmp_path / "toy.yaml").write_text(text)
    one = next(pin._sources(tmp_path / "toy.yaml"))
    assert pinned(text, pin._rows(one, 5)) == (text.replace(contract, expected) if expected else text)


def test_a_file_that_the_hub_does_not_have_or_has_no_hash_of_is_not_pinned(file, monkeypatch):
    before = len(find_pins(file, ["toy"], file.parent).pins)
    for known, left in (
        ({"x": HubFile(11, None)}, []),
        ({}, [f"datasets.toy: hub:team/toy@{COMMIT}: no file x"]),
    ):
        monkeypatch.setattr(pin, "describe", lambda *_, known=known: known)
        found = find_pins(file, ["toy"], file.parent)
        assert (len(found.pins), found.left) == (before - 1, left)


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


def test_a_source_on_the_hub_that_names_no_repository_is_left_and_named(file):
    file.write_text(BLOCKS.replace(", repository: team/flow", ""))
    found = find_pins(file, ["flow"], file.parent)
    assert found == ([], ["encoders.flow: a source of kind hub names no repository. Write it there."])


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


def test_another_file_is_accepted_beside_the_one_that_is_pinned(folder, file, tmp_path):
    old, new = "ab" * 32, sha256(tmp_path / "pairs.tsv")
    file.write_text(BLOCKS.replace("pairs.tsv, sha256: null", f"pairs.tsv, sha256: {old}, size: 5"))
    accept = ("pairs", "--configfile", "toy.yaml", "--accept")
    assert folder(*accept[:-1]) == (0, "Nothing is open.\n")
    code, said = folder(*accept)
    assert code == 0 and f"wrote: datasets.pairs: local:pairs.tsv: sha256 {new} too" in said
    both = f"pairs.tsv, sha256: [{old}, {new}], size: 5"
    assert file.read_text() == BLOCKS.replace("pairs.tsv, sha256: null", both)
    block = yaml.safe_load(file.read_text())["datasets"]["pairs"]
    del block["about"]
    assert len(load("pairs", Dataset.parse(block, "pairs"), tmp_path)[0].table) == 2
    assert folder(*accept) == (0, "Nothing is open.\n")
    (tmp_path / "pairs.tsv").write_text(TSV + "3\te\tf\n")  # a row more than the contract has
    code, said = folder(*accept)
    assert code == 1 and "left: datasets.pairs: rows 3; its contract says 2" in said.replace("\n", " ")
    with pytest.raises(ConfigError, match="--accept: without a dataset"):
        folder("--accept")


def test_files_are_looked_for_where_the_configuration_has_them(folder, file, monkeypatch, tmp_path):
    (tmp_path / "mine").mkdir()
    shutil.move(tmp_path / "pairs.tsv", tmp_path / "mine/pairs.tsv")
    file.write_text(f"data_root: mine\n{BLOCKS}")
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    assert printed("pin", "pairs", "--configfile", "toy.yaml")[0] == 0
    assert f"sha256: {sha256(tmp_path / 'mine/pairs.tsv')}" in file.read_text()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- 1", "toy.yaml: list at the top"),
        ("datasets: 3", "datasets: 3 is not a block of settings"),
        (BLOCKS.replace(", sha256: null", ""), "datasets.pairs.sources.0.files.pairs: without sha256"),
        (
            BLOCKS.replace("repository: team/flow", "files: {}"),
            "encoders.flow.fetch.sources.0.files: unknown key",
        ),
    ],
)
def test_a_configuration_that_is_not_one_is_refused(folder, file, text, found):
    file.write_text(text)
    with pytest.raises(ConfigError, match=found):
        folder("pairs", "--configfile", "toy.yaml")


def test_an_unknown_name_is_refused(folder):
    with pytest.raises(ConfigError, match=r"pin: sts61 is not defined\. Did you mean sts17\?"):
        pin.check_names([ROOT / "config/datasets.yaml"], ["sts61"])
