"""The graph's rules say what the classes and modules beside the code say."""

import inspect
from itertools import product
from types import SimpleNamespace

import pytest
from transformers import AutoConfig, BertConfig

from tests.planning import DEMO, ROOT, merged_config
from tests.tiny import TRAINING
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.graph.rules import (
    NEEDS,
    POOLED,
    Start,
    adapting_rules,
    pooled_layers,
    run_rules,
    three_r_rules,
    threshold_rules,
    training_rules,
)
from workflow_scripts.graph.sizes import BUILT_AS_BERT, Size, Sizes, _drops
from workflow_scripts.losses.reduction import ThresholdConfig
from workflow_scripts.methods import load_method, three_r
from workflow_scripts.models.encoder import DROPOUT_SETTINGS, has_dropout
from workflow_scripts.models.packed import FAMILIES
from workflow_scripts.models.readouts import build_readout, pooling, s2sent
from workflow_scripts.training.mlm import ContinueMlm
from workflow_scripts.training.mlm import Sizes as MlmSizes
from workflow_scripts.training.settings import Training

MODULES = sorted(
    path.stem
    for path in (ROOT / "workflow_scripts/methods").glob("[a-z]*.py")
    if path.stem not in ("base", "three_r")
)
METHODS = merged_config(ROOT, DEMO)["methods"]


def refused(build, *errors):
    """Whether a class refuses its settings."""
    try:
        build()
    except (ConfigError, *errors):
        return True
    return False


def start(**changes):
    given = Start("toy", None, [Size(2, 32)], "corpus", ("anchor", "positive", "negative"), None, [], 64)
    return given._replace(**changes)


def test_every_module_is_known_to_the_graph():
    assert sorted(NEEDS) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_what_a_method_needs_is_what_its_module_does(name):
    module = load_method(name)
    objective = getattr(module, "Objective", None)
    assert bool(NEEDS[name].columns) == (objective is not None)
    assert NEEDS[name].reducible == any(hasattr(objective, half) for half in ("compare", "contrast"))
    assert NEEDS[name].has_template == ("test_template" in module.Config.model_fields)
    source = inspect.getsource(module)
    for column in ("positive", "negative"):
        assert (column in NEEDS[name].columns) == (f'"{column}"' in source)


@pytest.mark.parametrize(("epochs", "steps"), list(product((None, 2), (None, 9))))
def test_epochs_and_steps_exclude_each_other_as_the_class_says(epochs, steps):
    settings = TRAINING | {"epochs": epochs, "max_steps": steps}
    assert bool(list(training_rules(settings | {"together": 1}))) == refused(
        lambda: Training.parse(settings, "training")
    )


@pytest.mark.parametrize(("gpus", "width"), list(product((1, 2), (32, 33))))
def test_an_encoder_is_adapted_as_the_classes_say(gpus, width):
    sizes = {"layers": 2, "width": width, "heads": 4, "feed_forward": 8}
    training = TRAINING | {"gpus": gpus}
    block = {"mlm_probability": 0.15, "seed": 0, "training": training}

    def build():
        MlmSizes.parse(sizes, "afresh")
        ContinueMlm.parse(block, "continue_mlm")

    assert bool(list(adapting_rules({"afresh": sizes}, training))) == refused(build)


@pytest.mark.parametrize(("gpus", "together"), list(product((1, 2), (1, 2))))
def test_only_trainings_of_one_gpu_share_it(gpus, together):
    found = list(training_rules(TRAINING | {"gpus": gpus, "together": together}))
    assert bool(found) == (gpus == together == 2)


@pytest.mark.parametrize(
    ("surrogate", "travel"), list(product(("frozen", "soft", "straight_through"), (0, 0.1)))
)
def test_a_threshold_learns_or_not_as_the_class_says(surrogate, travel):
    settings = {"surrogate": surrogate, "start": None, "temperature": 0.05, "travel": travel}
    assert bool(list(threshold_rules(settings))) == refused(
        lambda: ThresholdConfig.parse(settings, "threshold")
    )


def test_pools_and_words_are_named_where_the_class_says():
    base = {key: value for key, value in METHODS["simcse"].items() if key != "readings"}
    block = {key: value for key, value in METHODS["simcse_3r"].items() if key != "training"} | {"base": base}
    identify = ("batch", "both_views", "words_at_start", "words_each_step", "all")
    subtract = ("exemplars", "words", "word_rows", "own")
    outcomes = set()
    for found, taken, pool, words in product(identify, subtract, (None, "pool"), (None, 300)):
        settings = block | {"identify": found, "subtract": taken, "pool": pool, "words": words}
        outcome = bool(list(three_r_rules(settings)))
        outcomes.add(outcome)
        assert outcome == refused(lambda settings=settings: three_r.Config.parse(settings, "method"))
    assert outcomes == {True, False}


@pytest.mark.parametrize("pooler", ["cls", "cls_before_pooler", "avg", *POOLED])
@pytest.mark.parametrize("layers", [None, (0, 2)])
def test_pooled_layers_are_those_of_the_readout(pooler, layers):
    settings = {"kind": "pooling", "pooler": pooler, "layers": layers}
    assert tuple(pooled_layers(settings)) == pooling.Config.parse(settings, "readout").indices


BERT = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)


def found_of(readout):
    """Whether the rules refuse a readout of an encoder with 2 layers of 32."""
    method = METHODS["frozen_avg"] | {"readout": readout}
    return bool(list(run_rules(method, start(corpus=None))))


@pytest.mark.parametrize("layers", [None, (0,), (2,), (-3,), (3,), (-4,), (1, 9)])
def test_a_layer_is_there_where_the_readout_can_be_built(layers):
    settings = {"kind": "pooling", "pooler": "avg", "layers": layers}
    config = pooling.Config.parse(settings, "readout")
    assert found_of(settings) == refused(lambda: build_readout(config, BERT), DataError)


def test_a_selector_is_refused_where_it_cannot_be_built():
    outcomes = set()
    choices = product((1, 2, 3), ("none", "gap", "dct"), (1, 16), (12, 33), (True, False))
    for blocks, squeeze, frequencies, reduction, batch_norm in choices:
        settings = METHODS["simcse_s2sent"]["readout"] | {
            "blocks": blocks,
            "squeeze": squeeze,
            "frequencies": frequencies,
            "reduction": reduction,
            "batch_norm": batch_norm,
        }
        config = s2sent.Config.parse(settings, "readout")
        outcome = found_of(settings)
        outcomes.add(outcome)
        assert outcome == refused(lambda config=config: build_readout(config, BERT))
    assert outcomes == {True, False}


def test_a_size_comes_from_the_encoder_itself_and_else_from_the_rates(tmp_path):
    (tmp_path / "data/models/mine").mkdir(parents=True)
    (tmp_path / "data/models/mine/config.json").write_text('{"num_hidden_layers": 3, "hidden_size": 48}')
    (tmp_path / "rates.yaml").write_text(
        "encoders: {bert: {layers: 12, width: 768}, mine: {layers: 1, width: 1}}"
    )
    local = {"fetch": {"sources": [{"kind": "local", "path": "models/mine"}]}}
    encoders = {
        "mine": local,
        "adapted": {"adapt": {"base": "mine"}},
        "afresh": {"adapt": {"base": "mine", "afresh": {"layers": 4, "width": 256}}},
        "bert": {"fetch": {"sources": [{"kind": "hub", "repository": "x", "revision": "y"}]}},
        "unheard_of": {
            "fetch": {"sources": [{"kind": "package", "package": "no_such_package", "path": "model"}]}
        },
    }
    sizes = Sizes(encoders, tmp_path / "data", tmp_path / "results", tmp_path / "rates.yaml")
    assert sizes.of("mine") == sizes.of("adapted") == Size(3, 48)
    assert sizes.of("afresh") == Size(4, 256, sizes.of("mine").positions)
    assert sizes.of("bert") == Size(12, 768)
    assert sizes.of("unheard_of") is None
    config = (
        '{"num_hidden_layers": 3, "hidden_size": 48, "max_position_embeddings": 514, "model_type": "%s"%s}'
    )
    for kind, positions in (("roberta", 512), ("mpnet", 512), ("bert", 514), ("llama", None)):
        padding = ', "pad_token_id": 1' if kind == "roberta" else ""
        (tmp_path / "data/models/mine/config.json").write_text(config % (kind, padding))
        fresh = Sizes(encoders, tmp_path / "data", tmp_path / "results", tmp_path / "rates.yaml")
        assert fresh.of("mine")[:4] == (3, 48, positions, kind)
    without = Sizes(encoders, None, tmp_path / "results", tmp_path / "rates.yaml")
    assert without.of("mine") == Size(1, 1)


@pytest.mark.parametrize("kind", [*BUILT_AS_BERT, "mpnet", "distilbert", "modernbert"])
def test_an_encoder_drops_what_transformers_says(kind):
    usual = AutoConfig.for_model(kind)
    for setting in (name for name in DROPOUT_SETTINGS if hasattr(usual, name)):
        nothing = dict.fromkeys((name for name in DROPOUT_SETTINGS if hasattr(usual, name)), 0.0)
        for given in ({}, {setting: 0.2}, {setting: 0.0}, nothing, nothing | {setting: 0.2}):
            whole = SimpleNamespace(config=AutoConfig.for_model(kind, **given))
            assert _drops({"model_type": kind} | given) == has_dropout(whole), given
    assert _drops({"model_type": "unheard of"}) is None


def test_encoders_that_attend_across_are_those_that_are_packed():
    assert set(BUILT_AS_BERT) == FAMILIES
