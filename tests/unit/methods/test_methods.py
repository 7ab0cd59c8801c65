from pathlib import Path

import pytest
import yaml

from tests import tiny
from workflow_scripts.closure import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import load_method
from workflow_scripts.methods.untrained import Config, build
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.models.readouts.pooled import LAYERS

BLOCKS = yaml.safe_load(Path(ROOT, "config/methods.yaml").read_text("utf-8"))["methods"]


def settings(name):
    """A block without what is not the method's own."""
    return {key: value for key, value in BLOCKS[name].items() if key not in ("training", "readings")}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_of_the_configuration_parses(name):
    block = settings(name)
    if "base" in block:
        block["base"] = settings(block["base"])
    load_method(block["module"]).Config.parse(block, f"methods.{name}")


def test_a_method_that_does_not_exist_is_an_error_of_the_configuration():
    with pytest.raises(ConfigError, match=r"methods/simce\.py"):
        load_method("simce")


def test_a_method_whose_own_import_fails_is_not_called_missing(tmp_path, monkeypatch):
    """The file is there; what it imports is not."""
    from workflow_scripts import methods

    (tmp_path / "broken.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        load_method("broken")


@pytest.mark.parametrize("pooler", LAYERS)
def test_an_untrained_encoder_has_no_head(tiny_bert, pooler):
    block = {"module": "untrained", "readout": {"kind": "pooled", "pooler": pooler, "layers": None}}
    encoder = build(Config.parse(block, "methods"), load_backbone(tiny_bert))
    assert encoder.head is None
    assert encoder.described.pooler == pooler
    assert encoder.backbone.config.hidden_size == tiny.WIDTH
