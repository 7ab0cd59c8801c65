import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.support.toys import DEPTH
from workflow_scripts.errors import DataError
from workflow_scripts.extraction.averages import TokenSums, sum_states
from workflow_scripts.extraction.representations import EncoderVectors, Key, input_table, mixed, tables_of
from workflow_scripts.extraction.weighting import weigh
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise

BLOCK = 8


@pytest.fixture(scope="module")
def backbone(tiny_bert):
    return load_backbone(tiny_bert)


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return load_tokenizer(tiny_bert)


def averages(backbone, tokenizer, texts):
    sums = sum_states(backbone, tokenise(tokenizer, texts, 32), BLOCK, "float32")
    return pa.concat_tables(sums.means())


def test_a_rare_token_has_its_vector_and_an_unseen_one_the_mean(backbone, tokenizer):
    """O-74 and F4."""
    text = tokenise(tokenizer, ["The old river"], 32).batch([0])
    with torch.no_grad():
        states = backbone(input_ids=text.ids_BT, output_hidden_states=True).hidden_states
    ids = text.ids_BT[0].tolist()
    tables, seen = tables_of(averages(backbone, tokenizer, ["The old river"]), len(tokenizer))
    assert len(tables) == DEPTH + 1
    for layer, table in zip(states, tables, strict=True):
        np.testing.assert_allclose(table[ids], layer[0], atol=1e-6)
        np.testing.assert_allclose(table[~seen] - table[seen].mean(axis=0), 0, atol=1e-6)
    assert sorted(np.flatnonzero(seen)) == sorted(ids)


def test_only_averages_lack_tokens_not_the_input_table(backbone, tokenizer):
    """The note counts tokens without an average; every token has a row in the table of input embeddings."""
    table = averages(backbone, tokenizer, ["The old river"])
    text = tokenise(tokenizer, ["the new river"], 32)
    weights = {"avg": weigh(text, np.ones((1, len(tokenizer))), np.zeros(1, np.int64))}
    vectors = EncoderVectors(backbone, tokenizer, None, table, "float32")
    made = list(vectors.make(text, weights, [Key(1, 0, layers, "avg") for layers in ("1", "static")]))
    assert [one.note for one in made] == ["1 of 5 tokens have no static average: mean vector", ""]
    np.testing.assert_allclose(made[1].vectors_UD[0], input_table(backbone)[text.ids].mean(axis=0), atol=1e-6)


def test_tokens_of_a_corpus_are_counted_by_hand(backbone, tokenizer):
    """O-75, of two sentences: [CLS] the river is the road [SEP], [CLS] the THE [SEP]."""
    texts = ["The river is the road", "the THE"]
    table = averages(backbone, tokenizer, texts).to_pylist()
    counts = {tokenizer.convert_ids_to_tokens(row["token_id"]): row["count"] for row in table}
    assert counts == {"[CLS]": 2, "[SEP]": 2, "the": 4, "river": 1, "is": 1, "road": 1}


def test_means_do_not_depend_on_the_order_of_addition():
    """Rounding of a sum loses part, none or all of the last token's state, depending on the order."""
    draw = np.random.default_rng(0)
    states = torch.from_numpy(draw.normal(scale=3, size=(20_000, 4)).astype(np.float32))
    states = torch.cat([states, torch.tensor([[2.0**27], [1.25 * 2.0**-26], [-(2.0**27)]]).expand(3, 4)])
    ids = torch.from_numpy(np.concatenate([draw.integers(3, size=20_000), [3, 3, 3]]))
    forwards, backwards = (TokenSums(1, 4, 4, torch.device("cpu")) for _ in range(2))
    forwards.add(ids, [states])
    for part in torch.arange(len(ids)).flip(0).split(7):
        backwards.add(ids[part], [states[part]])
    (found,), (again,) = forwards.means(), backwards.means()
    assert found.equals(again)
    naive = [states[ids == number].double().mean(dim=0).numpy() for number in range(3)]
    np.testing.assert_allclose(np.stack(found["vector"].to_numpy())[:3], naive, atol=1e-6)


def test_a_sum_that_might_have_been_rounded_stops():
    sums = TokenSums(1, 1, 3, torch.device("cpu"))
    sums.add(torch.tensor([0]), [torch.full((1, 3), 2.0**29)])
    with pytest.raises(DataError, match="exact only below"):
        list(sums.means())


@pytest.mark.parametrize(
    ("mixing_weight", "expected"),
    [(0, [2, 4]), (1, [6, 0]), (0.5, [4, 2]), (-0.5, [1.5 * 2 - 0.5 * 6, 1.5 * 4])],
)
def test_bert_and_its_averages_are_mixed_by_equation_ten(mixing_weight, expected):
    """O-73"""
    assert mixed(np.float32([[2, 4]]), np.float32([[6, 0]]), mixing_weight).tolist() == [expected]
