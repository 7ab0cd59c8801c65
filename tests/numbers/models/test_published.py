"""Published folders: loaded as sentence-transformers loads them, or refused with the reason."""

import json

import numpy as np
import pytest
import torch
import yaml
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling
from transformers import AutoModel

from tests.support import toys
from workflow_scripts.data.encoders import check_usable, locate
from workflow_scripts.data.published import INPUT_FILES, copy_files
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.methods import frozen
from workflow_scripts.models.backbone import load_backbone
from workflow_scripts.models.encoding import check_not_collapsed
from workflow_scripts.models.ensemble import EnsembleEncoder
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.sources import EncoderBlock, Fetch

TEXTS = [*toys.sentences(6, seed=8), "x", "a flarbish and a Quonk", "The town by the river " * 9]
PROMPTS = {"query": "find the old town: ", "document": ""}
D = toys.WIDTH
SOURCE = {"sources": [{"kind": "local", "path": "models/theirs"}]}
SETTINGS, PROMPT_FILE = "sentence_bert_config.json", "config_sentence_transformers.json"


def publish(root, following, *, kind="bert", limit=64, **more):
    """A folder that sentence-transformers writes for an encoder and the modules after it."""
    folder, plain = root / "models/theirs", toys.write_model(root / "plain", kind)
    given = {"model_max_length": limit} | ({"padding_side": "left"} if kind == "llama" else {})
    modules = [Transformer(str(plain), processor_kwargs=given), *following]
    SentenceTransformer(modules=modules, device="cpu", **more).save_pretrained(
        str(folder), create_model_card=False
    )
    return folder


def edited(folder, name, **changes):
    """A folder with another content of one of its files."""
    content = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
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


def with_settings(name=SETTINGS, **settings):
    """A folder with these settings of the encoder's input, in the format of releases before 6."""

    def make(root):
        folder = publish(root, [mean()])
        (folder / SETTINGS).unlink()
        return edited(folder, name, **settings)

    return make


def cased(folder):
    """A folder whose tokeniser keeps capitals, for which its words are unknown."""
    content = json.loads((folder / "tokenizer.json").read_text())
    content["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return edited(folder, "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False)


def half(root):
    """Weights in half precision, said in the words of older releases."""
    folder = with_settings(model_args={"torch_dtype": "float16"})(root)
    load_backbone(root / "plain").half().save_pretrained(folder)
    content = json.loads((folder / "config.json").read_text())
    content["torch_dtype"] = content.pop("dtype")
    (folder / "config.json").write_text(json.dumps(content))
    return folder


EQUAL = {  # folder, name of a prompt
    "dense": (lambda root: publish(root, torch_layers(mean, lambda: Dense(D, 8), Normalize)), None),
    "a named prompt": (lambda root: publish(root, [mean()], prompts=PROMPTS), "query"),
    "the default prompt": (lambda root: publish(root, [mean()], prompts=PROMPTS, default_prompt_name="query"), None),
    "last token": (lambda root: publish(root, [Pooling(D, "lasttoken"), Normalize()], kind="llama"), None),
    "two poolings": (lambda root: publish(root, [Pooling(D, ("cls", "max")), LayerNorm(2 * D)], kind="mpnet"), None),
    "normalize": (lambda root: publish(root, [Pooling(D, "weightedmean"), Normalize()], kind="roberta"), None),
    "a shorter input": (lambda root: publish(root, [mean()], limit=16, prompts=PROMPTS), "query"),
    "a longer input than the tokeniser's": (
        lambda root: edited(with_settings(max_seq_length=24)(root), "tokenizer_config.json", model_max_length=8), None,
    ),
    "fewer layers": (with_settings(config_args={"num_hidden_layers": 1}), None),
    "another side": (with_settings(tokenizer_args={"truncation_side": "left", "model_max_length": 12}), None),
    "processing": (with_settings(processing_kwargs={"text": {"max_length": 9, "truncation": True}}), None),
    "half precision": (half, None),
    "lower case": (lambda root: cased(with_settings(do_lower_case=True)(root)), None),
    "sharded": (lambda root: sharded(publish(root, [mean()])), None),
}  # fmt: skip
MODULE = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.router.Router"}
CODE = {"idx": 2, "name": "2", "path": "2_Own", "type": "modeling_own.Pooler"}
FOR_ALL = {  # change of a folder with mean pooling, Dense and prompts, and its line: nothing can be made of it
    "router": (lambda f: (f / "modules.json").write_text(json.dumps([MODULE])), "'Router' is the first module, which is not supported"),
    "code": (lambda f: edited(f, "modules.json", add=[CODE]), r"modeling_own\.Pooler' is code of the folder"),
    "remote code": (
        lambda f: edited(f, "config.json", auto_map={"AutoModel": "modeling_own.Own"}, model_type="their_own"),
        "model type `their_own` but Transformers does not recognize",
    ),
    "quantised": (
        lambda f: edited(f, "config.json", quantization_config={"quant_method": "bitsandbytes"}),
        r"config\.json: the weights are quantised\. Choose the encoder in float32",
    ),
    "an adapter": (
        lambda f: edited(f, "adapter_config.json", base_model_name_or_path="their/base"),
        r"adapter_config\.json: an adapter, which is not applied\. Merge it into the weights",
    ),
    "a tokeniser elsewhere": (
        lambda f: edited(f, SETTINGS, tokenizer_name_or_path="their/base"),
        "tokenizer_name_or_path: 'their/base', which is outside the folder. Put the tokeniser's files",
    ),
    "rows without a token": (
        lambda f: edited(f, "config.json", vocab_size=20),
        r"the tokeniser has ids up to \d+, but the embedding matrix has only 20 rows",
    ),
    "cut off": (lambda f: (f / "modules.json").write_text("[{"), r"modules\.json: Invalid JSON: EOF while parsing"),
    "no list": (lambda f: (f / "modules.json").write_text("{}"), r"modules\.json: Input should be a valid array"),
    "empty": (lambda f: (f / "modules.json").write_text("[]"), r"modules\.json: List should have at least 1 item"),
    "no path": (lambda f: edited(f, "modules.json", add=[{"type": "a.B"}]), r"modules\.json: 3: path: Field required"),
    "outside": (lambda f: edited(f, "modules.json", add=[CODE | {"path": "../../plain"}]), r"modules\.json: 3: path: String should"),
    "a list for an encoder": (lambda f: (f / "config.json").write_text("[1]"), "no configuration or tokeniser can be loaded"),
    "no model type": (lambda f: (f / "config.json").write_text("{}"), "Unrecognized model"),
}  # fmt: skip
AS_PUBLISHED = {  # the same, where sentence-transformers would make up what is missing
    "no modules": (lambda f: (f / "modules.json").unlink(), r"has no modules\.json"),
    "missing layers": (lambda f: edited(f, "config.json", num_hidden_layers=3), r"16 weights are missing, encoder\.layer\.2"),
}  # fmt: skip


def config(prompt=None):
    block = {"module": "frozen", "readout": {"kind": "as_published", "prompt": prompt}}
    return read_method(block, "methods")


def pooled(pooler):
    readout = {"kind": "pooling", "pooler": pooler, "layers": None}
    return read_method({"module": "frozen", "readout": readout}, "methods")


def fetched(root):
    """The folder as rule fetch_encoder leaves it."""
    origin, files = locate("theirs", Fetch.parse(SOURCE, "encoders.theirs"), root)
    (root / "fetched").mkdir()
    copy_files(origin, root / "fetched", files)
    return root / "fetched"


@pytest.mark.parametrize("case", EQUAL)
def test_vectors_are_those_of_encode_also_when_saved(tmp_path, case):
    make, prompt = EQUAL[case]
    theirs = SentenceTransformer(str(make(tmp_path)), device="cpu", model_kwargs={"dtype": "float32"})
    expected = theirs.encode(TEXTS, prompt_name=prompt, batch_size=3)
    encoder = frozen.load(config(prompt), fetched(tmp_path))
    np.testing.assert_allclose(encoder.encode(TEXTS, 512), expected, atol=1e-5)
    toys.save(tmp_path / "model", encoder)
    assert not list((tmp_path / "model").rglob("*.py"))
    np.testing.assert_allclose(load_encoder(tmp_path / "model").encode(TEXTS, 512), expected, atol=1e-5)
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(saved.encode(TEXTS, batch_size=2), expected, atol=1e-5)
    assert saved.prompts == theirs.prompts


@pytest.fixture
def minilm(tmp_path):
    """The published folder, and what fetch_encoder takes of it by the hashes of config/encoders.yaml."""
    blocks = yaml.safe_load((ROOT / "config/encoders.yaml").read_text("utf-8"))["encoders"]
    published, files = locate(
        "minilm", EncoderBlock.parse(blocks["minilm"]["fetch"], "encoders.minilm"), None
    )
    copy_files(published, tmp_path, files)
    return published, tmp_path


def test_minilm_is_read_as_published(minilm):
    """MiniLM is read as published and its average has the same cosines."""
    published, copy = minilm
    expected = SentenceTransformer(str(published), device="cpu").encode(TEXTS)
    found = frozen.load(config(), copy).encode(TEXTS, 256)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    average = frozen.load(pooled("avg"), copy).encode(TEXTS, 256)
    lengths = np.linalg.norm(average, axis=1, keepdims=True)
    np.testing.assert_allclose(average / lengths, expected, atol=1e-6)
    assert (lengths > 2).all()
    assert [*frozen.other_pooling(pooled("avg"), copy)] == []


@pytest.mark.parametrize("case", FOR_ALL)
def test_a_useless_folder_is_a_line_when_it_is_fetched(tmp_path, case):
    """A folder that cannot be used is a line when it is fetched."""
    change, found = FOR_ALL[case]
    folder = publish(tmp_path, torch_layers(mean, lambda: Dense(D, 8)), prompts=PROMPTS)
    change(folder)
    with pytest.raises(DataError, match=rf"^[^\n]*{found}[^\n]*\.$"):
        check_usable(folder)


@pytest.mark.parametrize("case", AS_PUBLISHED)
def test_what_cannot_be_read_as_published_is_refused(tmp_path, case):
    change, found = AS_PUBLISHED[case]
    change(publish(tmp_path, torch_layers(mean, lambda: Dense(D, 8)), prompts=PROMPTS))
    check_usable(tmp_path / "models/theirs")
    with pytest.raises((ConfigError, DataError), match=found) as raised:
        frozen.load(config(), fetched(tmp_path))
    assert "\n" not in str(raised.value)


def test_what_sentence_transformers_refuses_is_its_error(tmp_path):
    publish(tmp_path, [mean()], prompts=PROMPTS)
    place = fetched(tmp_path)
    with pytest.raises(ValueError, match="'passage' not found in the configured prompts"):
        frozen.load(config("passage"), place)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (with_settings(do_lower_case=True), r"sentence_bert_config\.json: do_lower_case: true"),
        (EQUAL["fewer layers"][0], r'config_args: \{"num_hidden_layers": 1\}'),
        (EQUAL["another side"][0], "tokenizer_args: .*truncation_side"),
        (EQUAL["processing"][0], "processing_kwargs: "),
        (with_settings(INPUT_FILES[3], processor_kwargs={"truncation_side": "left"}), "camembert.*: processor_kwargs: "),
        (with_settings(model_args={"attn_implementation": "eager"}), "model_args: "),
        (with_settings(modality_config={"message": {}}), "modality_config: a chat template"),
    ],
)  # fmt: skip
def test_other_methods_refuse_modules_they_do_not_apply(tmp_path, make, found):
    """Other methods refuse modules that only sentence-transformers applies."""
    make(tmp_path)
    with pytest.raises(
        ConfigError, match=f"{found}.*, applied by readout as_published only. Use method frozen"
    ):
        frozen.load(pooled("avg"), fetched(tmp_path))


def test_another_readout_reads_the_encoder_alone(tmp_path):
    publish(tmp_path, torch_layers(mean, lambda: Dense(D, 8)), prompts=PROMPTS, default_prompt_name="query")
    place, plain = fetched(tmp_path), pooled("avg")
    encoder = frozen.load(config(), place)
    toys.save(tmp_path / "model", encoder)
    expected = frozen.load(plain, place).encode(TEXTS, 64)
    read = load_encoder(tmp_path / "model", plain.readout).encode(TEXTS, 64)
    np.testing.assert_allclose(read, expected, atol=1e-5)
    assert encoder.backbones[0].config.hidden_size == D
    with pytest.raises(ConfigError, match="an encoder as published cannot be added up"):
        EnsembleEncoder([encoder, encoder.with_readout(plain.readout)], (1.0, 1.0))


def test_another_pooling_than_the_published_one_is_a_label(tmp_path):
    folder = publish(tmp_path, [Pooling(D, "lasttoken"), Normalize()], kind="llama")
    found = "the encoder was published with lasttoken pooling, applied by readout as_published only"
    assert [*frozen.other_pooling(pooled("avg"), folder)] == [found]
    assert [*frozen.other_pooling(pooled("last_token"), folder)] == []
    older = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "word_embedding_dimension": D}
    (folder / "1_Pooling/config.json").write_text(json.dumps(older))
    assert [*frozen.other_pooling(pooled("avg"), folder)] == []


def test_a_readout_of_one_vector_for_all_is_refused(tmp_path):
    """A readout that gives all sentences one vector is refused."""
    publish(tmp_path, [Pooling(D, "cls")], kind="llama")
    place = fetched(tmp_path)
    with pytest.raises(ConfigError, match="sentences of different words have one vector"):
        check_not_collapsed(frozen.load(config(), place))
    encoder = frozen.load(pooled("last_token"), place)
    check_not_collapsed(encoder)
