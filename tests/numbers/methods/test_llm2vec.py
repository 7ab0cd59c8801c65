import numpy as np
import pytest
import torch
from transformers import AutoModel

from tests.support import small_methods
from tests.support.steps_by_hand import loss_of
from workflow_scripts.models.backbone import hidden_states, load_backbone
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.tokens import TokenBatch

TEXTS = small_methods.TEXTS
BLOCK = small_methods.blocks()["llm2vec"] | {"lora_rank": 4, "lora_alpha": 8, "lora_dropout": 0.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("llama")


def make(folder, **changes):
    return small_methods.made(folder, BLOCK | changes)


def changed_first_state(encoder, tokenizer):
    """Whether the first token's state depends on the last one, in a batch without padding."""
    ids = tokenizer(["w1 w2 w3", "w1 w2 w4"], return_tensors="pt")
    batch = TokenBatch(ids.input_ids, ids.attention_mask)
    states = hidden_states(encoder.eval().backbone, batch, "last")[-1].detach()
    return bool((states[0, 0] - states[1, 0]).abs().max() > 1e-6)


def test_tokens_attend_to_those_after_them(folder):
    encoder, _, tokenizer = make(folder)
    assert changed_first_state(encoder, tokenizer)


def test_only_adapters_are_trained_and_at_first_change_nothing(folder):
    """Only the adapters are trained, and at first they change nothing."""
    encoder, objective, tokenizer = make(folder, dropout=0.0)
    plain = SentenceEncoder(
        load_backbone(folder / "llama"), tokenizer, encoder.readout_settings, head=False, head_at_test=False
    )
    plain.backbone.config.is_causal = False
    for layer in plain.backbone.layers:
        layer.self_attn.is_causal = False
    np.testing.assert_allclose(encoder.encode(TEXTS, 24), plain.encode(TEXTS, 24), atol=1e-6)
    objective.module.train()
    loss_of(objective, 1).backward()
    learning = [name for name, p in objective.module.named_parameters() if p.requires_grad]
    assert learning
    assert all("lora_" in name for name in learning)


def test_a_trained_decoder_is_saved_as_a_plain_one(folder, tmp_path):
    """A trained decoder is saved as a plain one with the same vectors."""
    encoder, objective, tokenizer = make(folder, dropout=0.0)
    before = encoder.encode(TEXTS, 24)
    optimiser = torch.optim.AdamW([p for p in encoder.parameters() if p.requires_grad], lr=1e-2)
    for step in (1, 2, 3):
        optimiser.zero_grad()
        loss_of(objective, step).backward()
        optimiser.step()
    trained = encoder.encode(TEXTS, 24)
    assert np.abs(trained - before).max() > 1e-3
    objective.finish()
    np.testing.assert_allclose(encoder.encode(TEXTS, 24), trained, atol=1e-5)
    encoder.backbone.save_pretrained(tmp_path)
    assert not any("lora" in name for name in encoder.backbone.state_dict())
    again = SentenceEncoder(
        load_backbone(tmp_path),
        tokenizer,
        encoder.readout_settings,
        head=False,
        head_at_test=False,
    )
    np.testing.assert_allclose(again.encode(TEXTS, 24), trained, atol=1e-5)
    assert changed_first_state(again, tokenizer)


def test_frozen_bfloat16_weights_and_exact_adapters_are_saved(folder, tmp_path):
    """A model of seven billion parameters is 13.5 GB then, and not 27."""
    encoder, objective, _ = make(folder, dropout=0.0, weights="bfloat16")
    learning = [p for p in encoder.parameters() if p.requires_grad]
    assert {p.dtype for p in learning} == {torch.float32}
    assert {p.dtype for p in encoder.parameters() if not p.requires_grad} == {torch.bfloat16}
    optimiser = torch.optim.AdamW(learning, lr=1e-5)
    before = [p.clone() for p in learning]
    loss_of(objective, 1).backward()
    optimiser.step()
    changed = [not torch.equal(p, was) for p, was in zip(learning, before, strict=True)]
    assert sum(changed) >= len(learning) // 2  # at first only the half that starts from zero has a gradient
    objective.finish()
    encoder.save(tmp_path / "half")
    full = sum(p.numel() for p in encoder.parameters()) * 4
    assert (tmp_path / "half/model.safetensors").stat().st_size < 0.6 * full
    again = load_backbone(tmp_path / "half")
    assert AutoModel.from_pretrained(tmp_path / "half").dtype == again.dtype == torch.float32
    for name, weight in encoder.backbone.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight.float()), name
