import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.support import toys
from tests.support.steps_by_hand import loss_of, metrics_of
from workflow_scripts.methods import jtcse
from workflow_scripts.methods.jtcse import cross_layers, run_twin
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.sampler import Sampler

TEXTS = toys.sentences(40)
MODES = ("parallel", "literal", "feedback")
TERMS = ("nce", "icnce", "ictm")
DEPTH = 4


def sub_encoder(kind, tokenizer, shift=0.0):
    """A sub_encoder of four layers; different shifts give different ones."""
    model = toys.make_backbone(kind, len(tokenizer), num_hidden_layers=DEPTH, attn_implementation="eager")
    draw = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "LayerNorm" not in name:
            parameter.data += 0.1 * shift * torch.randn(parameter.shape, generator=draw)
    return model


def config(**changes):
    block = {
        "module": "jtcse",
        "readout": {"kind": "pooling", "pooler": "cls_before_pooler", "layers": None},
        "temperature": 0.05,
        "dropout": None,
        "terms": list(TERMS),
        "cross_every": 2,
        "cross_mode": "parallel",
        "direction": "random",
        "modulus_weight": 0.5,
        "modulus_of": "pooler",
        "bypassed_layernorms": 0,
    }
    return jtcse.Config.parse(block | changes, "methods.jtcse")


@pytest.fixture(params=["bert", pytest.param("roberta", marks=pytest.mark.slow)])
def parts(request, tiny_models):
    tokenizer = load_tokenizer(tiny_models[request.param])
    material = TrainingData({"anchor": TEXTS}, tokenizer, 24, Sampler(len(TEXTS), 8, 3))
    return request.param, tokenizer, material


def batch_of(material, rows=range(6)):
    return material.tokenised("anchor").batch(list(rows))


def backbones(objective):
    return [member.backbone for member in objective.module.members]


def two_of(parts, shift=1.0):
    """Two sub-encoders; alike without a shift."""
    kind, tokenizer, _ = parts
    return sub_encoder(kind, tokenizer), sub_encoder(kind, tokenizer, shift)


def make(parts, **changes):
    settings = config(**changes)
    return jtcse.Objective(settings, jtcse.build(settings, parts[1], *two_of(parts)), parts[2])


@pytest.mark.parametrize(("every", "layers"), [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)])
def test_the_layers_that_attend_across(every, layers):
    """O-39: the last is always one of them."""
    found = cross_layers(12, every)
    assert len(found) == layers
    assert found[-1] == 12
    assert cross_layers(12, 2) == [2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("every", [1, 2, 4])
def test_identical_sub_encoders_attend_across_as_to_themselves(parts, mode, every):
    """O-36."""
    with torch.inference_mode():
        states = run_twin(two_of(parts, 0.0), batch_of(parts[2]), every, mode)
    for number in (0, 1):
        assert torch.equal(states.cross[number], states.primitive[number])


@pytest.mark.parametrize("mode", ["parallel", "literal"])
@pytest.mark.parametrize("every", [None, 1, 2, 4])
def test_the_primitive_stream_is_that_of_two_stock_encoders(parts, mode, every):
    """O-38: to the rounding of products over packed tokens, which depends on the processor; and bit by bit without."""
    _, _, material = parts
    sub_encoders = two_of(parts)
    batch = batch_of(material)
    with torch.inference_mode():
        states = run_twin(sub_encoders, batch, every, mode)
        alone = run_twin(sub_encoders, batch, None, mode)
        for encoder, found, without in zip(sub_encoders, states.primitive, alone.primitive, strict=True):
            stock = encoder(input_ids=batch.ids_BT, attention_mask=batch.mask_BT).last_hidden_state
            token_BT = batch.mask_BT.bool()
            torch.testing.assert_close(found[token_BT], stock[token_BT], rtol=0, atol=5e-6)
            assert torch.equal(found[token_BT], without[token_BT])
    assert (states.cross is None) == (every is None)


@pytest.mark.parametrize("mode", MODES)
def test_swapping_the_sub_encoders_swaps_their_states(parts, mode):
    """O-38."""
    one, other = two_of(parts)
    with torch.inference_mode():
        here = run_twin((one, other), batch_of(parts[2]), 2, mode)
        there = run_twin((other, one), batch_of(parts[2]), 2, mode)
    assert not torch.allclose(here.primitive[0], here.primitive[1])
    for stream in ("primitive", "cross"):
        assert torch.equal(getattr(here, stream)[0], getattr(there, stream)[1])
        assert torch.equal(getattr(here, stream)[1], getattr(there, stream)[0])


def test_the_period_of_crossing_matters_for_parallel_streams(parts):
    """O-37: literally read, Eqs. 8 to 10 give the same loss for every k."""
    losses = {}
    for mode, every in itertools.product(("literal", "parallel", "feedback"), (1, 2, 4)):
        objective = make(parts, cross_mode=mode, cross_every=every)
        objective.module.eval()
        losses[mode, every] = loss_of(objective, 1).item()
    assert len({losses["literal", every] for every in (1, 2, 4)}) == 1
    assert len({losses["parallel", every] for every in (1, 2, 4)}) == 3
    assert len({losses["feedback", every] for every in (1, 2, 4)}) == 3
    assert losses["parallel", 4] == losses["literal", 4]


def test_the_last_layers_cross_context_written_out(parts):
    """Eqs. 8 to 10 by hand at the last layer in the mode ``literal``, where no sentence is padded."""
    _, _, material = parts
    sub_encoders = two_of(parts)
    batch = batch_of(material, [0])
    with torch.inference_mode():
        states = run_twin(sub_encoders, batch, 4, "literal")
        inputs = [
            t(input_ids=batch.ids_BT, attention_mask=batch.mask_BT, output_hidden_states=True).hidden_states[
                -2
            ]
            for t in sub_encoders
        ]
        layer = sub_encoders[0].encoder.layer[-1]
        query, key = layer.attention.self.query(inputs[0]), layer.attention.self.key(inputs[0])
        value = sub_encoders[1].encoder.layer[-1].attention.self.value(inputs[1])
        width = toys.WIDTH // 4
        contexts = []
        for head in range(4):
            part = slice(head * width, (head + 1) * width)
            scores = query[0, :, part] @ key[0, :, part].T / width**0.5
            contexts.append(scores.softmax(dim=-1) @ value[0, :, part])
        mixed = layer.attention.output.dense(torch.cat(contexts, dim=-1)[None])
        attended = layer.attention.output.LayerNorm(mixed + inputs[0])
        inner = layer.intermediate(attended)
        expected = layer.output.LayerNorm(layer.output.dense(inner) + attended)
    torch.testing.assert_close(states.cross[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_padding_and_batch_mates_do_not_reach_either_stream(parts, mode):
    """O-22, through the cross stream too."""
    _, _, material = parts
    sub_encoders = two_of(parts)
    text = material.tokenised("anchor")
    shortest = int(np.argmin(text.lengths))
    longest = int(np.argmax(text.lengths))
    assert text.lengths[longest] > text.lengths[shortest]
    with torch.inference_mode():
        alone = run_twin(sub_encoders, text.batch([shortest]), 2, mode)
        among = run_twin(sub_encoders, text.batch([shortest, longest]), 2, mode)
    for stream, number in itertools.product(("primitive", "cross"), (0, 1)):
        one, other = getattr(alone, stream)[number][0, 0], getattr(among, stream)[number][0, 0]
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


SUBSETS = [subset for size in (1, 2, 3) for subset in itertools.combinations(TERMS, size)]


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_the_loss_is_the_sum_of_the_terms_that_are_asked_for(parts, subset):
    """O-47: seven subsets of Table X; the eighth, none, is two runs added up (test_ensemble)."""
    whole, some = make(parts), make(parts, terms=list(subset))
    for objective in (whole, some):
        objective.module.eval()
    every = metrics_of(whole, 1)
    assert all(every[name] > 0 for name in TERMS)
    expected = sum(every[name] for name in subset)
    assert loss_of(some, 1).item() == pytest.approx(expected, rel=1e-6)
    metrics = metrics_of(some, 1)
    assert {name for name in TERMS if np.isnan(metrics[name])} == set(TERMS) - set(subset)


def apart(views, one, other, temperature):
    """Eqs. 11 and 12, row by row: the other view of a sentence among all views but that of the row's own index."""
    rows, candidates = views[one], views[other]
    count = len(rows)
    total = 0.0
    for i in range(count):
        cosine = torch.cosine_similarity(rows[i], candidates, dim=-1) / temperature
        others = torch.tensor([j for j in range(count) if j != i])
        total += (torch.logsumexp(cosine[others], 0) - cosine[(i + count // 2) % count]).item()
    return total / count


@pytest.mark.parametrize("forward", [True, False])
def test_the_terms_are_equations_11_to_15_written_out(parts, forward):
    """O-47, each with weight 1; no two views, streams or poolers are alike, so that none can stand in for another."""
    objective = make(parts, temperature=0.3, modulus_weight=0.5)
    draw = torch.Generator().manual_seed(1)
    cls, cross, pooled = torch.randn(3, 2, 10, 4, generator=draw).double() + 1.0  # most cosines above 0
    first, second = (jtcse.Views(cls[i], cross[i], pooled[i]) for i in (0, 1))
    found = objective.terms(first, second, torch.tensor(forward))
    rows, candidates = (0, 1) if forward else (1, 0)
    constraint = 0.0
    for one, other in ((0, 1), (1, 0)):
        for i in range(5):
            cosine = torch.cosine_similarity(cls[one][i], cls[other][5 + i], dim=0).item()
            p, p_plus = pooled[one][i], pooled[other][5 + i]
            distance = (p - p_plus).norm() / (p.norm() + p_plus.norm())
            constraint += -math.log(max(cosine, 1e-4)) * distance.item() / 2 / 5
    expected = {
        "nce": apart(cls, 0, 0, 0.3) + apart(cls, 1, 1, 0.3),
        "icnce": apart(cls, rows, candidates, 0.3) + apart(cross, rows, candidates, 0.3),
        "ictm": constraint,
    }
    assert {name: term.item() for name, term in found.items()} == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("modulus_of", ["pooler", "cls"])
def test_the_loss_reads_cls_cross_streams_and_own_poolers(parts, modulus_of):
    """JTCSE, section III-C: h of the last layer, c of the cross stream, p of the sub-encoder's own pooler."""
    objective = make(parts, direction="forward", modulus_of=modulus_of)
    objective.module.eval()
    one, other = backbones(objective)
    other.pooler.dense.weight.data *= -1
    batch = batch_of(parts[2], Sampler(len(TEXTS), 8, 3).rows_of(1)).repeated()
    states = run_twin((one, other), batch, 2, "parallel", first=True)
    views = []
    for number, sub_encoder in enumerate((one, other)):
        cls, dense = states.primitive[number][:, 0], sub_encoder.pooler.dense
        pooled = torch.tanh(cls @ dense.weight.T + dense.bias)
        modulus = pooled if modulus_of == "pooler" else cls
        views.append(jtcse.Views(cls, states.cross[number][:, 0], modulus))
    expected = objective.terms(*views, torch.tensor(True))
    assert not torch.allclose(states.cross[0], states.primitive[0])
    assert metrics_of(objective, 1) == pytest.approx(
        {name: term.item() for name, term in expected.items()} | {"forward": 1.0}, rel=1e-5
    )


def test_the_direction_is_a_function_of_seed_and_step(parts):
    one, same, ahead = make(parts), make(parts), make(parts, direction="forward")
    drawn = [one.goes_forward(step) for step in range(1, 60)]
    assert drawn == [same.goes_forward(step) for step in range(1, 60)]
    assert set(drawn) == {True, False}
    assert all(ahead.goes_forward(step) for step in range(1, 60))


def test_each_sub_encoder_is_called_once_with_both_views(parts, monkeypatch):
    """Two calls with 2B rows are four forward passes; the cross stream repeats what follows the attention."""
    objective = make(parts)
    seen = {part: toys.passes(monkeypatch, part) for part in ("embedded", "attended", "finished")}
    loss_of(objective, 1)
    assert seen["embedded"] == [16, 16]
    assert seen["attended"] == [16] * (2 * DEPTH)  # attention weights once for both contexts
    assert seen["finished"] == [16] * (2 * (DEPTH + 3))  # the cross stream forks at layer 2 of 4


@pytest.mark.parametrize("terms", [["nce"], ["ictm"], ["nce", "ictm"]], ids="+".join)
@pytest.mark.parametrize(
    ("mode", "finished"), [("parallel", DEPTH), ("literal", DEPTH), ("feedback", DEPTH + 2)]
)
def test_without_icnce_no_cross_stream_is_computed(parts, terms, mode, finished, monkeypatch):
    """A quarter of the step; the losses are those beside it. ``feedback`` needs it for its primitive streams."""
    objective = make(parts, terms=terms, cross_mode=mode)
    whole = make(parts, cross_mode=mode)
    for one in (objective, whole):
        one.module.eval()
    beside = metrics_of(whole, 1)
    ran = toys.passes(monkeypatch, "finished")
    assert loss_of(objective, 1).item() == pytest.approx(sum(beside[term] for term in terms), rel=1e-6)
    assert ran == [16] * (2 * finished)


def test_at_test_sub_encoders_are_two_stock_encoders_summed(parts):
    """O-48, O-50: [CLS] of each, no weights beside theirs; the sum has the cosines of the mean."""
    _, _, material = parts
    objective = make(parts)
    encoder = objective.module.eval()
    own = [sum(weight.numel() for weight in one.parameters()) for one in (encoder, *backbones(objective))]
    assert own[0] == own[1] + own[2]
    batch = batch_of(material)
    with torch.inference_mode():
        found = encoder(batch.ids_BT, batch.mask_BT)
        stock = [
            t(input_ids=batch.ids_BT, attention_mask=batch.mask_BT).last_hidden_state[:, 0]
            for t in backbones(objective)
        ]
    torch.testing.assert_close(found, stock[0] + stock[1], rtol=0, atol=5e-6)
    cosine = nn.functional.cosine_similarity
    mean = (stock[0] + stock[1]) / 2
    torch.testing.assert_close(cosine(found[:3], found[3:]), cosine(mean[:3], mean[3:]))


def test_layers_without_layernorms_let_the_modulus_through(parts):
    """Fig. 8: states leave the last layers unnormalised, and the saved weights are those of a stock encoder."""
    spread = {}
    for last in (0, 1, 2):
        objective = make(parts, bypassed_layernorms=last, modulus_of="cls")
        with torch.inference_mode():
            states = run_twin(backbones(objective), batch_of(parts[2], range(20)), 2, "parallel")
        norms = states.primitive[0][:, 0].norm(dim=-1)
        spread[last] = (norms.std() / norms.mean()).item()
        assert set(backbones(objective)[0].state_dict()) == set(sub_encoder(*parts[:2]).state_dict())
    assert spread[1] > spread[0]


@pytest.mark.parametrize("missing", [(0,), (0, 1)])
def test_a_missing_pooler_is_drawn_alike_for_every_seed(parts, missing):
    """RoBERTa's checkpoints have none; the official code reads what Transformers draws."""
    drawn = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        backbones = two_of(parts)
        for number in missing:
            backbones[number].pooler = None
        encoder = jtcse.build(config(), parts[1], *backbones)
        assert encoder.labels == [jtcse.UNTRAINED_POOLER]
        drawn.append([member.backbone.pooler.dense.weight.clone() for member in encoder.members])
        loss_of(jtcse.Objective(config(), encoder, parts[2]), 1).backward()
        assert all(b.pooler.dense.weight.grad.abs().max() > 0 for b in backbones)
    assert all(torch.equal(one, other) for one, other in zip(*drawn, strict=True))
    weights = drawn[0][missing[0]]
    assert abs(weights.std() - 0.02) < 0.002  # initializer_range
    assert len(missing) == 1 or not torch.equal(*drawn[0])


def test_a_pooler_whose_bias_is_zero_was_never_trained(parts):
    """all-MiniLM's."""
    backbones = two_of(parts)
    torch.nn.init.zeros_(backbones[1].pooler.dense.bias)
    assert jtcse.build(config(), parts[1], *backbones).labels == [jtcse.UNTRAINED_POOLER]
    for changes in ({"modulus_of": "cls"}, {"terms": ["nce", "icnce"]}):
        backbones[0].pooler = None  # nothing reads it
        assert jtcse.build(config(**changes), parts[1], *backbones).labels == []
        assert backbones[0].pooler is None
