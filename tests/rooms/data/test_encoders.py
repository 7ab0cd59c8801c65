import ast
import hashlib
import json
import pkgutil
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
import transformers.models
from huggingface_hub.utils import filter_repo_objects

from workflow_scripts.data import sources
from workflow_scripts.data.encoders import locate
from workflow_scripts.data.published import FILES, ON_HUB, files_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.base import ConfigError
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


def test_the_first_available_source_is_taken(root, pins):
    """The first available source is taken and its files are named."""
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
        "bpe.codes",
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


def test_a_repository_without_a_revision_stops(root, monkeypatch):
    """A repository without a revision stops with its newest commit."""
    asked = ("team/toy", None, "model")
    monkeypatch.setattr(sources, "find", lambda *given: COMMIT if given == asked else None)
    unpinned = {"kind": "hub", "repository": "team/toy"}
    found = f"hub:team/toy: no revision is pinned; the Hub has {COMMIT}. Add to its block: "
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


# Links


def test_a_link_out_of_the_folder_is_refused(root):
    (root / "secret.txt").write_text("not for results")
    (root / "toy/vocab.txt").unlink(missing_ok=True)
    (root / "toy/vocab.txt").symlink_to(root / "secret.txt")
    found = (
        r"toy/vocab\.txt: a link to .*secret\.txt, out of the encoder's folder\. Put the file itself there"
    )
    with pytest.raises(DataError, match=found):
        files_of(root / "toy")
    with pytest.raises(DataError, match=found):
        locate(
            "toy", block(local(sha256={"vocab.txt": hashlib.sha256(b"not for results").hexdigest()})), root
        )


def test_a_module_that_is_a_link_out_of_the_folder_is_refused(root):
    (root / "elsewhere").mkdir()
    (root / "elsewhere/config.json").write_text("{}")
    (root / "toy/1_Pooling").symlink_to(root / "elsewhere")
    modules = [{"type": "sentence_transformers.models.Transformer", "path": ""}]
    modules += [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    (root / "toy/modules.json").write_text(json.dumps(modules))
    with pytest.raises(DataError, match=r"1_Pooling/config\.json: a link to "):
        files_of(root / "toy")


def test_links_within_a_folder_and_to_it_are_read(root):
    """Links within a folder and to it and those of the Hub's client are read."""
    files = files_of(root / "toy")
    (root / "toy/vocab.txt").symlink_to("tokenizer.json")
    (root / "link").symlink_to(root / "toy")
    assert files_of(root / "link") == sorted([*files, "vocab.txt"])
    blobs, commit = root / "models--team--toy/blobs", root / "models--team--toy/snapshots" / COMMIT
    blobs.mkdir(parents=True)
    commit.mkdir(parents=True)
    for number, name in enumerate(files):
        shutil.copy(root / "toy" / name, blobs / str(number))
        (commit / name).symlink_to(f"../../blobs/{number}")
    assert files_of(commit) == files
    (commit / "vocab.txt").symlink_to(root / "toy/tokenizer.json")
    with pytest.raises(DataError, match="a link to "):
        files_of(commit)


def test_every_file_that_a_tokeniser_reads_is_copied():
    """Names are those of the installed Transformers; pickles, and what only other models than text encoders read, are not."""
    names = {name for module in tokenisers() for name in vocabulary_files(module)}
    assert len(names) > 15
    assert not [name for name in names if not any(fnmatch(name, pattern) for pattern in FILES)]


def tokenisers():
    for package in pkgutil.iter_modules(transformers.models.__path__):
        place = Path(transformers.models.__path__[0]) / package.name
        yield from place.glob("tokenization_*.py")


def vocabulary_files(module):
    """Values of ``VOCAB_FILES_NAMES`` in the source of a tokeniser, which may need a package that is not installed."""
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "VOCAB_FILES_NAMES":
            yield from (value.value for value in node.value.values if isinstance(value, ast.Constant))
