import inspect
from typing import get_args

import numpy as np
import pytest
import torch

from tests.support import toy_methods, toys
from tests.support.small_methods import METHODS
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import load_method, method_modules, repooled
from workflow_scripts.methods.frozen import Config, build
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.readouts import Pooling
from workflow_scripts.training import objective

BLOCKS = toy_methods.blocks()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_the_contract(name):
    """``workflow_scripts.methods``: names, parameters under their names, and what its settings say that it needs."""
    method = load_method(name)
    config = METHODS[name]
    assert get_args(config.model_fields["module"].annotation) == (name,)
    assert method.__doc__
    assert config.has_teacher == ("data.teacher" in inspect.getsource(method))
    assert bool(config.columns) == hasattr(method, "Objective")
    parameters = inspect.signature(method.build).parameters.values()
    first, *others = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    assert first == "config"
    if not hasattr(method, "Objective"):
        assert others in (["tokenizer", "backbone"], ["encoders"])
        return
    assert others in (["tokenizer", "backbone"], ["tokenizer", "backbones"])
    assert objective.Objective in method.Objective.__mro__
    assert list(inspect.signature(method.Objective).parameters) == ["config", "encoder", "data"]
    assert method.Objective.loss is not objective.Objective.loss
    assert config.reducible == hasattr(method.Objective, "contrast")


def test_labels_of_a_readout_reach_every_method_that_has_one():
    """The code's S2Sent, whose vectors depend on their batch."""
    named = {name: block for name, block in BLOCKS.items() if "readout" in block}
    s2sent = {**named["simcse_s2sent"]["readout"], "gate": "batch"}
    for name, block in named.items():
        if block["module"] == "sscl":  # which takes a pooling readout alone
            continue
        labels = read_method(block | {"readout": s2sent}, name).labels
        assert any("depends on the other sentences of its batch" in label for label in labels), name
    assert len(named) >= 15
    below = BLOCKS["simcse_3r"] | {"base": named["simcse"] | {"readout": s2sent}}
    assert len(read_method(below, "methods").labels) == 1


def test_code_of_a_run_has_its_readout_and_the_settings_of_it():
    """Both are loaded by name: nothing that trains, or loads the run, imports them."""
    assert method_modules(read_method(BLOCKS["simcse_s2sent"], "methods")) == [
        "methods.simcse",
        "settings.methods.SimCSE",
        "models.readouts.s2sent",
        "settings.readouts.S2Sent",
    ]


def frozen(folder, readout, **others):
    config = Config.parse({"module": "frozen", "readout": readout} | others, "methods")
    return build(config, load_tokenizer(folder), load_backbone(folder)).eval()


CLS = {"kind": "pooling", "pooler": "cls", "layers": None}


def test_a_frozen_encoder_is_read_through_its_own_pooler(tiny_bert):
    """tanh of a linear map of [CLS], as transformers computes its pooler_output."""
    encoder, tokenizer = frozen(tiny_bert, CLS), load_tokenizer(tiny_bert)
    batch = tokenizer(toys.sentences(4), padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = load_backbone(tiny_bert).eval()(**batch).pooler_output
        found = encoder(batch["input_ids"], batch["attention_mask"])
    torch.testing.assert_close(found, expected)
    assert expected.abs().max() > 0.01


def test_a_finished_run_is_read_through_the_head_that_it_trained(tiny_bert):
    """Official checkpoints of SimCSE have the head where BERT has its pooler."""
    trained = SentenceEncoder(
        load_backbone(tiny_bert), load_tokenizer(tiny_bert), Pooling(**CLS), head=True, head_at_test=False
    ).eval()
    torch.nn.init.normal_(trained.head.dense.weight)
    ids, mask = torch.tensor([[2, 5, 6, 3]]), torch.ones(1, 4, dtype=torch.long)
    again = repooled.build(repooled.Config(module="repooled", readout=Pooling(**CLS)), [trained])
    with torch.no_grad():
        by_hand = torch.tanh(trained(ids, mask) @ trained.head.dense.weight.T + trained.head.dense.bias)
        torch.testing.assert_close(again.eval()(ids, mask), by_hand)


def test_a_finished_run_may_be_read_without_its_prompt(tiny_bert):
    """So that JTCSE's evaluation of PromptBERT, which had none, can be repeated."""
    prompt = {"text": 'This sentence : "[X]" means [MASK].', "add_period": False}
    average = {"kind": "pooling", "pooler": "avg", "layers": None}
    prompted, plain = frozen(tiny_bert, average, template=prompt), frozen(tiny_bert, average)
    texts = toys.sentences(3)
    expected = {
        True: prompted.encode(texts, 16),
        False: plain.encode(texts, 16),
    }
    assert np.abs(expected[True] - expected[False]).max() > 0.01
    for keeps, vectors in expected.items():
        block = {"module": "repooled", "readout": average, "keep_prompt": keeps}
        again = repooled.build(repooled.Config.parse(block, "methods"), [prompted])
        np.testing.assert_allclose(again.eval().encode(texts, 16), vectors, atol=1e-6)


def test_an_encoder_without_a_pooler_cannot_be_read_through_it(tiny_bert):
    backbone = load_backbone(tiny_bert)
    backbone.pooler = None
    with pytest.raises(ConfigError, match="the encoder has no pooler"):
        build(
            Config.parse({"module": "frozen", "readout": CLS}, "methods"), load_tokenizer(tiny_bert), backbone
        )
