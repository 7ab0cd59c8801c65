import numpy as np
import pytest
import torch

from tests import tiny
from workflow_scripts.config import ConfigError
from workflow_scripts.losses.infonce import cosine_matrix, infonce
from workflow_scripts.methods import simcse
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.settings.readouts.pooling import LAYERS
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.sampler import Sampler

TEXTS = tiny.sentences(40)


def config(pooler="cls", layers=None, **changes):
    block = {
        "module": "simcse",
        "readout": {"kind": "pooling", "pooler": pooler, "layers": layers},
        "head_at_test": False,
        "temperature": 0.05,
        "dropout": 0.1,
    }
    return simcse.Config.parse(block | changes, "methods.simcse")


def make(folder, batch_size=8, seed=3, **changes):
    settings = config(**changes)
    torch.manual_seed(0)
    encoder = simcse.build(settings, load_backbone(folder, **simcse.overrides(settings))).train()
    sampler = Sampler(len(TEXTS), batch_size, seed)
    material = TrainingData({"anchor": TEXTS}, load_tokenizer(folder), 24, sampler)
    return simcse.Objective(settings, encoder, material), material.tokenised("anchor")


def views(objective, text, step):
    """Both views of a step's sentences, each encoded by a call of its own."""
    ids_BT, mask_BT, _ = text.batch(objective._sampler.rows_of(step))
    return objective.module(ids_BT, mask_BT), objective.module(ids_BT, mask_BT)


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("pooler", LAYERS)
def test_without_dropout_both_views_are_one(tiny_models, kind, pooler):
    """O-20: positive cosine 1, and the loss is that of the vectors against themselves."""
    objective, text = make(tiny_models[kind], pooler=pooler, dropout=0.0)
    first, second = views(objective, text, 1)
    torch.testing.assert_close(cosine_matrix(first, second).diagonal(), torch.ones(8), rtol=0, atol=1e-6)
    assert objective.loss(1).item() == pytest.approx(infonce(first, first, 0.05).item(), rel=1e-4, abs=1e-6)


def test_without_dropout_the_order_of_the_batch_does_not_matter(tiny_bert):
    """O-20, through the encoder."""
    objective, _ = make(tiny_bert, dropout=0.0)
    rows = objective._sampler.rows_of(1)
    losses = []
    for order in (np.arange(8), np.random.default_rng(0).permutation(8)):
        objective._sampler.rows_of = lambda step, order=order: rows[order]
        losses.append(objective.loss(1).item())
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_with_dropout_the_two_views_differ(tiny_models, kind):
    objective, text = make(tiny_models[kind])
    ids_BT, mask_BT, _ = text.batch(objective._sampler.rows_of(1)).repeated()
    first, second = objective.module(ids_BT, mask_BT).chunk(2)
    cosines = cosine_matrix(first, second).diagonal()
    assert (first - second).abs().min(dim=1).values.max() > 0
    assert cosines.max() < 0.9999


def test_both_views_go_through_the_encoder_in_one_call(tiny_bert, monkeypatch):
    objective, _ = make(tiny_bert)
    sizes = tiny.passes(monkeypatch)
    objective.loss(1)
    assert sizes == [16]


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("pooler", LAYERS)
def test_every_parameter_learns_but_the_unused_pooler(tiny_models, kind, pooler):
    objective, _ = make(tiny_models[kind], pooler=pooler)
    objective.loss(1).backward()
    named = dict(objective.module.named_parameters())
    without = {
        name for name, parameter in named.items() if parameter.grad is None or not parameter.grad.any()
    }
    pooler_of_bert = {"backbone.pooler.dense.weight", "backbone.pooler.dense.bias"}
    assert without == (set() if kind == "modernbert" else pooler_of_bert)
    assert ("head.dense.weight" in named) == (pooler == "cls")


def test_a_head_goes_with_cls_alone_and_is_left_out_at_test_unless_asked_for(tiny_bert):
    for pooler in LAYERS:
        encoder = make(tiny_bert, pooler=pooler)[0].module
        assert (encoder.head is not None) == (pooler == "cls")
        assert not encoder.head_at_test
    assert make(tiny_bert, head_at_test=True)[0].module.head_at_test
    assert not make(tiny_bert, pooler="avg", head_at_test=True)[0].module.head_at_test  # there is none


def test_an_encoder_that_drops_nothing_cannot_make_two_views(tiny_models):
    """ModernBERT is published without dropout; a zero that was asked for is an ablation."""
    for kind in ("bert", "roberta"):
        make(tiny_models[kind], dropout=None)
    with pytest.raises(ConfigError, match="dropout: null; the encoder drops nothing"):
        make(tiny_models["modernbert"], dropout=None)
    make(tiny_models["modernbert"], dropout=0.0)


def test_a_few_steps_lower_the_loss(tiny_bert):
    objective, _ = make(tiny_bert, batch_size=40)
    optimiser = torch.optim.AdamW(objective.module.parameters(), lr=3e-3)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        loss = objective.loss(1)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])


@pytest.mark.parametrize(
    "changes", [{"temperature": 0.0}, {"dropout": 1.0}, {"temp": 0.1}, {"module": "simce"}]
)
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(ConfigError, match=r"methods\.simcse"):
        config(**changes)
