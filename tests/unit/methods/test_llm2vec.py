import numpy as np
import pytest
import torch
from transformers import AutoModel, LlamaConfig, LlamaModel

from tests import tiny
from workflow_scripts.methods import llm2vec, three_r
from workflow_scripts.models.encoder import SentenceEncoder, hidden_states, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import save_encoder
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.sampler import Sampler

TEXTS = tiny.sentences(24)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """A decoder of two layers with random weights."""
    folder = tmp_path_factory.mktemp("llama")
    tokenizer = tiny.make_tokenizer("bert")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        **sizes,
    )
    LlamaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def block(**changes):
    made = {
        "module": "llm2vec",
        "readout": {"kind": "pooling", "pooler": "avg", "layers": None},
        "head_at_test": False,
        "temperature": 0.05,
        "dropout": 0.3,
        "bidirectional": True,
        "lora_rank": 4,
        "lora_alpha": 8,
        "lora_dropout": 0.0,
        "weights": "float32",
    }
    return made | changes


def make(folder, **changes):
    config = llm2vec.Config.parse(block(**changes), "methods")
    torch.manual_seed(0)
    encoder = llm2vec.build(config, load_backbone(folder, **config.overrides)).train()
    columns = {"anchor": TEXTS, "exemplar": tiny.sentences(6, seed=9)}
    return llm2vec.Objective(
        config, encoder, TrainingData(columns, load_tokenizer(folder), 24, Sampler(24, 8, 3))
    )


def changed_first_state(encoder, tokenizer):
    """Whether the first token's state depends on the last one, in a batch without padding."""
    ids = tokenizer(["the town river", "the town king"], return_tensors="pt")
    batch = TokenBatch(ids.input_ids, ids.attention_mask)
    states = hidden_states(encoder.eval().backbone, batch, "last")[-1].detach()
    return bool((states[0, 0] - states[1, 0]).abs().max() > 1e-6)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_tokens_attend_to_those_after_them_if_asked(decoder, bidirectional):
    encoder = make(decoder, bidirectional=bidirectional).module
    assert changed_first_state(encoder, load_tokenizer(decoder)) == bidirectional


def test_the_adapters_alone_are_trained_and_at_first_change_nothing(decoder):
    objective = make(decoder, dropout=0.0)
    plain = SentenceEncoder(
        load_backbone(decoder), objective.module.readout_settings, head=False, head_at_test=False
    )
    plain.backbone.config.is_causal = False
    for layer in plain.backbone.layers:
        layer.self_attn.is_causal = False
    tokenizer = load_tokenizer(decoder)
    np.testing.assert_allclose(
        encode(objective.module, tokenizer, TEXTS, 24), encode(plain, tokenizer, TEXTS, 24), atol=1e-6
    )
    objective.module.train()
    objective.loss(1).backward()
    learning = [name for name, p in objective.module.named_parameters() if p.requires_grad]
    assert learning
    assert all("lora_" in name for name in learning)


def test_a_trained_decoder_is_saved_as_a_plain_one_with_the_same_vectors(decoder, tmp_path):
    objective = make(decoder, dropout=0.0)
    encoder, tokenizer = objective.module, load_tokenizer(decoder)
    before = encode(encoder, tokenizer, TEXTS, 24)
    optimiser = torch.optim.AdamW([p for p in encoder.parameters() if p.requires_grad], lr=1e-2)
    for step in (1, 2, 3):
        optimiser.zero_grad()
        objective.loss(step).backward()
        optimiser.step()
    trained = encode(encoder, tokenizer, TEXTS, 24)
    assert np.abs(trained - before).max() > 1e-3
    objective.finish()
    np.testing.assert_allclose(encode(encoder, tokenizer, TEXTS, 24), trained, atol=1e-5)
    encoder.backbone.save_pretrained(tmp_path)
    assert not any("lora" in name for name in encoder.backbone.state_dict())
    again = SentenceEncoder(load_backbone(tmp_path), encoder.readout_settings, head=False, head_at_test=False)
    np.testing.assert_allclose(encode(again, tokenizer, TEXTS, 24), trained, atol=1e-5)
    assert changed_first_state(again, tokenizer)


def test_frozen_weights_in_bfloat16_are_saved_so_and_their_adapters_are_not_rounded(decoder, tmp_path):
    """A model of seven billion parameters is 13.5 GB then, and not 27."""
    objective = make(decoder, dropout=0.0, weights="bfloat16")
    encoder, tokenizer = objective.module, load_tokenizer(decoder)
    learning = [p for p in encoder.parameters() if p.requires_grad]
    assert {p.dtype for p in learning} == {torch.float32}
    assert {p.dtype for p in encoder.parameters() if not p.requires_grad} == {torch.bfloat16}
    optimiser = torch.optim.AdamW(learning, lr=1e-5)
    before = [p.clone() for p in learning]
    objective.loss(1).backward()
    optimiser.step()
    changed = [not torch.equal(p, was) for p, was in zip(learning, before, strict=True)]
    assert sum(changed) >= len(learning) // 2  # at first only the half that starts from zero has a gradient
    objective.finish()
    save_encoder(tmp_path / "half", encoder, tokenizer)
    full = sum(p.numel() for p in encoder.parameters()) * 4
    assert (tmp_path / "half/model.safetensors").stat().st_size < 0.6 * full
    again = load_backbone(tmp_path / "half")
    assert AutoModel.from_pretrained(tmp_path / "half").dtype == again.dtype == torch.float32
    for name, weight in encoder.backbone.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight.float()), name


def test_3r_reduces_the_vectors_of_a_decoder(decoder):
    """3R, Table 2: LLM2Vec + 3R."""
    settings = {
        "module": "three_r", "base": block(), "pool": "toy", "k": 2, "words": None, "identify": "batch",
        "subtract": "exemplars", "where": "after_head", "detach": False,
        "threshold": {"surrogate": "straight_through", "start": 5.0, "temperature": 0.05, "travel": 1e-2},
    }  # fmt: skip
    config = three_r.Config.parse(settings, "methods")
    encoder = three_r.build(config, load_backbone(decoder, **config.overrides)).train()
    columns = {"anchor": TEXTS, "exemplar": tiny.sentences(6, seed=9)}
    material = TrainingData(columns, load_tokenizer(decoder), 24, Sampler(24, 8, 3))
    objective = three_r.Objective(config, encoder, material)
    objective.loss(1).backward()
    assert objective.metrics()["reduced_dimensions"] == 32
    assert any(p.grad is not None and p.grad.any() for p in encoder.parameters())
