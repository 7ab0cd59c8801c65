"""What classes of settings say of methods and readouts is what these do."""

import importlib
import inspect
from contextlib import suppress
from itertools import product

import pytest

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.config import names_in
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import load_method
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Size, Start

METHODS = merged_config(ROOT, DEMO)["methods"]


def method_block(name):
    return {
        key: value
        for key, value in METHODS[name].items()
        if key not in ("readings", "training", "development")
    }


def fits(settings):
    """Whether settings of a method are taken."""
    with suppress(ConfigError):
        return bool(MethodConfig.parse(settings, "settings"))
    return False


@pytest.mark.parametrize("name", sorted(set(names_in("workflow_scripts.settings.methods")) - {"three_r"}))
def test_what_a_method_needs_is_what_its_module_does(name):
    module = load_method(name)
    takes = importlib.import_module(f"workflow_scripts.settings.methods.{name}").Config
    objective = getattr(module, "Objective", None)
    assert bool(takes.columns) == (objective is not None)
    assert takes.reducible == hasattr(objective, "contrast")
    assert takes.has_teacher == ("data.teacher" in inspect.getsource(module))


@pytest.mark.parametrize("identify", ["batch", "both_views", "words_at_start", "words_each_step", "all"])
@pytest.mark.parametrize("subtract", ["exemplars", "words", "word_rows", "own"])
def test_pools_and_words_are_named_where_they_are_read(identify, subtract):
    reads_words = identify.startswith("words") or subtract.startswith("word")
    for pool, words in product((None, "pool"), (None, 300)):
        settings = {"identify": identify, "subtract": subtract, "pool": pool, "words": words}
        block = method_block("simcse_3r") | {"base": method_block("simcse")} | settings
        read = (pool is not None) == (subtract == "exemplars") and (words is not None) == reads_words
        assert fits(block) == read


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
