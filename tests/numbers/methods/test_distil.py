import numpy as np
import pytest

from tests.support import toys
from tests.support.steps_by_hand import loss_of
from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import distil
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.ensemble import EnsembleEncoder
from workflow_scripts.training.data import Teacher, TrainingData
from workflow_scripts.training.sampler import Sampler

TEXTS = toys.sentences(24)


def config(**changes):
    block = {
        "module": "distil",
        "readout": {"kind": "pooling", "pooler": "cls_before_pooler", "layers": None},
        "target": "sum",
        "dropout": 0.0,
    }
    return distil.Config.parse(block | changes, "methods.distil")


def make(folder, teacher, **changes):
    settings = config(**changes)
    encoder = distil.build(
        settings, load_tokenizer(folder), load_backbone(folder, **settings.overrides)
    ).train()
    material = TrainingData({"anchor": TEXTS}, load_tokenizer(folder), 24, Sampler(len(TEXTS), 8, 3), teacher)
    return distil.Objective(settings, encoder, material)


def twin_vectors(folder):
    settings = config()
    sub_encoders = [distil.build(settings, load_tokenizer(folder), load_backbone(folder)) for _ in range(2)]
    return EnsembleEncoder(sub_encoders, (1.0, 1.0)).eval().encode(TEXTS, 24)


@pytest.mark.parametrize(("target", "zero"), [("mean", True), ("sum", False)])
def test_the_loss_vanishes_where_the_student_is_what_it_learns(tiny_bert, target, zero):
    """O-52: the mean of two encoders like the student is the student; their sum is twice that."""
    objective = make(tiny_bert, Teacher(twin_vectors(tiny_bert), 2), target=target)
    loss = loss_of(objective, 1).item()
    assert (loss < 1e-10) == zero


def test_the_loss_written_out(tiny_bert):
    vectors = np.random.default_rng(0).normal(size=(len(TEXTS), toys.WIDTH)).astype(np.float32)
    objective = make(tiny_bert, Teacher(vectors, 1))
    rows = Sampler(len(TEXTS), 8, 3).rows_of(2)
    own = objective.module.encode([TEXTS[row] for row in rows], 24)
    objective.module.train()
    assert loss_of(objective, 2).item() == pytest.approx(float(((own - vectors[rows]) ** 2).mean()), rel=1e-5)


def test_one_forward_pass_and_a_gradient_in_the_student_only(tiny_bert, monkeypatch):
    """O-52: the teacher is a file."""
    objective = make(tiny_bert, Teacher(twin_vectors(tiny_bert), 2))
    sizes = toys.passes(monkeypatch)
    loss_of(objective, 1).backward()
    assert sizes == [8]
    assert isinstance(objective.module, SentenceEncoder)
    without = {n for n, p in objective.module.named_parameters() if p.grad is None or not p.grad.any()}
    assert without == {"backbone.pooler.dense.weight", "backbone.pooler.dense.bias"}


def test_a_student_of_another_width_is_refused(tiny_bert):
    with pytest.raises(ConfigError, match="5 entries, the student's 32"):
        make(tiny_bert, Teacher(np.zeros((len(TEXTS), 5), np.float32), 1))
