import numpy as np
import pytest
import torch

from tests import tiny
from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.reduction import deviation
from workflow_scripts.methods import three_r
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.training.loop import train
from workflow_scripts.training.material import Material
from workflow_scripts.training.sampler import Sampler

TEXTS, POOL = tiny.sentences(40), tiny.sentences(12, seed=9)
TRIPLES = {"anchor": TEXTS, "positive": tiny.sentences(40, seed=5), "negative": tiny.sentences(40, seed=6)}
BASES = {
    "simcse": {},
    "informin_cl": {"reconstruction_weight": 1.0},
    "sscl": {"negative_layers": [-2], "readout": {"kind": "pooled", "pooler": "avg", "layers": None}},
    "supervised_simcse": {"head_at_test": True, "hard_negatives": True, "own_negative_weight": 0.0},
}


def base(module="simcse", **changes):
    block = {
        "module": module,
        "readout": {"kind": "pooled", "pooler": "cls", "layers": None},
        "head_at_test": False,
        "temperature": 0.05,
        "dropout": 0.1,
    }
    return block | BASES[module] | changes


def block(start=0.3, surrogate="straight_through", under="simcse", **changes):
    rate = 0.0 if surrogate == "frozen" else 0.01
    made = {
        "module": "three_r",
        "base": base(under),
        "pool": "toy",
        "k": 3,
        "words": None,
        "identify": "batch",
        "subtract": "exemplars",
        "where": "after_head",
        "detach": False,
        "threshold": {
            "surrogate": surrogate,
            "start": start,
            "temperature": 0.05,
            "learning_rate": rate,
        },
    }
    return made | changes


def material(folder, seed=3):
    columns = TRIPLES | {"exemplar": POOL, "word": [*tiny.WORDS, "unheard"]}
    return Material(columns, load_tokenizer(folder), 24, Sampler(len(TEXTS), 8, seed))


def make(folder, seed=3, **changes):
    config = three_r.Config.parse(block(**changes), "methods")
    torch.manual_seed(0)
    encoder = three_r.build(config, load_backbone(folder, **three_r.overrides(config))).train()
    return three_r.Objective(config, encoder, material(folder, seed))


def middle(folder):
    """A threshold that half of the first batch's deviations lie below."""
    objective = make(folder)
    torch.manual_seed(1)
    return float(deviation(objective._base.encoder.project(objective._base.read(1))[0]).median())


def alone(folder, under):
    """The method underneath, by itself."""
    import importlib

    module = importlib.import_module(f"workflow_scripts.methods.{under}")
    config = module.Config.parse(base(under), "methods")
    torch.manual_seed(0)
    encoder = module.build(config, load_backbone(folder, **module.overrides(config))).train()
    return module.Objective(config, encoder, material(folder))


def gradients(objective, prefix=""):
    return {
        name.removeprefix(prefix): parameter.grad
        for name, parameter in objective.module.named_parameters()
        if name.startswith(prefix)
    }


@pytest.mark.parametrize("under", BASES)
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_with_no_dimension_in_it_loss_and_gradients_are_those_of_the_method_underneath(
    tiny_models, kind, under
):
    """O-62: to the bit, dropout on."""
    ours, theirs = make(tiny_models[kind], start=0.0, under=under), alone(tiny_models[kind], under)
    for objective in (ours, theirs):
        torch.manual_seed(1)
        objective.loss(1).backward()
    torch.manual_seed(1)
    ours_again = ours.loss(1).item()
    torch.manual_seed(1)
    assert ours_again == theirs.loss(1).item()
    expected = gradients(theirs)
    assert any(gradient is not None and gradient.any() for gradient in expected.values())
    for name, gradient in gradients(ours, "base.").items():
        if expected[name] is None:
            assert gradient is None or not gradient.any()
        else:
            assert torch.equal(gradient, expected[name]), name


def supervised(**changes):
    """Changes of the block: 3R on triples, nothing dropped, all of the pool as exemplars."""
    return {"k": len(POOL), "base": base("supervised_simcse", dropout=0.0, **changes)}


def test_anchors_positives_and_negatives_lose_the_same_before_they_are_compared(tiny_bert):
    """3R, Eqs. 3 and 5 on the h, h+ and h- of Eq. 2, written out; S is that of the anchors."""
    plain = make(tiny_bert, start=0.0, **supervised())
    vectors = [plain._base.encoder.project(view) for view in plain._base.read(1)]
    anchors = [vector.tolist() for vector in vectors[0]]
    spread = [np.std([vector[d] for vector in anchors]) for d in range(tiny.WIDTH)]
    c = float(np.median(spread))
    tokens = load_tokenizer(tiny_bert)(POOL, padding=True, return_tensors="pt")
    redundant = plain._base.encoder(tokens.input_ids, tokens.attention_mask).mean(dim=0)
    low = torch.tensor([s < c for s in spread])
    assert 0 < low.sum() < tiny.WIDTH
    h, positive, negative = (torch.where(low, view - redundant, view).double() for view in vectors)
    total = 0.0
    for i in range(8):
        near = torch.cosine_similarity(h[i], positive) / 0.05
        far = torch.cosine_similarity(h[i], negative) / 0.05
        total += (torch.logsumexp(torch.cat([near, far]), 0) - near[i]).item()
    reduced = make(tiny_bert, start=c, **supervised())
    assert reduced.loss(1).item() == pytest.approx(total / 8, rel=1e-4)
    assert reduced.watched()[1] == low.sum()
    assert plain.loss(1).item() != pytest.approx(total / 8, rel=1e-3)


@pytest.mark.parametrize(("weight", "expected"), [(0.0, 4.8520303), (1.0, 4.8653650)])
def test_64_equal_triples_stay_equal_when_reduced(tiny_bert, monkeypatch, weight, expected):
    """O-19: ln 128, and ln(127 + e) where a row's own hard negative weighs e."""
    objective = make(tiny_bert, start=5.0, **supervised(own_negative_weight=weight))
    monkeypatch.setattr(objective._base, "read", lambda _step: torch.ones(3, 64, tiny.WIDTH))
    assert objective.loss(1).item() == pytest.approx(expected, rel=1e-6)
    assert objective.watched()[1] == tiny.WIDTH


VARIANTS = {
    "3R": {},
    "dynamic mask": {"subtract": "own", "pool": None},
    "overall subtraction": {"identify": "all"},
    "token subtraction": {"subtract": "words", "pool": None, "words": 20},
    "token subtraction, rows": {"subtract": "word_rows", "pool": None, "words": 20},
    "static identification": {"identify": "words_at_start", "words": 20},
    "static identification, each step": {"identify": "words_each_step", "words": 20},
    "both views": {"identify": "both_views"},
    "before the head": {"where": "before_head"},
    "detached": {"detach": True},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_has_a_loss_of_its_own_and_trains_the_encoder(tiny_bert, name):
    losses = {}
    start = {"dynamic mask": middle(tiny_bert), "before the head": 50.0}.get(name, 5.0)  # 5: above them all
    for variant in {"3R", name}:
        objective = make(tiny_bert, start=start, **VARIANTS[variant])
        torch.manual_seed(1)
        loss = objective.loss(1)
        losses[variant] = loss.item()
        loss.backward()
        trained = [n for n, p in objective.module.named_parameters() if p.grad is not None and p.grad.any()]
        assert any("encoder.layer.1" in n for n in trained)
    same = ("3R", "overall subtraction", "both views", "detached")
    if name in same or name.startswith("static"):  # c lies above every deviation
        assert losses["3R"] == pytest.approx(losses[name], rel=1e-6)
    else:
        assert losses["3R"] != pytest.approx(losses[name], rel=1e-3)


def test_variants_identify_different_dimensions(tiny_bert):
    found = {}
    for name in ("3R", "static identification", "both views", "overall subtraction"):
        objective = make(tiny_bert, start=middle(tiny_bert), **VARIANTS[name])
        torch.manual_seed(1)
        objective.loss(1)
        found[name] = objective.watched()[1]
    assert found["overall subtraction"] == tiny.WIDTH
    assert 0 < found["3R"] < tiny.WIDTH
    assert found["static identification"] != found["3R"]


def test_all_of_the_pool_gives_the_same_exemplars_at_every_step_and_one_gives_one(tiny_bert):
    """O-67."""
    everything = make(tiny_bert, k=12)
    assert all(everything.exemplars_of(step).tolist() == list(range(12)) for step in range(1, 9))
    single = make(tiny_bert, k=1)
    drawn = [single.exemplars_of(step).tolist() for step in range(1, 60)]
    assert all(len(rows) == 1 for rows in drawn)
    assert len({rows[0] for rows in drawn}) > 8


def test_exemplars_are_a_function_of_seed_and_step(tiny_bert):
    one, same, other = (make(tiny_bert, seed=seed, k=6) for seed in (3, 3, 4))
    steps = range(1, 20)
    assert [one.exemplars_of(s).tolist() for s in steps] == [same.exemplars_of(s).tolist() for s in steps]
    assert [one.exemplars_of(s).tolist() for s in steps] != [other.exemplars_of(s).tolist() for s in steps]


def test_more_exemplars_than_the_pool_has_are_refused(tiny_bert):
    with pytest.raises(ConfigError, match="k is 13; the pool has 12"):
        make(tiny_bert, k=13)


def test_the_threshold_starts_anywhere_between_0_and_1_by_the_seed(tiny_bert):
    starts = [make(tiny_bert, seed=seed, start=None)._threshold.c.item() for seed in range(5)]
    assert len(set(starts)) == 5
    assert all(0 < start < 1 for start in starts)
    assert make(tiny_bert, seed=2, start=None)._threshold.c.item() == starts[2]


def trained(folder, place, **changes):
    objective = make(folder, **changes)
    torch.manual_seed(2)
    return objective, train(
        objective, tiny.training(), 10, development=None, checkpoints=place, fingerprint="toy"
    )


def test_a_training_writes_the_path_of_its_threshold(tiny_bert, tmp_path, torch_settings):
    _, outcome = trained(tiny_bert, tmp_path)
    table = outcome.watched.to_pandas()
    path = table[table["quantity"] == "threshold"]
    assert path["step"].tolist() == list(range(1, 11))
    assert path["value"].iloc[0] == pytest.approx(0.3)
    assert path["value"].nunique() == 10
    assert (path["value"] >= 0).all()
    members = table[table["quantity"] == "reduced_dimensions"]["value"]
    assert members.between(0, tiny.WIDTH).all()


def test_a_frozen_threshold_stays(tiny_bert, tmp_path, torch_settings):
    """3R, Table 8."""
    objective, outcome = trained(tiny_bert, tmp_path, surrogate="frozen")
    table = outcome.watched.to_pandas()
    assert table[table["quantity"] == "threshold"]["value"].tolist() == [pytest.approx(0.3)] * 10
    assert not objective._threshold.c.requires_grad


def test_a_training_that_was_stopped_takes_the_same_path(tiny_bert, tmp_path, torch_settings, monkeypatch):
    whole, expected = trained(tiny_bert, tmp_path / "whole")
    stopped = make(tiny_bert)
    loss = stopped.loss
    monkeypatch.setattr(stopped, "loss", lambda step: loss(step) if step < 7 else 1 / 0)
    torch.manual_seed(2)
    arguments = {"development": None, "checkpoints": tmp_path / "stopped", "fingerprint": "toy"}
    with pytest.raises(ZeroDivisionError):
        train(stopped, tiny.training(), 10, **arguments)
    resumed = make(tiny_bert)
    torch.manual_seed(77)
    outcome = train(resumed, tiny.training(), 10, **arguments)
    assert set(outcome.seconds) == set(range(5, 11))
    assert outcome.watched.equals(expected.watched)
    assert outcome.history.equals(expected.history)
    for name, tensor in whole.module.state_dict().items():
        assert torch.equal(tensor, resumed.module.state_dict()[name]), name


def test_nothing_is_reduced_at_test(tiny_bert):
    objective = make(tiny_bert, start=5.0)
    encoder = objective._base.encoder.eval()
    ids_BT, mask_BT = material(tiny_bert).tokenised("anchor").batch(np.arange(4))
    states = encoder.hidden_states(ids_BT, mask_BT)
    plain = encoder.readout(states, TokenBatch(ids_BT, mask_BT))
    assert torch.equal(encoder(ids_BT, mask_BT), plain)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"pool": None}, "give a pool where exemplars are subtracted"),
        ({"words": 20}, "give words where words are embedded"),
        ({"base": base() | {"temperature": 2.0}}, r"base\.temperature"),
        ({"base": {"module": "untrained"}}, "untrained has no vectors to reduce"),
        ({"k": 0}, r"methods\.k"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, complaint):
    with pytest.raises(ConfigError, match=complaint):
        three_r.Config.parse(block(**changes), "methods")
