"""Every setting of every method changes what is trained or what is read at test, or is listed here as inert."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tests import tiny
from workflow_scripts.closure import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import load_method
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.readouts import set_mask_token
from workflow_scripts.training.material import Material
from workflow_scripts.training.mlm import MaskedLanguageModel
from workflow_scripts.training.mlm_head import save_head
from workflow_scripts.training.sampler import Sampler

TEXTS = [text.rstrip(".") for text in tiny.sentences(24)]  # so that a full stop can be added
COLUMNS = {"anchor": TEXTS, "positive": tiny.sentences(24, seed=1), "negative": tiny.sentences(24, seed=2)}
BLOCKS = yaml.safe_load(Path(ROOT, "config/methods.yaml").read_text("utf-8"))["methods"]
TRAINED = [name for name, block in BLOCKS.items() if block["module"] in (
    "simcse", "supervised_simcse", "promptbert", "diffcse",
)]  # fmt: skip
SMALL = {"blocks": 2, "reduction": 4, "dropout": 0.1}  # what an encoder of two layers and width 32 takes
OTHERS = {
    "pooler": "avg", "layers": [0, 1], "temperature": 0.1, "dropout": 0.3, "own_negative_weight": 0.5, "blocks": 1,
    "form": "average", "squeeze": "gap", "frequencies": 8, "frequency_set": "fcanet", "dct": "sum", "reduction": 8,
    "activation": "tanh", "gate": "linear", "weights": "ratio", "projection": "linear", "divisor": "none",
    "first_state": 1, "mask_share": 0.6, "weight": 0.5, "text": "The book [X] of [MASK].",
}  # fmt: skip
POOLINGS = {"s2sent": "cls", "layer_attention": "attention_avg"}
NO_HEAD = "average pooling has no head"
SMALL_SETS = "the sets differ in Low-16 alone"
INERT = {
    "simcse_s2sent.head_at_test": NO_HEAD,
    "simcse_s2sent.readout.frequency_set": SMALL_SETS,
    "promptbert_avg.head_at_test": NO_HEAD,
    "promptbert_s2sent.head_at_test": NO_HEAD,
    "promptbert_s2sent.readout.frequency_set": SMALL_SETS,
    "simcse_layerattpooler.readout.first_state": "only averages over first and last read it",
    "supervised_layerattpooler.readout.first_state": "only averages over first and last read it",
    "diffcse_layerattpooler.readout.first_state": "only averages over first and last read it",
}
"""Settings that change nothing where the rest of the block stands as it does, and why."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tiny.write_model(tmp_path_factory.mktemp("encoder") / "model", "bert")
    torch.manual_seed(1)
    save_head(made, MaskedLanguageModel(load_backbone(made)))
    return made


def fitted(name):
    """A block as an encoder of a test can run it."""
    block = copy.deepcopy(
        {key: value for key, value in BLOCKS[name].items() if key not in ("training", "readings")}
    )
    for part in (block, block["readout"]):
        part |= {key: value for key, value in SMALL.items() if key in part}
    return block


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, below in enumerate(value):
            yield from leaves(below, (*path, index))
    elif path[-1] not in ("module", "kind"):
        yield path, value


def other(path, value, block):
    if isinstance(value, bool):
        return not value
    if path[-1] == "pooler" and value == "avg":
        return "cls"
    if path[-1] == "pooling":
        return POOLINGS[block["readout"]["kind"]]
    if path[-1] == "projector":
        return {"head": "batch_norm", "batch_norm": "head"}[value]
    return OTHERS[path[-1]]


def effect(folder, block):
    """Loss of a step, and vectors of the encoder at test: all that settings of a method could change."""
    method = load_method(block["module"])
    config = method.Config.parse(block, "methods")
    torch.manual_seed(0)
    encoder = method.build(config, load_backbone(folder, **method.overrides(config)))
    tokenizer = load_tokenizer(folder)
    set_mask_token(encoder.readout, tokenizer)
    objective = method.Objective(config, encoder, Material(COLUMNS, tokenizer, 24, Sampler(24, 8, 3)))
    objective.module.train()
    torch.manual_seed(2)
    loss = objective.loss(1)
    loss.backward()
    learning = {n for n, p in objective.module.named_parameters() if p.grad is not None and p.grad.any()}
    dead = {n for n, _ in objective.module.named_parameters()} - learning
    return loss.item(), encode(encoder, tokenizer, TEXTS[:6], 24), dead


CASES = [(name, path) for name in TRAINED for path, _ in leaves(fitted(name))]


@pytest.mark.parametrize("name", TRAINED)
def test_every_setting_matters_or_is_known_not_to(folder, name):
    block = fitted(name)
    loss, vectors, dead = effect(folder, block)
    pooler = {part for part in dead if ".pooler." in part}
    assert dead - pooler <= {"discriminator.backbone.embeddings.token_type_embeddings.weight"}, dead
    idle = set()
    for path, value in leaves(block):
        changed = copy.deepcopy(block)
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = other(path, value, block)
        if path[-1] == "projector":
            changed["head_at_test"] = False
        try:
            new_loss, new_vectors, _ = effect(folder, changed)
        except ConfigError:
            continue  # refused beside the rest of the block, so somebody reads it
        same_vectors = vectors.shape == new_vectors.shape and bool((vectors == new_vectors).all())
        if new_loss == loss and same_vectors:
            idle.add(".".join(map(str, (name, *path))))
    assert idle == {setting for setting in INERT if setting.split(".")[0] == name}


def test_the_walk_sees_the_settings():
    assert len(TRAINED) >= 9
    assert len(CASES) > 80


@pytest.mark.parametrize("name", TRAINED)
def test_products_in_bfloat16_give_the_same_loss_to_a_few_percent(folder, name):
    block = fitted(name) | {"dropout": 0.0}
    loss, vectors, dead = effect(folder, block)
    with torch.autocast("cpu", torch.bfloat16):
        short_loss, _, short_dead = effect(folder, block)
    assert short_loss == pytest.approx(loss, rel=0.05, abs=0.02) and short_loss != loss
    assert short_dead == dead
    assert vectors.dtype == np.float32
