"""Every method, every reading of one, and masked language modelling, over tiny encoders, ready for their first step."""

from functools import cache
from pathlib import Path

import torch

from tests.support import small_methods
from tests.support.toy_methods import prepared
from tests.support.toys import training_of
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.tokens import NATURAL, Shapes, tokenise
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.training import mlm
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.step import ROUNDED

CASES = small_methods.readings() | {"continue_mlm": {}}
PADDED = ("simcse_s2sent.code", "simcse_s2sent.code_dct")
"""They read padded states, so their batches are never rounded up."""


def shapes_of(name: str) -> Shapes:
    """Multiples for the shapes of a case's batches, as for a capture."""
    return NATURAL if name in PADDED else ROUNDED


@cache
def _block(folder: Path, name: str) -> small_methods.Block:
    return small_methods.with_members(folder, CASES[name])


def objective_of(
    folder: Path,
    name: str,
    shapes: Shapes = NATURAL,
    device: torch.device = small_methods.CPU,
    size: small_methods.Size = small_methods.SIZE,
) -> Objective:
    """A case over the encoder of ``small_methods.bert``, or of another ``size`` in the same folder, in its first state."""
    start = small_methods.bert(folder)
    if name != "continue_mlm":
        block = _block(folder, name)
        return prepared(block, start.parent, size, device, small_methods.ROWS, shapes=shapes).objective
    tokenizer, model = load_tokenizer(start), mlm.load_masked_language_model(start)
    text = tokenise(tokenizer, small_methods.TEXTS, size.tokens)
    block = {"mlm_probability": 0.15, "seed": 3, "training": training_of(size).model_dump()}
    settings = ContinueMlm.parse(block, "continue_mlm")
    return mlm.Objective(
        model.to(device), text, Sampler(len(text), size.batch, 3), tokenizer, settings, shapes
    )
