import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from benchmarks import material
from workflow_scripts.columns import ATTENTION
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.attention import attention_maps, cls_energy, energy
from workflow_scripts.settings.suites import Energy, StoredMaps

FOLDER = material.minilm()
SENTENCES = ["A short one.", "This is an example sentence for visualizing attention scores."]


@pytest.fixture(scope="module")
def minilm():
    return [AutoModel.from_pretrained(FOLDER)], AutoTokenizer.from_pretrained(FOLDER)


def settings(batch_size, max_sentences=10):
    return Energy(dataset="wiki", max_sentences=max_sentences, max_tokens=64, batch_size=batch_size)


@pytest.mark.parametrize(("tokens", "padding", "expected"), [(2, 0, 1), (17, 0, 0.25), (5, 3, 0.5)])
def test_equal_token_vectors_have_the_energy_worked_by_hand(tokens, padding, expected):
    """O-51; padding has no energy."""
    context = torch.cat([torch.ones(1, tokens, 8), torch.full((1, padding, 8), 9.0)], dim=1)
    assert energy(context, context[:, :, 0] == 1).item() == pytest.approx(expected)


def test_energy_is_of_the_weighted_values(minilm):
    """Energy is of the weighted values, not of the hidden states."""
    (model,), tokenizer = minilm
    tokens = tokenizer(SENTENCES[1], return_tensors="pt")
    with torch.no_grad():
        states = model(**tokens, output_hidden_states=True).hidden_states
        layer = model.encoder.layer[2].attention.self
        context, _ = layer(states[2])
    squares = context[0].double().square().sum(dim=-1)
    expected = (squares[0] / squares[1:].sum()).sqrt().item()
    scores = cls_energy([model], tokenizer, SENTENCES[1:], settings(4))
    by_layer = {score.aggregation: score.value for score in scores}
    assert by_layer["layer:3"] == pytest.approx(expected, rel=1e-5)


def test_energy_has_a_score_per_layer_and_their_mean(minilm):
    """Energy has a score per layer and their mean whatever the batch."""
    alone, together = (cls_energy(*minilm, SENTENCES, settings(size)) for size in (1, 2))
    assert [score.aggregation for score in alone] == [*(f"layer:{layer}" for layer in range(1, 7)), "mean"]
    assert [score.value for score in alone] == pytest.approx([score.value for score in together], rel=1e-4)
    assert alone[-1].value == pytest.approx(sum(score.value for score in alone[:-1]) / 6)
    assert alone[0].n == 2
    cut = cls_energy(*minilm, SENTENCES, settings(2, max_sentences=1))
    assert cut == cls_energy(*minilm, SENTENCES[:1], settings(2))


def test_energy_is_that_of_cls_whatever_side_is_padded(minilm):
    models, tokenizer = minilm
    left = AutoTokenizer.from_pretrained(FOLDER, padding_side="left")
    assert cls_energy(models, left, SENTENCES, settings(2)) == cls_energy(
        models, tokenizer, SENTENCES, settings(2)
    )


def test_a_model_without_such_layers_is_refused(minilm):
    with pytest.raises(DataError, match="BERT family"):
        cls_energy([torch.nn.Linear(2, 2)], minilm[1], SENTENCES, settings(2))


def test_maps_name_the_tokens_and_equal_the_models_attention(minilm):
    """Heads of an ensemble's second encoder follow those of its first."""
    models, tokenizer = minilm
    table = attention_maps(
        2 * models, tokenizer, StoredMaps(sentences=SENTENCES, layers=[1, 6], max_tokens=64)
    )
    assert table.schema == ATTENTION
    lengths = [len(tokenizer(sentence)["input_ids"]) for sentence in SENTENCES]
    assert len(table) == sum(2 * 24 * length**2 for length in lengths)
    place = {"sentence": SENTENCES[0], "layer": 6, "query_position": 1, "key_position": 4}
    row, again = [row for row in table.to_pylist() if place.items() <= row.items() and row["head"] in (3, 15)]
    assert (row["query_token"], row["key_token"]) == ("a", ".")
    assert again == row | {"head": 15}
    eager = AutoModel.from_pretrained(FOLDER, attn_implementation="eager")
    weights = eager(**tokenizer(SENTENCES[0], return_tensors="pt"), output_attentions=True).attentions[5]
    assert row["weight"] == pytest.approx(weights[0, 3, 1, 4].item(), rel=1e-6)


def test_a_layer_that_does_not_exist_is_named(minilm):
    with pytest.raises(ConfigError, match=r"no layer 7\. Choose from: 1 to 6"):
        attention_maps(*minilm, StoredMaps(sentences=SENTENCES, layers=[7], max_tokens=64))
