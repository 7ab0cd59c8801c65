"""InforMin-CL, SSCL and SimCSE on pairs: what each adds to SimCSE."""

import importlib
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tests import tiny
from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.methods import informin_cl, simcse_pairs, sscl
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.sampler import Sampler

TEXTS, PARTNERS = tiny.sentences(40), tiny.sentences(40, seed=5)
BLOCK = {
    "readout": {"kind": "pooling", "pooler": "cls", "layers": None},
    "head_at_test": False,
    "temperature": 0.05,
    "dropout": 0.1,
}
AVERAGE = {"readout": {"kind": "pooling", "pooler": "avg", "layers": None}}


def make(folder, module, columns=None, **changes):
    method = importlib.import_module(f"workflow_scripts.methods.{module}")
    config = method.Config.parse(BLOCK | {"module": module} | changes, "methods")
    torch.manual_seed(0)
    encoder = method.build(config, load_backbone(folder, **method.overrides(config))).train()
    columns = columns or {"anchor": TEXTS, "positive": PARTNERS}
    return method.Objective(
        config, encoder, TrainingData(columns, load_tokenizer(folder), 24, Sampler(40, 8, 3))
    )


def views(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize("weight", [0.0, 1.0, 3.0])
def test_informin_cl_adds_twice_the_squared_distance_of_the_normalised_views(tiny_bert, weight):
    objective = make(tiny_bert, "informin_cl", reconstruction_weight=weight)
    views_2BD = views(2, 6, 5)
    first, second = F.normalize(views_2BD, dim=-1)
    expected = infonce(*views_2BD, 0.05) + weight * 2 * ((first - second) ** 2).mean()
    torch.testing.assert_close(objective.contrast(views_2BD), expected)
    assert isinstance(objective, informin_cl.Objective)


def test_sscl_with_no_layers_weighing_in_is_simcse(tiny_bert):
    """Candidates at cosine 0 and a small temperature count for nothing beside a positive of cosine 1."""
    objective = make(tiny_bert, "sscl", negative_layers=[-2], **AVERAGE)
    first = torch.eye(12, dtype=torch.float64)[:6]
    orthogonal = torch.eye(12, dtype=torch.float64)[6:].repeat(2, 1, 1)
    found = objective.contrast(torch.cat([first.repeat(2, 1, 1), orthogonal]))
    assert found.item() == pytest.approx(
        (math.log(1 + 5 * math.exp(-20)) + math.log(1 + 17 * math.exp(-20))) / 2, rel=1e-6
    )


def test_sscl_written_out(tiny_bert):
    """Half SimCSE's loss, half that with the layers of all sentences, of both views, in the denominator."""
    objective = make(tiny_bert, "sscl", negative_layers=[-2, 0], **AVERAGE)
    views_VBD = views(6, 4, 5).requires_grad_()
    unit = F.normalize(views_VBD, dim=-1)
    total = 0.0
    for i in range(4):
        similar = [unit[0, i] @ unit[1, j] / 0.05 for j in range(4)]
        deeper = [unit[0, i] @ unit[v, j] / 0.05 for v in range(2, 6) for j in range(4)]
        plain = torch.logsumexp(torch.stack(similar), 0) - similar[i]
        with_layers = torch.logsumexp(torch.stack(similar + deeper), 0) - similar[i]
        total = total + (plain + with_layers) / 8
    (expected,) = torch.autograd.grad(total, views_VBD)
    found = objective.contrast(views_VBD)
    assert found.item() == pytest.approx(total.item(), rel=1e-10)
    torch.testing.assert_close(torch.autograd.grad(found, views_VBD)[0], expected)
    assert expected.abs().amin(dim=-1).min() > 0  # every sentence's layers are pushed away


def test_sscl_reads_both_views_of_every_layer_in_one_call(tiny_bert, monkeypatch):
    objective = make(tiny_bert, "sscl", negative_layers=[-2, 0], **AVERAGE)
    sizes = tiny.passes(monkeypatch)
    assert objective.views(1).shape == (6, 8, tiny.WIDTH)
    assert sizes == [16]


def test_sscl_refuses_readouts_and_layers_that_it_cannot_take(tiny_bert):
    two = {"readout": {"kind": "pooling", "pooler": "avg_top2", "layers": None}}
    with pytest.raises(ConfigError, match="sscl pools one layer"):
        make(tiny_bert, "sscl", negative_layers=[-2], **two)
    with pytest.raises(ConfigError, match="negative_layers: -5; the encoder has hidden states 0 to 2"):
        make(tiny_bert, "sscl", negative_layers=[-5], **AVERAGE)
    assert sscl.Config.model_fields["negative_layers"].is_required()


def test_a_pair_is_each_others_positive_and_both_go_through_in_one_call(tiny_bert, monkeypatch):
    objective = make(tiny_bert, "simcse_pairs", dropout=0.0)
    sizes = tiny.passes(monkeypatch)
    loss = objective.loss(1)
    assert sizes == [16]
    rows = objective._sampler.rows_of(1)
    material = TrainingData({"anchor": TEXTS, "positive": PARTNERS}, load_tokenizer(tiny_bert), 24, None)
    parts = [objective.module(*material.tokenised(column).batch(rows)) for column in ("anchor", "positive")]
    torch.testing.assert_close(loss, infonce(*parts, 0.05), rtol=1e-4, atol=1e-5)


def test_pairs_of_equal_sentences_are_simcse(tiny_bert):
    """A round trip that came back as it went is a positive of two dropout views."""
    pairs = make(tiny_bert, "simcse_pairs", {"anchor": TEXTS, "positive": TEXTS})
    alone = make(tiny_bert, "simcse", {"anchor": TEXTS})
    losses = []
    for objective in (pairs, alone):
        torch.manual_seed(1)
        losses.append(objective.loss(1).item())
    assert losses[0] == losses[1]


def test_a_corpus_without_positives_is_refused(tiny_bert):
    with pytest.raises(ConfigError, match="reads the column positive"):
        make(tiny_bert, "simcse_pairs", {"anchor": TEXTS})
    assert simcse_pairs.Objective.loss
