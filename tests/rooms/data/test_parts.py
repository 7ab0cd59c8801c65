"""Encoders in a zip archive that lies in parts, in packages or below the data root."""

import hashlib
import importlib
import os
import zipfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.jobs import call
from workflow_scripts.data.encoders import locate
from workflow_scripts.data.parts import Joined
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.graph.outside import need_findings, planned_source, recorded_files
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.settings.encoders import EncoderBlock

PIECE = 4000


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Split:
    """A tiny encoder in an archive, cut into parts that lie in a package; the last one is below the data root."""

    def __init__(self, folder, encoder, monkeypatch, **more):
        self.root = folder / "data"
        self.package = folder / "site/toy-parts"
        self.root.mkdir()
        self.package.mkdir(parents=True)
        (self.package / "__init__.py").touch()
        self.files = {path.name: path.read_bytes() for path in sorted(encoder.iterdir())}
        content = BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in ({f"toy/{name}": text for name, text in self.files.items()} | more).items():
                archive.writestr(name, text)
        self.write(content.getvalue())
        monkeypatch.syspath_prepend(folder / "site")
        importlib.invalidate_caches()

    def write(self, whole):
        """Put the parts of an archive in their places."""
        self.archive = sha256(whole)
        *pieces, last = (whole[start : start + PIECE] for start in range(0, len(whole), PIECE))
        for number, piece in enumerate(pieces):
            (self.package / f"{number}").write_bytes(piece)
        (self.root / "last").write_bytes(last)
        in_package = [{"kind": "package", "package": "toy-parts", "path": f"{n}"} for n in range(len(pieces))]
        self.parts = [*in_package, {"kind": "local", "path": "last"}]

    def source(self, **changes):
        hashes = {name: sha256(text) for name, text in self.files.items() if name in TAKEN}
        pins = {"archive": self.archive, "sha256": hashes}
        return {"kind": "parts", "parts": self.parts, "path": "toy"} | pins | changes

    def fetch(self, **changes):
        return {"sources": [self.source(**changes)], "licence": "-", "install": "pip install toys"}

    def locate(self, **changes):
        return locate("toy", EncoderBlock.parse(self.fetch(**changes), "encoders.toy"), self.root)


TAKEN = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture
def split(tmp_path, tiny_bert, monkeypatch):
    return Split(tmp_path, tiny_bert, monkeypatch)


def test_a_job_unpacks_what_is_pinned_and_leaves_nothing_else(split, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMBLANCE_DATA", str(split.root))
    assert len(split.parts) > 3
    record, source = tmp_path / "encoders/toy/record.json", split.source()
    name = planned_source([source], {}, split.root, gap_if_unreachable=False)
    settings = {"encoder": {"sources": [source], "label": None}, "source": name}
    call("fetch_encoder", settings, encoder="toy", record=record)
    assert {path.name for path in record.parent.parent.iterdir()} == {"toy"}
    assert {path.name: path.read_bytes() for path in record.parent.iterdir() if path != record} == {
        name: split.files[name] for name in TAKEN
    }
    load_backbone(record.parent), load_tokenizer(record.parent)
    found = recorded_files(record.parent)
    assert found == {f"archive:{split.archive}/toy/{name}": sha256(split.files[name]) for name in TAKEN}
    assert planned_source([source], found, None, gap_if_unreachable=False) == name


def test_parts_in_another_order_are_refused(split):
    first, second, *others = split.parts
    with pytest.raises(
        DataError, match=r"parts from .*1 to .*last: sha256 .*; pinned .*\. Check their order"
    ):
        split.locate(parts=[second, first, *others])


def test_a_part_that_is_not_there_is_named(split):
    (split.root / "last").unlink()
    with pytest.raises(MissingError, match=r"toy: no source is available: .*data/last does not exist"):
        split.locate()


@pytest.mark.parametrize("file", [None, "model.safetensors"])
def test_other_bytes_than_are_pinned_are_refused(split, file):
    other = {"archive": "0" * 64} if file is None else {"sha256": split.source()["sha256"] | {file: "0" * 64}}
    with pytest.raises(DataError, match=rf"{file or 'parts'}.*: sha256 .*; pinned 0{{64}}"):
        split.locate(**other)


@pytest.mark.parametrize("name", ["../out", "/out", "toy/../../out", "C:out", "toy\\..\\..\\out", "toy/.."])
def test_a_name_that_leads_out_of_the_archive_is_refused(tmp_path, tiny_bert, monkeypatch, name):
    with pytest.raises(DataError, match=r"leads out of the archive\. Take another one\.$"):
        Split(tmp_path, tiny_bert, monkeypatch, **{name: b"bad"}).locate()


def test_names_with_dots_lead_nowhere(tmp_path, tiny_bert, monkeypatch):
    Split(tmp_path, tiny_bert, monkeypatch, **{"toy/..a/b..": b"good"}).locate()


def test_what_is_no_archive_is_refused(split):
    split.write(b"no archive" * PIECE)
    with pytest.raises(DataError, match=r"no zip archive\. Name another source\."):
        split.locate()


def test_packages_that_are_not_installed_are_told_with_what_installs_them(split):
    config = {"encoders": {"toy": {"fetch": split.fetch(parts=[split.parts[0] | {"package": "toys"}])}}}
    (found,) = need_findings(config, [("fetch_encoder", "toy")], split.root)
    assert found == (
        "encoders.toy: no source is there: Python package toys is not installed. Run pip install toys, or put it "
        "there, set data_root or SEMBLANCE_DATA, or name another source."
    )
    whole = {"encoders": {"toy": {"fetch": split.fetch()}}}
    assert [*need_findings(whole, [("fetch_encoder", "toy")], split.root)] == []


@given(st.lists(st.binary(max_size=9), max_size=6), st.integers(0, 60), st.integers(0, 60))
def test_parts_read_as_their_whole(pieces, start, count):
    with TemporaryDirectory() as folder:
        files = [Path(folder, str(number)) for number in range(len(pieces) + 1)]
        for file, piece in zip(files, [*pieces, b"end"], strict=True):
            file.write_bytes(piece)
        whole, joined = b"".join([*pieces, b"end"]), Joined(files)
        joined.seek(start)
        assert joined.read() == whole[start:]
        left = min(count, len(whole))
        joined.seek(-left, os.SEEK_END)
        assert joined.read() == whole[len(whole) - left :]
        joined.close()
