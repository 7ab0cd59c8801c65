import json
import shutil

import pytest
import torch
from torch.nn.functional import pad
from transformers import AutoConfig, AutoModel

from tests.support import toys
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.models.backbone import dropout_rates, load_backbone, load_tokenizer
from workflow_scripts.models.encoder import Head, SentenceEncoder
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.settings.readouts import Pooling

TEXTS = ["The old town.", "A river in the north of the city and a stone by the water from the school."]


def build(folder, pooler="cls", layers=None, head_at_test=True):
    pooling = Pooling(kind="pooling", pooler=pooler, layers=layers)
    torch.manual_seed(1)
    encoder = SentenceEncoder(
        load_backbone(folder),
        load_tokenizer(folder),
        pooling,
        head=pooling.has_head,
        head_at_test=head_at_test,
    )
    return encoder.eval()


POOLERS = [(pooler, None) for pooler in toys.POOLERS] + [("avg_first_last", (0, -1))]


@pytest.mark.parametrize(("pooler", "layers"), POOLERS)
@pytest.mark.parametrize("kind", toys.KINDS)
def test_a_sentence_embeds_the_same_alone_padded_and_in_a_batch(tiny_models, kind, pooler, layers):
    """O-22: alone against padded by 20 tokens, and against a batch with a longer sentence, below 1e-5."""
    encoder, tokenizer = build(tiny_models[kind], pooler, layers), load_tokenizer(tiny_models[kind])
    text = tokenise(tokenizer, TEXTS, 32)
    assert text.lengths[0] < text.lengths[1] - 5
    ids_BT, mask_BT, _ = text.batch([0])
    padded = (pad(ids_BT, (0, 20), value=tokenizer.pad_token_id), pad(mask_BT, (0, 20)))
    with torch.inference_mode():
        alone = encoder(ids_BT, mask_BT)
        for others in (encoder(*padded), encoder(*text.batch([0, 1]))[:1]):
            assert (alone - others).abs().max() < 1e-5
    assert alone.abs().max() > 0.01  # nothing to compare otherwise


def test_without_the_head_its_weights_do_not_matter(tiny_bert):
    """O-21: bit-equal after randomising the MLP."""
    encoder = build(tiny_bert, head_at_test=False)
    batch = tokenise(load_tokenizer(tiny_bert), TEXTS, 32).batch([0, 1])
    with torch.inference_mode():
        before = encoder(*batch)
        for parameter in encoder.head.parameters():
            parameter.normal_(std=5.0)
        assert torch.equal(encoder(*batch), before)
        encoder.head_at_test = True
        assert not torch.equal(encoder(*batch), before)


def test_the_pooler_decides_vectors_worked_by_hand():
    """O-10: [CLS] = (.5, 0) through W = ((0, 1), (1, 0)) and b = (0, .5) is tanh(0, 1), at a right angle to it."""
    head = Head(2, 2)
    with torch.no_grad():
        head.dense.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        head.dense.bias.copy_(torch.tensor([0.0, 0.5]))
    bare = torch.tensor([[0.5, 0.0]])
    through = head(bare)
    assert through.tolist() == [[0.0, pytest.approx(0.7615942)]]
    assert torch.cosine_similarity(through, bare).item() == 0


def test_the_head_is_used_while_training_whatever_it_is_at_test(tiny_bert):
    encoder = build(tiny_bert, head_at_test=False)
    batch = tokenise(load_tokenizer(tiny_bert), TEXTS, 32).batch([0, 1])
    bare = encoder(*batch)
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    encoder.train()
    torch.testing.assert_close(encoder(*batch), encoder.head(bare))


# Loading


def test_a_backbone_is_loaded_in_float32_with_dropout_off(tmp_path, tiny_bert):
    load_backbone(tiny_bert).to(torch.float16).save_pretrained(tmp_path)
    backbone = load_backbone(tmp_path)
    assert {parameter.dtype for parameter in backbone.parameters()} == {torch.float32}
    assert not backbone.training


def _says(folder, **sizes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | sizes))


def _is_cut_off(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def _lacks(folder, *names):
    for name in names:
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("damaged", "complaint"),
    [
        (lambda folder: _says(folder, hidden_size=64), "no encoder can be loaded"),
        (
            lambda folder: _says(folder, num_hidden_layers=1),
            r"no place for \d+ of its weights, encoder\.layer\.1\.",
        ),
        (lambda folder: _says(folder, num_hidden_layers=3), r"layer\.2"),  # Transformers would draw it
        (_is_cut_off, "no encoder can be loaded"),
        (lambda folder: _lacks(folder, "model.safetensors"), "no encoder can be loaded"),
        (lambda folder: _lacks(folder, "model.safetensors", "config.json"), ""),
    ],
)
def test_damaged_or_unconfigured_weights_are_refused(tmp_path, tiny_bert, damaged, complaint):
    """Weights that are damaged or not as configured are refused."""
    shutil.copytree(tiny_bert, tmp_path / "model")
    damaged(tmp_path / "model")
    with pytest.raises(DataError, match=f"{tmp_path}/model: .*{complaint}"):
        load_backbone(tmp_path / "model")


@pytest.mark.parametrize("kind", toys.KINDS)
def test_dropout_is_set_by_whatever_name_the_encoder_knows_it(tiny_models, kind):
    backbone = load_backbone(tiny_models[kind], dropout=0.25).train()
    batch = tokenise(load_tokenizer(tiny_models[kind]), TEXTS, 32).batch([0, 1])
    call = {"input_ids": batch.ids_BT, "attention_mask": batch.mask_BT}
    assert {module.p for module in backbone.modules() if isinstance(module, torch.nn.Dropout)} == {0.25}
    assert not torch.equal(backbone(**call).last_hidden_state, backbone(**call).last_hidden_state)
    assert any(dropout_rates(backbone))
    still = load_backbone(tiny_models[kind], dropout=0.0).train()
    assert not any(dropout_rates(still))
    assert torch.equal(still(**call).last_hidden_state, still(**call).last_hidden_state)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt", "distilbert", "nomic_bert"])
def test_dropout_reaches_modules_of_other_names(tmp_path, kind):
    """Dropout reaches the modules of families with other names for it."""
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    ids = {"vocab_size": 9, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    AutoModel.from_config(AutoConfig.for_model(kind, **size, **ids)).save_pretrained(tmp_path)
    assert dropout_rates(load_backbone(tmp_path, dropout=0.25)) | {0.0} == {0.0, 0.25}
    assert not any(dropout_rates(load_backbone(tmp_path, dropout=0.0)))


def test_dropout_that_modules_do_not_take_is_refused(tmp_path):
    size = {"hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32, "vocab_size": 9}
    AutoModel.from_config(AutoConfig.for_model("mamba", **size)).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"method\.dropout: 0\.25; modules of mamba drop nothing whatever"):
        load_backbone(tmp_path, dropout=0.25)
    load_backbone(tmp_path, dropout=0.0)


def test_a_pooler_that_a_folder_lacks_is_not_made_up(tmp_path, tiny_bert):
    """Published encoders often have no pooler; Transformers would draw one."""
    backbone = load_backbone(tiny_bert)
    backbone.pooler = None
    backbone.save_pretrained(tmp_path)
    bare, whole = load_backbone(tmp_path), load_backbone(tiny_bert)
    assert bare.pooler is None
    ids = torch.tensor([[2, 9, 7, 3]])
    with torch.inference_mode():
        assert torch.equal(bare(input_ids=ids).last_hidden_state, whole(input_ids=ids).last_hidden_state)


def test_a_folder_without_a_usable_tokeniser_is_an_error(tmp_path, tiny_bert):
    """A folder without a tokeniser or one that cannot pad is an error that names it."""
    shutil.copy(tiny_bert / "config.json", tmp_path)
    with pytest.raises(DataError, match=str(tmp_path)):
        load_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tiny_bert)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(DataError, match="no padding token"):
        load_tokenizer(tmp_path)
