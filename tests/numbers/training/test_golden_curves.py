"""Losses of five steps, frozen: a refactoring leaves them as they are, a change of results does not.

To write them again after an intended change of results: python -m tests.numbers.training.test_golden_curves
"""

import json
from pathlib import Path

import pytest
import torch

from tests.support import toys
from workflow_scripts.methods import simcse
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import prepare, train
from workflow_scripts.training.mlm import MaskedLanguageModel, Objective
from workflow_scripts.training.sampler import Sampler

GOLDEN = Path(__file__).parents[2] / "golden/loss_curves.json"
STEPS = 5
SEED = 11
# Measured over the kernels of three generations of processors (ATEN_CPU_CAPABILITY): 1e-6 and 3e-6.
TOLERANCE = {"loss": 1e-6, "gradient_norm": 1e-5}
SETTINGS = {
    "max_steps": STEPS,
    "batch_size": 8,
    "learning_rate": 0.003,
    "warmup_steps": 1,
    "weight_decay": 0.01,
}
METHOD = {"module": "simcse", "head_at_test": False, "temperature": 0.05, "dropout": None}


def simcse_objective(folder, pooler):
    config = read_method(
        METHOD | {"readout": {"kind": "pooling", "pooler": pooler, "layers": None}}, "methods.simcse"
    )
    encoder = simcse.build(config, load_tokenizer(folder), load_backbone(folder, **config.overrides))
    material = TrainingData({"anchor": toys.sentences(40)}, load_tokenizer(folder), 16, Sampler(40, 8, SEED))
    return simcse.Objective(config, encoder, material)


def mlm_objective(folder):
    block = {"mlm_probability": 0.15, "seed": SEED, "training": toys.TRAINING | SETTINGS}
    tokenizer = load_tokenizer(folder)
    text = tokenise(tokenizer, toys.sentences(40), 16)
    model = MaskedLanguageModel(load_backbone(folder))
    settings = ContinueMlm.parse(block, "continue_mlm")
    return Objective(model, text, Sampler(len(text), 8, SEED), tokenizer, settings)


CURVES = {
    "simcse cls bert": ("bert", lambda folder: simcse_objective(folder, "cls")),
    "simcse avg_first_last roberta": ("roberta", lambda folder: simcse_objective(folder, "avg_first_last")),
    "mlm bert": ("bert", mlm_objective),
}


def curve(name, models, checkpoints):
    kind, make = CURVES[name]
    settings = toys.training(**SETTINGS)
    prepare(settings, SEED)
    objective = make(models[kind])
    outcome = train(
        objective, settings, STEPS, seed=SEED, development=None, checkpoints=checkpoints, fingerprint="golden"
    )
    return {column: outcome.history[column].to_pylist() for column in ("loss", "gradient_norm")}


@pytest.mark.parametrize("name", CURVES)
def test_losses_and_gradient_norms_are_the_frozen_ones(tiny_models, tmp_path, torch_settings, name):
    frozen = json.loads(GOLDEN.read_text("utf-8"))
    assert frozen["torch"].split("+")[0] == torch.__version__.split("+")[0], (
        "the curves were drawn by another torch"
    )
    found = curve(name, tiny_models, tmp_path)
    assert len(found["loss"]) == STEPS
    for column, values in frozen["curves"][name].items():
        assert found[column] == pytest.approx(values, rel=TOLERANCE[column], abs=1e-6), column


def _write_anew() -> None:
    import tempfile

    folder = Path(tempfile.mkdtemp())
    models = {kind: toys.write_model(folder / kind, kind) for kind in toys.KINDS}
    curves = {name: curve(name, models, folder / name.replace(" ", "_")) for name in CURVES}
    frozen = {"torch": torch.__version__, "curves": curves}
    GOLDEN.write_text(json.dumps(frozen, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    _write_anew()
