"""SimCSE, with and without supervision, InforMin-CL and SSCL: views, losses, heads."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tests.support import toys
from tests.support.steps_by_hand import loss_of, views_of
from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.infonce import cos_sim, infonce, infonce_with_negatives
from workflow_scripts.methods import load_method
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.settings.methods import read_method
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.sampler import Sampler

COLUMNS = {name: toys.sentences(40, seed=n) for n, name in enumerate(("anchor", "positive", "negative"))}
COLUMNS["positive"] = [
    " ".join(text.split()[:3]) for text in COLUMNS["positive"]
]  # shorter: views are padded alike
OWN = {
    "simcse": {},
    "supervised_simcse": {"hard_negatives": True, "hard_negative_weight": 0.0},
    "informin_cl": {"reconstruction_weight": 1.0},
    "sscl": {"negative_layers": [-2, 0], "readout": {"kind": "pooling", "pooler": "avg", "layers": None}},
}


class Rows(Sampler):
    """The same rows at every step."""

    def __init__(self, rows):
        super().__init__(len(COLUMNS["anchor"]), len(rows), seed=3)
        self.rows = np.array(rows)

    def rows_of(self, step):
        return self.rows


def make(folder, module, columns=COLUMNS, rows=range(8), pooler="cls", **changes):
    method = load_method(module)
    block = {
        "module": module,
        "readout": {"kind": "pooling", "pooler": pooler, "layers": None},
        "head_at_test": False,
        "temperature": 0.05,
        "dropout": 0.1,
    }
    config = read_method(block | OWN[module] | changes, "methods")
    torch.manual_seed(0)
    encoder = method.build(config, load_tokenizer(folder), load_backbone(folder, **config.overrides)).train()
    data = TrainingData(columns, load_tokenizer(folder), 24, Rows([*rows]))
    return method.Objective(config, encoder, data)


def vectors(objective, folder, column):
    tokens = load_tokenizer(folder)(COLUMNS[column][:8], padding=True, return_tensors="pt")
    return objective.module(tokens.input_ids, tokens.attention_mask)


@pytest.mark.parametrize("kind", toys.KINDS)
@pytest.mark.parametrize("pooler", toys.POOLERS)
def test_without_dropout_both_views_are_one(tiny_models, kind, pooler):
    """O-20: positive cosine 1, and the loss is that of the vectors against themselves."""
    objective = make(tiny_models[kind], "simcse", pooler=pooler, dropout=0.0)
    first, second = objective.encoder.project(views_of(objective, 1))
    torch.testing.assert_close(cos_sim(first, second).diagonal(), torch.ones(8), rtol=0, atol=1e-6)
    loss = loss_of(objective, 1).item()
    assert loss == pytest.approx(infonce(first, first, 0.05).item(), rel=1e-4, abs=1e-6)
    turned = make(tiny_models[kind], "simcse", rows=[3, 0, 7, 1, 6, 2, 5, 4], pooler=pooler, dropout=0.0)
    assert loss_of(turned, 1).item() == pytest.approx(loss, abs=1e-5)


LOSSES = {
    "Eq. 6": ("supervised_simcse", {"hard_negatives": False}, lambda a, p, _: infonce(a, p, 0.05)),
    "triples": ("supervised_simcse", {}, lambda *all: infonce_with_negatives(*all, 0.05, 0.0)),
    "Eq. 8": (
        "supervised_simcse",
        {"hard_negative_weight": 1.0},
        lambda *all: infonce_with_negatives(*all, 0.05, 1.0),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_the_loss_is_that_of_the_columns_encoded_one_by_one(tiny_models, kind, name):
    """LayerAttPooler, Eqs. 6 and 8 (O-60) among them."""
    module, changes, loss = LOSSES[name]
    objective = make(tiny_models[kind], module, dropout=0.0, **changes)
    encoded = [vectors(objective, tiny_models[kind], column) for column in COLUMNS]
    torch.testing.assert_close(loss_of(objective, 1), loss(*encoded), rtol=1e-4, atol=1e-5)


def test_pairs_of_equal_sentences_are_two_dropout_views(tiny_bert):
    """O-60: Equation 7 is Equation 6 of a sentence with itself; a round trip that came back as it went."""
    itself = {"anchor": COLUMNS["anchor"], "positive": COLUMNS["anchor"]}
    losses = []
    pairs = make(tiny_bert, "supervised_simcse", itself, hard_negatives=False)
    for objective in (pairs, make(tiny_bert, "simcse")):
        torch.manual_seed(1)
        losses.append(loss_of(objective, 1).item())
    assert losses[0] == losses[1]


@pytest.mark.parametrize(("module", "sentences"), [("simcse", 16), ("supervised_simcse", 24), ("sscl", 16)])
def test_all_views_go_through_the_encoder_in_one_call(tiny_bert, monkeypatch, module, sentences):
    objective = make(tiny_bert, module)
    sizes = toys.passes(monkeypatch)
    loss_of(objective, 1)
    assert sizes == [sentences]


def test_a_head_goes_with_cls_and_is_left_out_at_test(tiny_bert):
    """A head goes only with CLS, and is left out at test unless asked for."""
    for pooler in toys.POOLERS:
        for asked in (False, True):
            encoder = make(tiny_bert, "simcse", pooler=pooler, head_at_test=asked).module
            assert (encoder.head is not None) == (pooler == "cls")
            assert encoder.head_at_test == (asked and pooler == "cls")


def test_an_encoder_that_drops_nothing_cannot_make_two_views(tiny_models, tmp_path):
    """As ModernBERT is published; a zero that was asked for is an ablation."""
    for kind in ("bert", "roberta"):
        make(tiny_models[kind], "simcse", dropout=None)
    with pytest.raises(ConfigError, match="dropout: null, but the encoder has no dropout"):
        make(
            toys.write_model(tmp_path, "bert", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
            "simcse",
            dropout=None,
        )


def test_a_corpus_that_lacks_a_column_is_refused(tiny_bert):
    with pytest.raises(ConfigError, match="column negative, but its corpus has only anchor, positive"):
        make(tiny_bert, "supervised_simcse", {name: COLUMNS[name] for name in ("anchor", "positive")})


# Losses


def random_views(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize("weight", [0.0, 1.0, 3.0])
def test_informin_cl_adds_twice_the_squared_distance(tiny_bert, weight):
    """InforMin-CL adds twice the squared distance of the normalised views."""
    objective = make(tiny_bert, "informin_cl", reconstruction_weight=weight)
    views_2BD = random_views(2, 6, 5)
    first, second = F.normalize(views_2BD, dim=-1)
    expected = infonce(*views_2BD, 0.05) + weight * 2 * ((first - second) ** 2).mean()
    torch.testing.assert_close(objective.contrast(views_2BD), expected)


def test_sscl_written_out(tiny_bert):
    """Half SimCSE's loss, half that with the layers of all sentences, of both views, in the denominator."""
    objective = make(tiny_bert, "sscl")
    assert views_of(objective, 1).shape == (6, 8, toys.WIDTH)
    views_VBD = random_views(6, 4, 5).requires_grad_()
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
