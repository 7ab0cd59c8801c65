from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tests.support import toys
from tests.support.snakemake_plans import grids_in, merged_config, settings_of_run
from tests.support.steps_by_hand import loss_of, step_of, views_of
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.losses.reduction import Threshold
from workflow_scripts.methods import load_method, three_r
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import ThresholdConfig, read_method
from workflow_scripts.settings.study import Configuration
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import train
from workflow_scripts.training.objective import LossOutput, Objective
from workflow_scripts.training.sampler import Sampler

TEXTS, POOL = toys.sentences(40), toys.sentences(12, seed=9)
TRIPLES = {"anchor": TEXTS, "positive": toys.sentences(40, seed=5), "negative": toys.sentences(40, seed=6)}
BASES = {
    "simcse": {},
    "informin_cl": {"reconstruction_weight": 1.0},
    "sscl": {"negative_layers": [-2], "readout": {"kind": "pooling", "pooler": "avg", "layers": None}},
    "supervised_simcse": {"head_at_test": True, "hard_negatives": True, "hard_negative_weight": 0.0},
}


def base(module="simcse", **changes):
    block = {
        "module": module,
        "readout": {"kind": "pooling", "pooler": "cls", "layers": None},
        "head_at_test": False,
        "temperature": 0.05,
        "dropout": 0.1,
    }
    return block | BASES[module] | changes


def block(start=0.3, surrogate="straight_through", under="simcse", **changes):
    travel = 0.0 if surrogate == "frozen" else 0.1
    made = {
        "module": "three_r",
        "base": base(under),
        "pool": "toy",
        "k": 3,
        "words": None,
        "identify": "batch",
        "subtract": "exemplars",
        "position": "after_head",
        "detach": False,
        "threshold": {
            "surrogate": surrogate,
            "start": start,
            "temperature": 0.05,
            "lr_budget": travel,
        },
    }
    return made | changes


def material(folder, seed=3):
    columns = TRIPLES | {"exemplar": POOL, "word": [*toys.WORDS, "unheard"]}
    return TrainingData(columns, load_tokenizer(folder), 24, Sampler(len(TEXTS), 8, seed))


def make(folder, seed=3, **changes):
    config = three_r.Config.parse(block(**changes), "methods")
    torch.manual_seed(0)
    encoder = three_r.build(config, load_tokenizer(folder), load_backbone(folder, **config.overrides)).train()
    return three_r.Objective(config, encoder, material(folder, seed))


def alone(folder, under):
    """The method underneath, by itself."""
    method, config = load_method(under), read_method(base(under), "methods")
    torch.manual_seed(0)
    encoder = method.build(config, load_tokenizer(folder), load_backbone(folder, **config.overrides)).train()
    return method.Objective(config, encoder, material(folder))


def gradients(objective, prefix=""):
    return {
        name.removeprefix(prefix): parameter.grad
        for name, parameter in objective.module.named_parameters()
        if name.startswith(prefix)
    }


@pytest.mark.parametrize("under", BASES)
@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_with_no_dimension_the_method_underneath_is_left(tiny_models, kind, under):
    """O-62, dropout on: the loss to the bit; gradients in float64, whose sums have other zeros in them."""
    ours, theirs = make(tiny_models[kind], start=0.0, under=under), alone(tiny_models[kind], under)
    losses = []
    for objective in (ours, theirs):
        torch.manual_seed(1)
        losses.append(loss_of(objective, 1).item())
    assert losses[0] == losses[1]
    for objective in (ours, theirs):
        objective.module.double()
        torch.manual_seed(1)
        loss_of(objective, 1).backward()
    expected = gradients(theirs)
    assert any(gradient is not None and gradient.any() for gradient in expected.values())
    for name, gradient in gradients(ours, "base.").items():
        if expected[name] is None:
            assert gradient is None or not gradient.any()
        else:
            torch.testing.assert_close(gradient, expected[name], rtol=1e-11, atol=1e-13, msg=name)


def supervised(**changes):
    """Changes of the block: 3R on triples, nothing dropped, all of the pool as exemplars."""
    return {"k": len(POOL), "base": base("supervised_simcse", dropout=0.0, **changes)}


def test_anchors_positives_and_negatives_lose_the_same(tiny_bert):
    """3R, Eqs. 3 and 5 on the h, h+ and h- of Eq. 2, written out; S is that of the anchors."""
    plain = make(tiny_bert, start=0.0, **supervised())
    vectors = [plain.under.encoder.project(view) for view in views_of(plain.under, 1)]
    anchors = [vector.tolist() for vector in vectors[0]]
    spread = [np.std([vector[d] for vector in anchors]) for d in range(toys.WIDTH)]
    c = float(np.median(spread))
    tokens = load_tokenizer(tiny_bert)(POOL, padding=True, return_tensors="pt")
    redundant = plain.under.encoder(tokens.input_ids, tokens.attention_mask).mean(dim=0)
    low = torch.tensor([s < c for s in spread])
    assert 0 < low.sum() < toys.WIDTH
    h, positive, negative = (torch.where(low, view - redundant, view).double() for view in vectors)
    total = 0.0
    for i in range(8):
        near = torch.cosine_similarity(h[i], positive) / 0.05
        far = torch.cosine_similarity(h[i], negative) / 0.05
        total += (torch.logsumexp(torch.cat([near, far]), 0) - near[i]).item()
    reduced = make(tiny_bert, start=c, **supervised())
    left = step_of(reduced, 1)
    assert left.loss.item() == pytest.approx(total / 8, rel=1e-4)
    assert left.metrics["reduced_dimensions"] == low.sum()
    assert loss_of(plain, 1).item() != pytest.approx(total / 8, rel=1e-3)


def test_the_row_of_a_word_is_the_mean_of_its_pieces(tiny_bert):
    """C8: neither special tokens nor padding; a word of the vocabulary has its own row. Here every dimension loses it."""
    changes = {"base": base(dropout=0.0), "subtract": "word_rows", "pool": None, "words": 20}
    objective = make(tiny_bert, start=50.0, **changes)
    encoder, tokenizer = objective.under.encoder, load_tokenizer(tiny_bert)
    table = encoder.backbone.get_input_embeddings().weight
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in [*toys.WORDS, "unheard"]]
    assert {len(ids) for ids in pieces} == {1, len("unheard")}
    redundant = torch.stack([table[ids].mean(dim=0) for ids in pieces]).mean(dim=0)
    first, second = encoder.project(views_of(objective.under, 1)) - redundant
    torch.testing.assert_close(loss_of(objective, 1), infonce(first, second, 0.05), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("identify", "count"), [("batch", 1), ("both_views", 2)])
def test_deviations_are_those_of_one_view_or_two(tiny_bert, identify, count):
    """3R, Eq. 3, whose h may be the anchors or all vectors of the batch."""
    plain = make(tiny_bert, start=0.0, **supervised())
    anchors, positives, _ = [plain.under.encoder.project(view).tolist() for view in views_of(plain.under, 1)]
    spreads = [np.std(rows, axis=0) for rows in (anchors, anchors + positives)]
    c = float(np.median(spreads[0]))
    in_s = [(spread < c).sum() for spread in spreads]
    assert in_s[0] != in_s[1]
    assert 0 < in_s[1] < toys.WIDTH
    objective = make(tiny_bert, start=c, identify=identify, **supervised())
    assert step_of(objective, 1).metrics["reduced_dimensions"] == in_s[count - 1]


@pytest.mark.parametrize(("identify", "factor"), [("words_each_step", 1.1), ("words_at_start", 1.0)])
def test_static_identification_follows_or_stays(tiny_bert, identify, factor):
    """Deviations of the words' own vectors (a tenth larger after the encoder's change), whatever the batch."""
    changes = {"base": base(dropout=0.0), "identify": identify, "words": 20, "position": "before_head"}
    plain = make(tiny_bert, start=0.0, **changes).under.encoder
    tokens = load_tokenizer(tiny_bert)([*toys.WORDS, "unheard"], padding=True, return_tensors="pt")
    states = plain.backbone(**tokens).last_hidden_state[:, 0].tolist()
    spread = np.array([np.std([vector[d] for vector in states]) for d in range(toys.WIDTH)])
    c = float(np.median(spread))
    objective = make(tiny_bert, start=c, **changes)
    last = objective.under.encoder.backbone.encoder.layer[-1].output.LayerNorm
    last.weight.data *= 1.1
    expected = (factor * spread < c).sum()
    assert 0 < expected < toys.WIDTH
    assert (spread < c).sum() != (1.1 * spread < c).sum()
    for step in (1, 2, 3):
        assert step_of(objective, step).metrics["reduced_dimensions"] == expected


def test_exemplars_are_a_function_of_seed_and_step(tiny_bert):
    """O-67: all of the pool at every step; a single one, another each time."""

    def drawn(**changes):
        objective = make(tiny_bert, **changes)
        return [objective.exemplars_of(step).tolist() for step in range(1, 60)]

    assert drawn(k=12) == [list(range(12))] * 59
    single = drawn(k=1)
    assert {len(rows) for rows in single} == {1}
    assert len({rows[0] for rows in single}) > 8
    assert drawn(k=6) == drawn(k=6) != drawn(k=6, seed=4)


def test_the_threshold_starts_anywhere_by_the_seed(tiny_bert):
    """The threshold starts anywhere between 0 and 1 by the seed."""
    starts = [make(tiny_bert, seed=seed, start=None).threshold.c.item() for seed in range(5)]
    assert len(set(starts)) == 5
    assert all(0 < start < 1 for start in starts)
    assert make(tiny_bert, seed=2, start=None).threshold.c.item() == starts[2]


TABLE_7 = [0.865, 0.742, 0.631, 0.532, 0.446, 0.373, 0.314]
"""c after each tenth of the first epoch, from 1.0, until it is about to stay at 0.273."""


def run(objective, checkpoints, settings, steps):
    return train(
        objective, settings, steps, seed=2, development=None, checkpoints=checkpoints, fingerprint="toy"
    )


class Falling(Objective):
    """A threshold far above all deviations, each of which would lower the loss a little outside of S."""

    def __init__(self, block):
        threshold = Threshold(ThresholdConfig.parse(block, "threshold"), 1.0)
        self.module = torch.nn.ModuleDict({"threshold": threshold, "other": torch.nn.Linear(1, 1)})
        self.lr_budgets = {"threshold.c": block["lr_budget"]}

    def inputs(self, step):
        return ()

    def loss(self, inputs):
        threshold = self.module["threshold"]
        loss = self.pull(threshold) + self.module["other"].weight.sum() ** 2
        return LossOutput(loss, {"threshold": threshold.c.detach().clone()})

    def pull(self, threshold):
        return 1e-3 * threshold(torch.full((384,), 0.05)).mean()


@pytest.mark.parametrize(("steps", "within", "rate"), [(15_625 // 512, 0.03, 3.0e-5), (1000, 0.014, 1.0e-5)])
def test_the_threshold_takes_the_path_of_table_7(tmp_path, steps, within, rate):
    """As printed, a tenth of an epoch after another; the setting is that of config/methods.yaml."""
    method = yaml.safe_load(Path(ROOT, "config/methods.yaml").read_text())["methods"]["simcse_3r"]
    falling = Falling(method["threshold"])
    outcome = run(falling, tmp_path, toys.training(learning_rate=rate, checkpoint_minutes=99), steps)
    path = [*outcome.paths["threshold"], falling.module["threshold"].c.item()]
    tenths = [path[round(steps * tenth / 10)] for tenth in range(1, 8)]
    assert path[0] == 1.0
    assert tenths == pytest.approx(TABLE_7, abs=within)


class Settling(Falling):
    """A threshold that every step moves towards 0.273."""

    def pull(self, threshold):
        return 3.0 * (threshold.c - 0.273).abs()


@pytest.mark.slow
def test_the_grid_of_table_7_has_its_path_and_its_schedule(tmp_path):
    """As printed, for one and a half epochs, of a thousand steps here; rates end with an epoch and begin again."""
    config = merged_config("config/config.yaml")
    printed = grids_in(config)["three_r_table7"].expanded["simcse_3r.bert_base.wiki1m.starts_1_0"].run
    whole = toys.training(**printed.overrides.training, checkpoint_minutes=99)
    assert (whole.max_steps, whole.restart_every) == (23_437, 15_625)
    shorter = whole.model_copy(update={"restart_every": 1000})
    threshold = settings_of_run(Configuration.strictly(config), printed)["method"]["threshold"]
    settling = Settling(threshold)
    outcome = run(settling, tmp_path, shorter, 1500)
    path = [*outcome.paths["threshold"], settling.module["threshold"].c.item()]
    assert path[0] == threshold["start"] == 1.0
    assert path[100::100] == pytest.approx([*TABLE_7, *[0.273] * 8], abs=0.014)
    # From 1e-5 it rises by .002 in the last tenth of the epoch, and by .012 in the first one after it.
    rates = np.array([whole.lr(step, 23_437) for step in range(1, 23_438)])
    moves = threshold["lr_budget"] * rates / rates[:15_625].sum()
    assert 0.002 < moves[14_062:15_625].sum() < 0.012 < moves[15_625:17_187].sum()


TURNED, FALLEN = [1.0, 0.6, 0.3] + [0.27, 0.28] * 5, list(np.linspace(1, 0.3, 13))
SOME = [5.0] * 13


@pytest.mark.parametrize(
    ("threshold", "reduced", "expected"),
    [
        (TURNED, SOME, []),
        (FALLEN, SOME, [three_r.ON_ITS_WAY]),
        (TURNED, [32.0, *SOME[1:]], []),
        (TURNED, [32.0] * 2 + SOME[2:], [three_r.FULL]),
        (FALLEN, [32.0] * 13, [three_r.FULL, three_r.ON_ITS_WAY]),
        (TURNED, [0.0] * 5 + SOME[5:], [three_r.EMPTY]),
        (TURNED, [0.0] * 5 + SOME[7:] + [32.0] * 2, [three_r.EMPTY, three_r.FULL]),
        ([0.2] * 13, SOME, []),  # frozen
    ],
)
def test_an_unsettled_path_and_a_trivial_set_are_told(threshold, reduced, expected):
    """A path that never settled and a set that was empty or full are told."""
    found = three_r.path_labels(np.array(threshold), np.array(reduced), 32)
    assert sorted(found) == sorted(expected)


def test_a_training_tells_what_became_of_its_threshold(tiny_bert, tmp_path, torch_settings):
    objective = make(tiny_bert, start=50.0)
    paths = run(objective, tmp_path, toys.training(), 10).paths
    assert paths["reduced_dimensions"].tolist() == [toys.WIDTH] * 10
    assert three_r.FULL in objective.labels(paths)
    assert make(tiny_bert, identify="all").labels(paths) == []  # full by definition
