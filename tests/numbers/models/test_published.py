"""Folders as authors publish them: read as sentence-transformers reads them, or refused with what was found."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling
from transformers import AutoModel

from tests import tiny
from workflow_scripts.data.encoders import copy_files, locate, not_applied
from workflow_scripts.data.published import other_pooling
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.graph.resources import folder_findings
from workflow_scripts.graph.sizes import Sizes
from workflow_scripts.methods import frozen
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import check_tells_apart, encode
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.settings.encoders import Fetch
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.readouts.pooling import Config as Readout
from workflow_scripts.settings.start import Start

TEXTS = [*tiny.sentences(6, seed=8), "x", "The town by the river " * 9]
PROMPTS = {"query": "find the old town: ", "document": ""}
D = tiny.WIDTH
SOURCE = {"sources": [{"kind": "local", "path": "models/theirs"}]}
STUDY = {"name": "x", "encoders": {"theirs": {"fetch": SOURCE}}}


def publish(root, following, *, kind="bert", limit=64, **more):
    """What sentence-transformers writes of an encoder and the modules behind it."""
    folder, plain = root / "models/theirs", tiny.write_model(root / "plain", kind)
    given = {"model_max_length": limit} | ({"padding_side": "left"} if kind == "llama" else {})
    modules = [Transformer(str(plain), processor_kwargs=given), *following]
    SentenceTransformer(modules=modules, device="cpu", **more).save_pretrained(
        str(folder), create_model_card=False
    )
    return folder


def edited(folder, name, **changes):
    """A folder, a file of whose is changed."""
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(
        json.dumps(content | changes if isinstance(content, dict) else content + changes["add"])
    )
    return folder


def sharded(folder):
    model = AutoModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    return folder


def torch_layers(*layers):
    torch.manual_seed(3)
    return [make() for make in layers]


def mean():
    return Pooling(D, "mean")


EQUAL = {  # folder, name of a prompt
    "dense": (lambda root: publish(root, torch_layers(mean, lambda: Dense(D, 8), Normalize)), None),
    "a named prompt": (lambda root: publish(root, [mean()], prompts=PROMPTS), "query"),
    "the default prompt": (lambda root: publish(root, [mean()], prompts=PROMPTS, default_prompt_name="query"), None),
    "an empty prompt": (lambda root: publish(root, [mean()], prompts=PROMPTS, default_prompt_name="query"), "document"),
    "last token": (lambda root: publish(root, [Pooling(D, "lasttoken"), Normalize()], kind="llama"), None),
    "two poolings": (lambda root: publish(root, [Pooling(D, ("cls", "max")), LayerNorm(2 * D)], kind="modernbert"), None),
    "normalize": (lambda root: publish(root, [Pooling(D, "weightedmean"), Normalize()], kind="roberta"), None),
    "max_seq_length": (lambda root: publish(root, [mean()], limit=16, prompts=PROMPTS), "query"),
    "sharded": (lambda root: sharded(publish(root, [mean()])), None),
}  # fmt: skip
SHARDS, SHARD = "model.safetensors.index.json", "model-00002-of-00003.safetensors"
PROMPT_FILE = "config_sentence_transformers.json"
ROUTER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.router.Router"}
SPARSE_ROOM = "sentence_transformers.sparse_encoder.models"
SPARSE = {
    "idx": 2,
    "name": "2",
    "path": "2_Splade",
    "type": "sentence_transformers.sparse_encoder.modules.SpladePooling",
}
CODE = {"idx": 2, "name": "2", "path": "2_Own", "type": "modeling_own.Pooler"}
REFUSED = {  # change of a folder with mean pooling and prompts, its line, whether methods that train refuse it too
    "router": (lambda f: (f / "modules.json").write_text(json.dumps([ROUTER])), "Router comes first, which is not supported", True),
    "sparse encoder": (
        lambda f: (f / "modules.json").write_text(json.dumps([ROUTER | {"type": f"{SPARSE_ROOM}.MLMTransformer"}])),
        "MLMTransformer comes first, which is not supported", True,
    ),
    "code": (lambda f: edited(f, "modules.json", add=[CODE]), r"modeling_own\.Pooler is code of the folder", True),
    "remote code": (
        lambda f: edited(f, "config.json", auto_map={"AutoModel": "modeling_own.Own"}, model_type="their_own"),
        r"their_own is code of the folder \(trust_remote_code\)", True,
    ),
    "sparse": (lambda f: edited(f, "modules.json", add=[SPARSE]), r"SpladePooling \(2_Splade\) is not done", False),
    "multi-vector": (
        lambda f: edited(f, "config_sentence_transformers.json", model_type="MultiVectorEncoder"),
        "MultiVectorEncoder makes no vector of a sentence", False,
    ),
    "pooling without the prompt": (lambda f: edited(f, "1_Pooling/config.json", include_prompt=False), "left out", False),
    "lower case": (lambda f: edited(f, "sentence_bert_config.json", do_lower_case=True), "do_lower_case", False),
    "pickle": (lambda f: (f / "2_Dense/model.safetensors").unlink(), r"2_Dense has no model\.safetensors", False),
    "no folder": (lambda f: shutil.rmtree(f / "2_Dense"), "2_Dense is not there", False),
    "width": (lambda f: edited(f, "2_Dense/config.json", in_features=D + 1), f"in_features {D + 1}, .* has {D}", False),
    "no pooling": (lambda f: (f / "1_Pooling/config.json").write_text("{}"), "no pooling and width that are known", False),
    "unknown pooling": (lambda f: edited(f, "1_Pooling/config.json", pooling_mode="median"), "no pooling and width", False),
    "no widths": (lambda f: (f / "2_Dense/config.json").write_text("{}"), "it lacks in_features or out_features", False),
    "activation": (lambda f: edited(f, "2_Dense/config.json", activation_function="own.f"), r"own\.f is code", False),
    "no modules": (lambda f: (f / "modules.json").unlink(), r"has no modules\.json", False),
}  # fmt: skip

DAMAGED = {
    "cut off": (lambda f: (f / "modules.json").write_text("[{"), r"modules\.json: Invalid JSON: EOF while parsing"),
    "no list": (lambda f: (f / "modules.json").write_text("{}"), r"modules\.json: Input should be a valid array"),
    "null": (lambda f: (f / "modules.json").write_text("null"), r"modules\.json: Input should be a valid array"),
    "empty": (lambda f: (f / "modules.json").write_text("[]"), r"modules\.json: List should have at least 1 item"),
    "no path": (lambda f: edited(f, "modules.json", add=[{"type": "a.B"}]), r"modules\.json: 3: path: Field required"),
    "the root": (lambda f: edited(f, "modules.json", add=[CODE | {"path": ""}]), r"modules\.json: 3: path: '' is no "),
    "outside": (
        lambda f: edited(f, "modules.json", add=[CODE | {"path": "../../plain"}]),
        r"modules\.json: 3: path: '\.\./\.\./plain' is no folder's name",
    ),
    "shards outside": (
        lambda f: (f / SHARDS).write_text('{"weight_map": {"a": "../../plain/model.safetensors"}}'),
        r"model\.safetensors\.index\.json: \.\./\.\./plain/model\.safetensors is no file's name",
    ),
    "no shards": (lambda f: (f / SHARDS).write_text("[]"), r"model\.safetensors\.index\.json: Input should be an object"),
    "a shard is missing": (lambda f: (sharded(f) / SHARD).unlink(), rf"index\.json: it names {SHARD}, which is not there"),
    "prompts cut off": (lambda f: (f / PROMPT_FILE).write_text("{"), r"transformers\.json: Invalid JSON"),
    "a list of prompts": (lambda f: edited(f, PROMPT_FILE, prompts=["a"]), r"transformers\.json: prompts: Input should be an object"),
    "a length in words": (lambda f: edited(f, "sentence_bert_config.json", max_seq_length="long"), "max_seq_length: Input"),
    "a module's settings": (lambda f: (f / "2_Dense/config.json").write_text("no"), r"2_Dense/config\.json: Invalid JSON"),
    "a module's list": (lambda f: (f / "1_Pooling/config.json").write_text("[1]"), r"1_Pooling/config\.json: Input should"),
    "a width in words": (lambda f: edited(f, "2_Dense/config.json", in_features="16"), "in_features: Input should be a valid int"),
    "a list for an encoder": (lambda f: (f / "config.json").write_text("[1]"), r"theirs/config\.json: Input should be an object"),
    "no model type": (lambda f: (f / "config.json").write_text("{}"), r"theirs/config\.json: no model_type"),
}  # fmt: skip


def config(prompt=None):
    block = {"module": "frozen", "readout": {"kind": "as_published", "prompt": prompt}}
    return MethodConfig.parse(block, "methods")


def fetched(root):
    """The folder as rule fetch_encoder leaves it."""
    origin, files = locate("theirs", Fetch.parse(SOURCE, "encoders.theirs"), root)
    (root / "fetched").mkdir()
    copy_files(origin, root / "fetched", files)
    return root / "fetched"


def planned(root, prompt=None):
    """What is found before anything is fetched."""
    size = Sizes(STUDY, root).of("theirs")
    return [*config(prompt).misfits(Start("theirs", [size]))]


def folder_lines(root):
    """What is found wrong with the folder itself, whatever reads it."""
    return [*folder_findings(STUDY, ["theirs"], root)]


@pytest.mark.parametrize("case", EQUAL)
def test_vectors_are_those_of_encode_also_when_saved(tmp_path, case):
    make, prompt = EQUAL[case]
    folder = make(tmp_path)
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, prompt_name=prompt, batch_size=3)
    assert planned(tmp_path, prompt) == []
    place = fetched(tmp_path)
    encoder, tokenizer = frozen.build(config(prompt), load_backbone(place)), load_tokenizer(place)
    np.testing.assert_allclose(encode(encoder.eval(), tokenizer, TEXTS, 512), expected, atol=1e-5)
    tiny.save(tmp_path / "model", encoder, tokenizer)
    assert not list((tmp_path / "model").rglob("*.py"))
    np.testing.assert_allclose(encode(*load_encoder(tmp_path / "model"), TEXTS, 512), expected, atol=1e-5)
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(saved.encode(TEXTS, batch_size=2), expected, atol=1e-5)
    assert saved.prompts == SentenceTransformer(str(folder), device="cpu").prompts


def test_an_index_without_its_shards_counts_for_nothing_beside_whole_weights(tmp_path):
    folder = publish(tmp_path, [mean()])
    (folder / SHARDS).write_text(json.dumps({"weight_map": {"a": SHARD}}))
    assert folder_lines(tmp_path) == []


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_before_anything_is_fetched_and_when_it_is_read(tmp_path, case):
    change, found, for_all = REFUSED[case]
    folder = publish(tmp_path, torch_layers(mean, lambda: Dense(D, 8)), prompts=PROMPTS)
    change(folder)
    if for_all:
        assert re.search(found, *folder_lines(tmp_path))
        with pytest.raises(DataError, match=found):
            [*not_applied(folder)]
        return
    (line,) = planned(tmp_path)
    assert line.startswith("method.readout.kind: as_published; ")
    assert re.search(found, line) and not folder_lines(tmp_path)
    with pytest.raises(ConfigError, match=found):
        frozen.build(config(), load_backbone(fetched(tmp_path)))


def test_another_pooling_than_the_published_one_is_a_label(tmp_path):
    folder = publish(tmp_path, [Pooling(D, "lasttoken"), Normalize()], kind="llama")
    mean, last = (Readout(kind="pooling", pooler=pooler, layers=None) for pooler in ("avg", "last_token"))
    found = "the encoder was published with lasttoken pooling, applied by readout as_published alone"
    assert [*other_pooling(folder, mean)] == [found]
    assert [*other_pooling(folder, last)] == [*other_pooling(folder, config().readout)] == []
    older = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling/config.json").write_text(json.dumps(older))
    assert [*other_pooling(folder, mean)] == []


def test_a_readout_that_gives_all_sentences_one_vector_is_refused(tmp_path):
    publish(tmp_path, [Pooling(D, "cls")], kind="llama")
    found = "method.readout.kind: the first token, which attends to no other, as theirs is a causal decoder. Take an average."
    assert planned(tmp_path) == [found]
    place = fetched(tmp_path)
    tokenizer = load_tokenizer(place)
    with pytest.raises(ConfigError, match="sentences of different words have one vector"):
        check_tells_apart(frozen.build(config(), load_backbone(place)), tokenizer)
    last = {"kind": "pooling", "pooler": "last_token", "layers": None}
    block = MethodConfig.parse({"module": "frozen", "readout": last}, "methods")
    check_tells_apart(frozen.build(block, load_backbone(place)), tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": [*tokenizer.get_vocab()]})
    with pytest.raises(ConfigError, match="the tokeniser has 0 words beside its special tokens"):
        check_tells_apart(frozen.build(block, load_backbone(place)), tokenizer)


def test_a_prompt_that_is_not_there_is_named_before_anything_is_fetched(tmp_path):
    folder = publish(tmp_path, [mean()], prompts=PROMPTS)
    found = "method.readout.prompt: quiry; theirs has document, query. Name one of them, or null."
    assert planned(tmp_path, "quiry") == [found]
    edited(folder, "config_sentence_transformers.json", default_prompt_name="q")
    found = "method.readout.prompt: null; the folder's default prompt is q; theirs has document, query. Name one of them."
    assert planned(tmp_path) == [found]


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_folder_is_a_line_before_anything_is_fetched_and_when_it_is_read(tmp_path, case):
    change, found = DAMAGED[case]
    folder = publish(tmp_path, torch_layers(mean, lambda: Dense(D, 8)), prompts=PROMPTS)
    change(folder)
    (line,) = folder_lines(tmp_path)
    assert re.fullmatch(rf"encoders\.theirs: .*{found}.*\. Get the model again\.", line)
    with pytest.raises(DataError, match=found):
        fetched(tmp_path)
        [*not_applied(folder)]


@pytest.mark.parametrize(
    "block",
    [{"module": "repooled"}, {"module": "frozen", "template": {"text": "a [X]", "add_period": False}}],
)
def test_it_is_for_an_encoder_that_nobody_changed_in_no_prompt_but_its_own(block):
    with pytest.raises(ConfigError, match=r"readout\.kind: as_published, which is an encoder as it is"):
        MethodConfig.parse(block | {"readout": {"kind": "as_published", "prompt": None}}, "methods")


def test_a_pinned_source_is_taken_with_what_it_pins(tmp_path):
    publish(tmp_path, [mean()])
    _, files = locate("theirs", Fetch.parse(SOURCE, "encoders.theirs"), tmp_path)
    assert {"modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"} < {*files}
    pins = {name: given.sha256 for name, given in files.items()}
    plain = {name: pin for name, pin in pins.items() if Path(name).parent == Path() and "modules" not in name}
    for pinned in (
        pins,
        {name: pin for name, pin in plain.items() if name != "config_sentence_transformers.json"},
    ):
        source = {"kind": "local", "path": "models/theirs", "sha256": pinned}
        _, taken = locate("theirs", Fetch.parse({"sources": [source]}, "encoders.theirs"), tmp_path)
        assert {*taken} == {*pinned}
