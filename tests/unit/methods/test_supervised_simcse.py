import numpy as np
import pytest
import torch

from tests import tiny
from workflow_scripts.config import ConfigError
from workflow_scripts.losses.infonce import infonce, infonce_with_negatives
from workflow_scripts.methods import simcse, supervised_simcse
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.sampler import Sampler

ANCHORS, POSITIVES, NEGATIVES = (tiny.sentences(20, seed=seed) for seed in (1, 2, 3))
COLUMNS = {"anchor": ANCHORS, "positive": POSITIVES, "negative": NEGATIVES}
BLOCK = {
    "module": "supervised_simcse",
    "readout": {"kind": "pooling", "pooler": "cls", "layers": None},
    "head_at_test": True,
    "temperature": 0.05,
    "dropout": 0.0,
    "hard_negatives": True,
    "hard_negative_weight": 0.0,
}


def make(folder, columns=COLUMNS, **changes):
    config = supervised_simcse.Config.parse(BLOCK | changes, "methods")
    torch.manual_seed(0)
    encoder = supervised_simcse.build(config, load_backbone(folder, **supervised_simcse.overrides(config)))
    material = TrainingData(columns, load_tokenizer(folder), 24, Sampler(20, 6, 3))
    return supervised_simcse.Objective(config, encoder.train(), material)


def vectors(objective, tokenizer, texts):
    rows = objective._sampler.rows_of(1)
    tokens = tokenizer([texts[row] for row in rows], padding=True, return_tensors="pt")
    return objective.module(tokens.input_ids, tokens.attention_mask)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_loss_is_that_of_the_three_columns_encoded_one_by_one(tiny_bert, weight):
    """LayerAttPooler, Eq. 8; O-60: without hard negatives, Eq. 6."""
    objective, tokenizer = make(tiny_bert, hard_negative_weight=weight), load_tokenizer(tiny_bert)
    encoded = [vectors(objective, tokenizer, texts) for texts in COLUMNS.values()]
    expected = infonce_with_negatives(*encoded, 0.05, weight)
    torch.testing.assert_close(objective.loss(1), expected, rtol=1e-4, atol=1e-5)
    alone = make(tiny_bert, hard_negatives=False)
    torch.testing.assert_close(alone.loss(1), infonce(*encoded[:2], 0.05), rtol=1e-4, atol=1e-5)


def test_all_sentences_go_through_the_encoder_in_one_call(tiny_bert, monkeypatch):
    objective = make(tiny_bert)
    sizes = tiny.passes(monkeypatch)
    objective.loss(1)
    assert sizes == [18]


def test_equation_7_is_equation_6_of_a_sentence_with_itself(tiny_bert):
    """O-60."""
    itself = make(tiny_bert, columns={"anchor": ANCHORS, "positive": ANCHORS}, hard_negatives=False)
    shared = {
        key: value for key, value in BLOCK.items() if key not in ("hard_negatives", "hard_negative_weight")
    }
    config = simcse.Config.parse(shared | {"module": "simcse"}, "methods")
    torch.manual_seed(0)
    encoder = simcse.build(config, load_backbone(tiny_bert, **simcse.overrides(config))).train()
    material = TrainingData({"anchor": ANCHORS}, load_tokenizer(tiny_bert), 24, Sampler(20, 6, 3))
    unsupervised = simcse.Objective(config, encoder, material)
    assert itself.loss(1).item() == pytest.approx(unsupervised.loss(1).item(), rel=1e-6)


def test_hard_negatives_that_the_corpus_lacks_are_an_error_of_the_configuration(tiny_bert):
    with pytest.raises(ConfigError, match="column negative; its corpus has anchor, positive"):
        make(tiny_bert, columns={"anchor": ANCHORS, "positive": POSITIVES})


def test_the_head_is_part_of_the_embedding(tiny_bert):
    """Supervised models keep it."""
    encoder = make(tiny_bert).module.eval()
    tokens = load_tokenizer(tiny_bert)(ANCHORS[:2], padding=True, return_tensors="pt")
    with torch.inference_mode():
        before = encoder(tokens.input_ids, tokens.attention_mask)
        encoder.head.dense.weight.mul_(2)
        after = encoder(tokens.input_ids, tokens.attention_mask)
    assert np.abs((before - after).numpy()).max() > 1e-3
