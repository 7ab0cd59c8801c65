"""Declarations of settings that change nothing, read from the configuration's own blocks."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from workflow_scripts.graph.inert import NO_EFFECT, OF_METHODS, OF_READOUTS, inert_settings, without_inert
from workflow_scripts.provenance.closure import ROOT

BLOCKS = yaml.safe_load(Path(ROOT, "config/methods.yaml").read_text("utf-8"))["methods"]


def block(name, **readout):
    found = {
        key: value
        for key, value in copy.deepcopy(BLOCKS[name]).items()
        if key not in ("training", "development", "readings")
    }
    if "base" in found:
        found["base"] = block(found["base"])
    return found | ({"readout": found["readout"] | readout} if readout else {})


def names(method):
    return {finding.setting.removeprefix("method.") for finding in inert_settings(method)}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (block("simcse"), set()),
        (block("jtcse"), set()),
        (block("jtcse") | {"cross_mode": "literal"}, {"cross_every"}),
        (block("tncse"), {"cross_mode"}),
        (block("jtcse") | {"terms": ["nce"]}, {"cross_every", "direction", "modulus_weight", "modulus_of"}),
        (
            block("jtcse") | {"terms": ["nce"], "cross_mode": "feedback"},
            {"direction", "modulus_weight", "modulus_of"},
        ),
        (block("simcse_3r"), set()),
        (block("simcse_3r") | {"subtract": "own"}, {"k", "detach"}),
        (block("simcse_3r") | {"subtract": "words"}, {"k"}),
        (block("sscl_3r"), {"where", "base.head_at_test"}),
        (block("supervised_simcse") | {"hard_negatives": False}, {"hard_negative_weight"}),
        (block("simcse_s2sent"), {"head_at_test", "readout.frequency_set"}),
        (block("simcse_s2sent", frequencies=16), {"head_at_test"}),
        (
            block("simcse_s2sent", squeeze="gap"),
            {"head_at_test", "readout.frequencies", "readout.frequency_set", "readout.dct"},
        ),
        (block("simcse_layerattpooler", weights="ratio"), {"readout.divisor", "readout.first_state"}),
    ],
)
def test_settings_without_effect_are_found_beside_what_makes_them_so(method, settings):
    assert names(method) == settings


def test_each_finding_says_why():
    literal = block("jtcse") | {"cross_mode": "literal"}
    (found,) = inert_settings(literal)
    assert found == ("method.cross_every", "in the literal mode the last layer alone attends across")


def test_methods_that_differ_in_such_settings_alone_compare_equal():
    one = block("simcse_s2sent", blocks=1, frequencies=4, form="stack")
    other = block("simcse_s2sent", blocks=1, frequencies=16, form="average")
    assert one != other and without_inert(one) == without_inert(other)
    assert without_inert(one)["readout"]["frequencies"] == NO_EFFECT
    assert one["readout"]["frequencies"] == 4
    assert without_inert(one) != without_inert(block("simcse_s2sent", blocks=1, squeeze="none"))


def test_an_absent_setting_is_not_taken_for_one_without_effect():
    literal = block("jtcse") | {"cross_mode": "literal"}
    assert without_inert(literal) != without_inert(literal | {"cross_every": None})


def test_every_declared_setting_is_one_of_its_block():
    methods = {found["module"]: found for found in (block(name) for name in BLOCKS)}
    readouts = {
        found["readout"]["kind"]: found["readout"] for found in methods.values() if "readout" in found
    }
    readouts |= {
        kind: block(name)["readout"] for name in BLOCKS for kind in OF_READOUTS if _kind(name) == kind
    }
    for declared, blocks in ((OF_METHODS, methods), (OF_READOUTS, readouts)):
        assert declared
        for name, entries in declared.items():
            for setting in (setting for entry in entries for setting in entry.settings):
                value = blocks[name]
                for key in setting.split("."):
                    assert key in value, f"{name}: {setting}"
                    value = value[key]


def _kind(name):
    return block(name).get("readout", {}).get("kind")


def test_the_declarations_are_read_without_torch():
    code = "import sys; import workflow_scripts.graph.inert; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
