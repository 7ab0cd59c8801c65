"""Every setting of every method changes what is trained or what is read at test, or is listed with the reason why not.

The blocks are those of config/methods.yaml, made small by ``tests.support.small_methods``.
"""

import math

import pytest
import torch

from tests.support import small_methods, toy_methods, toys
from tests.support.steps_by_hand import loss_of
from tests.support.toy_training import KilledError
from workflow_scripts.models.dropout import dropout_keys, keys_of
from workflow_scripts.models.encoding import encode_sentences
from workflow_scripts.training.loop import train
from workflow_scripts.training.sampler import Sampler


class Pair:
    """A sampler whose every step has the same rows."""

    seed = 3

    def __init__(self, rows):
        self.rows_of = lambda _step: rows


BLOCKS = small_methods.blocks()
TRAINED = [name for name, block in BLOCKS.items() if toy_methods.is_trained(block)]
PAPERS = (
    "simcse",
    "simcse_s2sent",
    "simcse_layerattpooler",
    "simcse_3r",
    "jtcse",
    "diffcse",
    "promptbert",
    "frozen_avg",
)


def each(names, quick=PAPERS):
    """Cases, of which those of the papers' own methods are not slow."""
    return [pytest.param(name, marks=[] if name in quick else [pytest.mark.slow]) for name in names]


FILES = "train_encoder reads it: the file, or the part of it, that becomes a column"
INERT = (
    {
        "diffcse.head_at_test": "a projector with batch_norm, as here, is refused at test",
        "tncse.cross_mode": "no layer attends across",
        "simcse_round_trips.hard_negative_weight": "there are no hard negatives",
    }
    | {
        f"{name}_layerattpooler.readout.first_layer": "this pooling averages no first state"
        for name in ("simcse", "supervised", "diffcse")
    }
    | {
        f"frozen_whitened.whitening.{key}": "build_frozen reads it: the text that the map is fitted on"
        for key in ("corpus", "max_sentences", "max_tokens")
    }
    | {
        f"{name}.head_at_test": "the readout has no head"
        for name in ("informin_cl", "sscl", "llm2vec", "promptbert_avg", "simcse_s2sent", "promptbert_s2sent")
    }
    | {f"{name}_3r.position": "the readout has no head" for name in ("informin_cl", "sscl", "llm2vec")}
    | {
        f"{name}.readout.frequency_set": "the sets differ from the sixth frequency on"
        for name in ("simcse_s2sent", "promptbert_s2sent")
    }
    | {
        f"{name}.{key}": because
        for name, block in BLOCKS.items()
        if block["module"] == "promptbert"
        for key, because in {
            "bias_positions": "BERT counts positions from 0, RoBERTa does not",
            "select_checkpoint_with": "train_encoder reads it: what is scored on the development set",
        }.items()
    }
    | {
        f"{name}.{key}": FILES
        for name, block in BLOCKS.items()
        if "base" in block
        for key in ("pool", "words")
    }
)
"""Settings without effect in these blocks, and why."""

STILL = {
    "pooler.dense": "BERT's own pooler, which only JTCSE reads",
    "discriminator.backbone.embeddings.token_type_embeddings.weight": "one type alone, and a LayerNorm after it",
}
"""Parameters without a gradient (parts of their names), and why."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


def test_every_method_and_readout_has_a_block():
    """Every method and every readout has a block that is walked."""
    assert small_methods.without_a_block() == []
    assert len(TRAINED) >= 21
    assert len(small_methods.readouts()) >= 15
    assert sum(len(list(small_methods.leaves(block))) for block in BLOCKS.values()) > 200


@pytest.mark.parametrize("name", each(BLOCKS))
def test_every_setting_matters_or_is_known_not_to(folder, name):
    found = {f"{name}.{setting}" for setting in small_methods.idle(folder, BLOCKS[name])}
    assert found == {setting for setting in INERT if setting.startswith(f"{name}.")}


@pytest.mark.parametrize("name", each(TRAINED))
def test_a_gradient_reaches_every_parameter_meant_to_learn(folder, name):
    """A gradient reaches every parameter that is meant to learn."""
    still = small_methods.effect(folder, small_methods.with_members(folder, BLOCKS[name])).still
    assert {parameter for parameter in still if not any(part in parameter for part in STILL)} == set()


@pytest.mark.parametrize("name", each(TRAINED))
def test_a_last_batch_of_two_has_the_loss_of_a_batch_of_two(folder, name):
    """Nothing remembers how large the batches before it were; what is drawn is a function of seed and step."""
    losses = []
    for sampler in (Sampler(24, 22, 3, "keep"), Pair(Sampler(24, 22, 3, "keep").rows_of(2))):
        objective = small_methods.made(folder, BLOCKS[name], sampler).objective
        objective.module.train()
        torch.manual_seed(2)
        if isinstance(sampler, Sampler):
            loss_of(objective, 1).backward()
            objective.module.zero_grad()
            assert len(sampler.rows_of(2)) == 2
        torch.manual_seed(3)
        with dropout_keys(keys_of(3, 2)):
            loss = loss_of(objective, 2)
        loss.backward()
        assert all(p.grad.isfinite().all() for p in objective.module.parameters() if p.grad is not None)
        losses.append(loss.item())
    assert math.isfinite(losses[0])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("name", each(TRAINED, quick=("simcse_3r", "jtcse", "simcse_s2sent")))
def test_bfloat16_gives_the_same_loss_to_a_few_percent(folder, name):
    """Products in bfloat16 give the same loss to a few percent."""

    def first_loss():
        objective = small_methods.made(folder, block).objective
        objective.module.train()
        torch.manual_seed(2)
        return loss_of(objective, 1).item()

    block = small_methods.with_members(
        folder, BLOCKS[name] | {"dropout": 0.0} if "dropout" in BLOCKS[name] else BLOCKS[name]
    )
    loss = first_loss()
    with torch.autocast("cpu", torch.bfloat16):
        short = first_loss()
    # Of 3R, dimensions next to the threshold change sides.
    assert short == pytest.approx(loss, rel=0.05, abs=0.03)
    assert short != loss


def trained(folder, block, checkpoints, kill=None):
    """Weights and tables of a training of four steps; one that is killed before the step ``kill`` leaves none."""
    encoder, objective, _ = small_methods.made(folder, small_methods.with_members(folder, block))
    inputs = objective.inputs

    def perhaps(step):
        if step == kill:
            raise KilledError
        return inputs(step)

    def score():
        vectors = encode_sentences(
            objective.scored or encoder, small_methods.TEXTS[:4], small_methods.SIZE.tokens
        )
        return math.sin(1000 * float(abs(vectors).mean()))  # now higher, now lower

    objective.inputs = perhaps
    settings = toys.training(learning_rate=0.003, batch_size=8)
    try:
        outcome = train(
            objective,
            settings,
            4,
            seed=2,
            development=(1, score),
            checkpoints=checkpoints,
            fingerprint="toy",
        )
    except KilledError:
        return None
    return objective.module.state_dict(), outcome.history, outcome.metrics


@pytest.mark.parametrize("name", each(TRAINED, quick=("simcse_3r", "jtcse")))
def test_a_training_that_was_killed_ends_in_the_same_bytes(folder, tmp_path, torch_settings, name):
    """Whatever a method draws or keeps besides its weights, it finds again."""
    weights, *tables = trained(folder, BLOCKS[name], tmp_path / "whole")
    assert trained(folder, BLOCKS[name], tmp_path / "cut", kill=3) is None
    resumed, *others = trained(folder, BLOCKS[name], tmp_path / "cut")
    assert weights.keys() == resumed.keys()
    assert [key for key, weight in weights.items() if not torch.equal(weight, resumed[key])] == []
    assert tables == others
