import pytest
import torch

from tests.support import toys
from tests.support.steps_by_hand import loss_of, views_of
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.methods import promptbert
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode_sentences
from workflow_scripts.models.templates import fill, pieces
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.sampler import Sampler

TEXTS = toys.sentences(20)
SAMPLER = Sampler(len(TEXTS), 5, 3)
ROWS = SAMPLER.rows_of(1)
BLOCK = {
    "module": "promptbert",
    "readout": {"kind": "mask_token"},
    "head_at_test": False,
    "temperature": 0.05,
    "dropout": 0.0,
    "templates": [
        {"text": 'The word of "[X]" is [MASK].', "add_period": False},
        {"text": 'The old book : "[X]" is [MASK].', "add_period": False},
    ],
    "test_template": {"text": 'The word of "[X]" is [MASK].', "add_period": True},
    "truncate": "sentence",
    "bias_positions": "own",
    "select_checkpoint_with": "denoised",
}


def make(folder, **changes):
    config = promptbert.Config.parse(BLOCK | changes, "methods")
    torch.manual_seed(0)
    tokenizer = load_tokenizer(folder)
    encoder = promptbert.build(config, tokenizer, load_backbone(folder, **config.overrides)).train()
    data = TrainingData({"anchor": TEXTS}, tokenizer, 24, SAMPLER)
    return promptbert.Objective(config, encoder, data), tokenizer, config


def at_mask(encoder, tokenizer, text):
    """The last state of [MASK], one text on its own."""
    tokens = tokenizer(text, return_tensors="pt")
    states = encoder.backbone(
        **{key: tokens[key] for key in ("input_ids", "attention_mask")}
    ).last_hidden_state
    return states[tokens.input_ids == tokenizer.mask_token_id]


def bias_of(encoder, tokenizer, sides, room, first=0):
    """The last state of [MASK] in a template alone, its words where they stand around ``room`` tokens."""
    before, after = sides
    ids = torch.tensor([[*before, *after]])
    places = torch.arange(ids.shape[1]) + first
    places[len(before) :] += room
    states = encoder.backbone(input_ids=ids, position_ids=places[None]).last_hidden_state
    (bias,) = states[ids == tokenizer.mask_token_id]
    return bias


def tokens_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("kind", toys.KINDS)
def test_the_two_views_are_the_states_of_mask_in_two_templates(tiny_models, kind):
    objective, tokenizer, config = make(tiny_models[kind])
    views = []
    for template in config.templates:
        texts = [fill(template, TEXTS[row], tokenizer.mask_token) for row in ROWS]
        views.append(torch.cat([at_mask(objective.module, tokenizer, text) for text in texts]))
    chunks, _ = objective.inputs(1)
    torch.testing.assert_close(objective.read(chunks), torch.cat(views), rtol=1e-4, atol=1e-4)
    expected = infonce(*objective.module.head(views_of(objective, 1)), 0.05)
    torch.testing.assert_close(loss_of(objective, 1), expected)


def biases_of(encoder, bias, mask_BT):
    bare = bias.at(*promptbert.distinct(bias.room(mask_BT.sum(dim=1)), 1))
    return promptbert.bias_of(encoder, bare)


@pytest.mark.parametrize("kind", toys.KINDS)
@pytest.mark.parametrize("positions", ["own", "zero"])
def test_the_bias_is_the_template_with_words_in_their_places(tiny_models, kind, positions):
    """One sentence at a time: the same words at positions that leave room for it; the code's begin at 0."""
    objective, tokenizer, config = make(tiny_models[kind], bias_positions=positions)
    mask_BT, _ = objective.batch(1).mask_BT.chunk(2)
    sides = pieces(config.templates[0], tokenizer)
    bias = promptbert.Bias(objective.encoder, sides, config)
    biases = biases_of(objective.encoder, bias, mask_BT)
    first = 2 if kind in ("roberta", "mpnet") and positions == "own" else 0
    assert len({int(length) for length in mask_BT.sum(dim=1)}) > 1
    for row in range(3):
        room = len(tokens_of(tokenizer, TEXTS[ROWS[row]]))
        expected = bias_of(objective.module, tokenizer, sides, room, first)
        torch.testing.assert_close(biases[row], expected, atol=1e-5, rtol=1e-4)


def test_each_view_loses_the_bias_of_its_own_template(tiny_bert):
    """Section 3.3; the two templates have other words, of another number, and so other biases, read in one pass."""
    objective, tokenizer, config = make(tiny_bert)
    chunks, bare = objective.inputs(1)
    assert len(bare) == 1
    assert (bare[0].batch.mask_BT == 0).any()
    lost = torch.stack(objective.read(chunks).chunk(2)) - views_of(objective, 1)
    for number, template in enumerate(config.templates):
        for place, row in enumerate(ROWS):
            room = len(tokens_of(tokenizer, TEXTS[row]))
            bias = bias_of(objective.module, tokenizer, pieces(template, tokenizer), room)
            torch.testing.assert_close(lost[number, place], bias, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(lost[0], lost[1], atol=1e-2)


@pytest.mark.parametrize(("truncate", "kept"), [("sentence", 6), ("with_specials", 4)])
def test_a_training_sentence_is_cut_to_tokens_of_its_own(tiny_bert, truncate, kept):
    """The code takes the first max_tokens without [CLS] and [SEP], and puts the template around them."""
    objective, tokenizer, config = make(tiny_bert, truncate=truncate)
    texts = objective.texts(config, TrainingData({"anchor": TEXTS}, tokenizer, 6, SAMPLER))
    cut_ones = 0
    for number, template in enumerate(config.templates):
        before, after = pieces(template, tokenizer)
        for row, text in enumerate(TEXTS):
            own = tokens_of(tokenizer, text)
            (found,) = texts[number].batch([row]).ids_BT.tolist()
            assert found == before + own[:kept] + after
            cut_ones += len(own) > kept
    assert cut_ones > 10


@pytest.mark.parametrize("kind", toys.KINDS)
def test_checkpoints_are_scored_in_the_first_template(tiny_models, kind):
    """Checkpoints are scored in the first template without bias, full stop and head."""
    objective, tokenizer, config = make(tiny_models[kind])
    texts = ["the old town", "a river of stone"]
    scored = objective.scored
    found = torch.from_numpy(encode_sentences(scored, texts, 24))
    sides = pieces(config.templates[0], tokenizer)
    encoder = objective.module.eval()
    for vector, text in zip(found, texts, strict=True):
        first = 2 if kind in ("roberta", "mpnet") else 0
        bias = bias_of(encoder, tokenizer, sides, len(tokens_of(tokenizer, text)), first)
        plain = at_mask(encoder, tokenizer, f'The word of "{text}" is {tokenizer.mask_token}.')[0]
        torch.testing.assert_close(vector, plain - bias, atol=1e-5, rtol=1e-4)
    assert make(tiny_models[kind], select_checkpoint_with="test")[0].scored is None


def test_at_test_no_bias_and_no_head_is_left(tiny_bert):
    """At test, neither bias nor head is left and a full stop is added."""
    objective, tokenizer, config = make(tiny_bert)
    encoder = objective.module.eval()
    texts = ["the old town", "a river."]
    found = torch.from_numpy(encoder.encode(texts, 24))
    assert encoder.template == config.test_template
    expected = ['The word of "the old town." is [MASK].', 'The word of "a river." is [MASK].']
    with torch.inference_mode():
        for vector, text in zip(found, expected, strict=True):
            torch.testing.assert_close(vector, at_mask(encoder, tokenizer, text)[0], atol=1e-5, rtol=1e-4)
