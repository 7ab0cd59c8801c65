"""What is declared to change nothing changes nothing: losses, gradients, test vectors and random numbers, to the bit."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tests import tiny
from workflow_scripts.graph.inert import OF_METHODS, OF_READOUTS, inert_settings
from workflow_scripts.methods import load_method
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.readouts import set_mask_token
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.mlm import MaskedLanguageModel
from workflow_scripts.training.mlm_head import save_head
from workflow_scripts.training.sampler import Sampler

BLOCKS = yaml.safe_load(Path(ROOT, "config/methods.yaml").read_text("utf-8"))["methods"]
TEXTS = tiny.sentences(24)
COLUMNS = {
    "anchor": TEXTS,
    "positive": tiny.sentences(24, seed=1),
    "negative": tiny.sentences(24, seed=2),
    "exemplar": tiny.sentences(12, seed=9),
    "word": list(tiny.WORDS),
}
SMALL = {"blocks": 2, "reduction": 4, "dropout": 0.1, "k": 3, "lora_rank": 2, "negative_layers": [-2]}
AVG = {"readout": {"pooler": "avg"}}
OWN = {"threshold": {"start": 0.01}, "subtract": "own", "pool": None}
LEARNS = {"surrogate": "straight_through", "start": 0.3, "travel": 0.1}
OTHERS = {
    "head_at_test": [True, False], "hard_negative_weight": [0.5], "cross_mode": ["literal", "feedback"],
    "cross_every": [1], "direction": ["forward"], "modulus_weight": [2.0], "modulus_of": ["cls"], "temperature": [0.4],
    "k": [5], "detach": [True], "where": ["before_head"], "squeeze": ["gap"], "frequencies": [1, 8, 16],
    "frequency_set": ["fcanet"], "dct": ["sum", "printed", "grid"], "activation": ["tanh"], "form": ["average"],
    "weights": ["ratio", "diagonal"], "projection": ["linear", "rrelu"], "embeddings": [False],
    "bias_positions": ["zero"],
    "divisor": ["sqrt_width", "none"], "first_state": [1], "threshold.temperature": [0.4],
}  # fmt: skip
"""Other values of each setting that is declared anywhere."""
JOINTLY = {
    "threshold.surrogate": {"threshold": {"surrogate": "frozen", "travel": 0.0}},
    "threshold.travel": {"threshold": {"travel": 2.0}},
    "threshold.start": {"threshold": {"start": None}},
}
"""Those that others must follow."""
CASES = {
    "simcse": AVG, "simcse_pairs": AVG, "informin_cl": {}, "sscl": {}, "promptbert_avg": {}, "promptbert_noisy": {"denoise": False}, "llm2vec": {},
    "diffcse": AVG | {"projector": "head"},
    "supervised_simcse": {"hard_negatives": False},
    "supervised_avg": AVG,
    "jtcse_nce": {"terms": ["nce"]},
    "jtcse_icnce": {"terms": ["icnce"]},
    "jtcse_ictm": {"terms": ["ictm"]},
    "jtcse_literal": {"cross_mode": "literal"},
    "jtcse_nce_literal": {"terms": ["nce"], "cross_mode": "literal"},
    "jtcse_apart": {"cross_every": None},
    "3r_own": OWN,
    "3r_words": {"subtract": "words", "pool": None, "words": 5},
    "3r_word_rows": {"subtract": "word_rows", "pool": None, "words": 5},
    "3r_all": {"identify": "all"},
    "3r_frozen": {"threshold": {"surrogate": "frozen", "start": 0.3, "travel": 0.0}},
    "3r_headless": {},
    "s2sent": {"readout": {"frequencies": 4}},
    "s2sent_gap": {"readout": {"squeeze": "gap"}},
    "s2sent_none": {"readout": {"squeeze": "none"}},
    "s2sent_one_block": {"readout": {"blocks": 1}},
    "s2sent_one_block_batch": {"readout": {"blocks": 1, "gate": "batch"}},
    "s2sent_one_block_linear": {"readout": {"blocks": 1, "gate": "linear"}},
    "s2sent_average": {"readout": {"form": "average"}},
    "layer_attention": {"readout": {"weights": "ratio"}},
    "layer_attention_diagonal": {"readout": {"weights": "diagonal"}},
    "layer_attention_fixed": {"readout": {"pooling": "avg_last"}},
    "layer_attention_first": {"readout": {"pooling": "avg_first_last"}},
}  # fmt: skip
"""Name to what differs from its block in the configuration."""
FROM = {
    "supervised": "supervised_simcse", "promptbert": "promptbert", "jtcse": "jtcse", "3r": "simcse_3r", "s2sent": "simcse_s2sent",
    "layer": "simcse_layerattpooler", "simcse_pairs": "simcse_round_trips", "3r_headless": "sscl_3r",
}  # fmt: skip


def fitted(name):
    """A case's block as an encoder of a test can run it."""
    source = FROM.get(name) or (name if name in BLOCKS else FROM[name.split("_")[0]])
    block = copy.deepcopy(BLOCKS[source])
    if "base" in block:
        block["base"] = copy.deepcopy(BLOCKS[block["base"]])
        block["threshold"] |= LEARNS
    for part in (block, block.get("base", {}), block.get("readout", {})):
        for unread in ("training", "development", "readings"):
            part.pop(unread, None)
        part |= {key: value for key, value in SMALL.items() if key in part}
    return merged(block, CASES[name])


def merged(block, changes):
    found = copy.deepcopy(block)
    for key, value in changes.items():
        found[key] = merged(found[key], value) if isinstance(value, dict) else value
    return found


def below(path, value):
    for key in reversed(path):
        value = {key: value}
    return value


def changes_of(block, setting):
    """Every change of one declared setting, as part of a block; ``method.base.readout.form`` to its new values."""
    path = setting.split(".")[1:]
    at = next((n for n in range(len(path)) if ".".join(path[n:]) in OTHERS | JOINTLY), None)
    assert at is not None, f"no other value of {setting} is known"
    name = ".".join(path[at:])
    if name in JOINTLY:
        return [below(path[:at], JOINTLY[name])]
    return [below(path, value) for value in OTHERS[name] if value != at_path(block, path)]


def at_path(block, path):
    for key in path:
        block = block[key]
    return block


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tiny.write_model(tmp_path_factory.mktemp("encoder") / "model", "bert")
    torch.manual_seed(1)
    save_head(made, MaskedLanguageModel(load_backbone(made)))
    return made


def effect(folder, block):
    """All that a step, and a test after it, leave: loss, gradients, vectors, and where random numbers have come to."""
    method = load_method(block["module"])
    config = method.Config.parse(block, "methods")
    torch.manual_seed(0)
    backbones = [
        load_backbone(folder, **method.overrides(config)) for _ in range(1 + (block["module"] == "jtcse"))
    ]
    encoder = method.build(config, *backbones)
    tokenizer = load_tokenizer(folder)
    set_mask_token(encoder, tokenizer)
    objective = method.Objective(config, encoder, TrainingData(COLUMNS, tokenizer, 24, Sampler(24, 8, 3)))
    objective.module.train()
    losses = [objective.loss(step) for step in (1, 2)]
    torch.stack(losses).sum().backward()
    gradients = {
        name: parameter.grad.numpy().copy()
        for name, parameter in objective.module.named_parameters()
        if parameter.grad is not None and parameter.grad.any()
    }
    state = torch.get_rng_state().numpy()
    encoder.eval()
    return [loss.item() for loss in losses], gradients, encode(encoder, tokenizer, TEXTS[:6], 24), state


def same(one, other):
    losses, gradients, vectors, state = one
    other_losses, other_gradients, other_vectors, other_state = other
    return (
        losses == other_losses
        and gradients.keys() == other_gradients.keys()
        and all((gradients[name] == other_gradients[name]).all() for name in gradients)
        and np.array_equal(vectors, other_vectors)
        and np.array_equal(state, other_state)
    )


@pytest.mark.parametrize("name", CASES)
def test_a_setting_that_is_declared_inert_changes_no_bit(folder, name):
    block = fitted(name)
    found = inert_settings(block)
    assert found, f"{name} has no inert setting"
    plain = effect(folder, block)
    assert plain[1]
    for setting, because in found:
        for changes in changes_of(block, setting):
            changed = merged(block, changes)
            assert changed != block, setting
            assert same(effect(folder, changed), plain), f"{name}: {changes} although {because}"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("jtcse_icnce", {"direction": "forward"}),
        ("3r_headless", {"detach": True}),
        ("s2sent", {"readout": {"frequency_set": "fcanet", "frequencies": 16}}),
        ("layer_attention", {"readout": {"weights": "softmax"}}),
        ("supervised_simcse", {"hard_negatives": True}),
    ],
)
def test_the_comparison_sees_what_does_change(folder, name, changes):
    block = fitted(name)
    assert not same(effect(folder, merged(block, changes)), effect(folder, block))


def test_every_declaration_is_held_by_a_case():
    declared = {
        (name, setting, entry.because)
        for name, entries in [*OF_METHODS.items(), *OF_READOUTS.items()]
        for entry in entries
        for setting in entry.settings
    }
    held = set()
    for block in map(fitted, CASES):
        parts = [block, block.get("base", {}), block.get("readout", {})]
        for part in parts:
            name = part.get("module") or part.get("kind")
            entries = OF_METHODS.get(name) or OF_READOUTS.get(name) or ()
            held |= {
                (name, s, entry.because) for entry in entries if entry.where(part) for s in entry.settings
            }
    assert declared and declared - held == set()
