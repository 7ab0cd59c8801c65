"""What classes of settings say of methods and readouts is what these do."""

import inspect
from itertools import product

import pytest

from tests.planning import DEMO, ROOT, merged_config
from tests.tiny import TRAINING
from workflow_scripts.config import names_in
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import load_method
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.mlm import ContinueMlm, Sizes
from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Size, Start
from workflow_scripts.settings.training import Training

METHODS = merged_config(ROOT, DEMO)["methods"]
SMALL = Start(encoder="toy", sizes=[Size(2, 32)])


def method(name, **changes):
    block = {
        key: value
        for key, value in METHODS[name].items()
        if key not in ("readings", "training", "development")
    }
    base = {"base": method_block(block["base"])} if "base" in block else {}
    return MethodConfig.parse(block | base | changes, "method")


def method_block(name):
    return {
        key: value
        for key, value in METHODS[name].items()
        if key not in ("readings", "training", "development")
    }


def refused(kind, settings):
    """Whether a class refuses settings."""
    try:
        kind.parse(settings, "settings")
    except ConfigError:
        return True
    return False


@pytest.mark.parametrize("name", sorted(set(names_in("workflow_scripts.settings.methods")) - {"three_r"}))
def test_what_a_method_needs_is_what_its_module_does(name):
    module = load_method(name)
    objective = getattr(module, "Objective", None)
    assert bool(module.Config.columns) == (objective is not None)
    assert module.Config.reducible == hasattr(objective, "contrast")
    source = inspect.getsource(module)
    for column in ("positive", "negative"):
        assert (column in module.Config.columns) == (f'"{column}"' in source)
    assert module.Config.has_teacher == ("data.teacher" in source)


@pytest.mark.parametrize(("epochs", "steps"), list(product((None, 2), (None, 9))))
def test_a_training_has_epochs_or_steps(epochs, steps):
    settings = TRAINING | {"epochs": epochs, "max_steps": steps}
    assert refused(Training, settings) == ((epochs is None) == (steps is None))


def test_masked_words_are_trained_by_one_process_and_heads_share_the_width():
    block = {"mlm_probability": 0.15, "seed": 0, "training": TRAINING}
    assert [refused(ContinueMlm, block | {"training": TRAINING | {"gpus": gpus}}) for gpus in (1, 2)] == [
        False,
        True,
    ]
    sizes = {"layers": 2, "heads": 4, "feed_forward": 8}
    assert [refused(Sizes, sizes | {"width": width}) for width in (32, 33)] == [False, True]


@pytest.mark.parametrize("identify", ["batch", "both_views", "words_at_start", "words_each_step", "all"])
@pytest.mark.parametrize("subtract", ["exemplars", "words", "word_rows", "own"])
def test_pools_and_words_are_named_where_they_are_read(identify, subtract):
    reads_words = identify.startswith("words") or subtract.startswith("word")
    for pool, words in product((None, "pool"), (None, 300)):
        settings = {"identify": identify, "subtract": subtract, "pool": pool, "words": words}
        block = method_block("simcse_3r") | {"base": method_block("simcse")} | settings
        fits = (pool is not None) == (subtract == "exemplars") and (words is not None) == reads_words
        assert refused(MethodConfig, block) == (not fits)


@pytest.mark.parametrize(
    ("layers", "fits"),
    [(None, True), ([0], True), ([2], True), ([-3], True), ([3], False), ([-4], False), ([1, 9], False)],
)
def test_a_pooled_layer_is_there(layers, fits):
    config = ReadoutConfig.parse({"kind": "pooling", "pooler": "avg", "layers": layers}, "readout")
    assert (list(config.misfits(SMALL)) == []) == fits


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"blocks": 2}, []),
        ({"blocks": 3}, ["readout.blocks: 3; toy has 2 layers. Lower it."]),
        ({"squeeze": "dct", "frequencies": 16, "reduction": 32}, []),
        ({"reduction": 33}, ["readout.reduction: 33; toy is 32 wide. Lower it."]),
    ],
)
def test_a_selector_fits_the_encoder(changes, found):
    block = METHODS["simcse_s2sent"]["readout"] | {"blocks": 2, "reduction": 12} | changes
    assert list(ReadoutConfig.parse(block, "readout").misfits(SMALL)) == found


def test_frequencies_divide_the_width():
    block = METHODS["simcse_s2sent"]["readout"] | {
        "squeeze": "dct",
        "blocks": 2,
        "reduction": 12,
        "frequencies": 16,
    }
    start = Start(sizes=[Size(2, 24)])
    (found,) = ReadoutConfig.parse(block, "readout").misfits(start)
    assert found == "readout.frequencies: 16 is no divisor of the encoder's width 24. Choose another."


def test_a_method_around_another_says_where_the_setting_of_that_is():
    base = method_block("simcse") | {"readout": {"kind": "pooling", "pooler": "avg", "layers": [3]}}
    (found,) = method("simcse_3r", base=base).misfits(SMALL)
    assert found == "method.base.readout.layers: 3; toy has hidden states 0 to 2. Name one of them."
