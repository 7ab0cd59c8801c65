import math

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from tests.support.toys import sentences
from workflow_scripts.extraction.representations import without_ids
from workflow_scripts.extraction.vocabulary import Counts, count_documents, read_vocabulary
from workflow_scripts.extraction.weighting import idf, weigh, weight_tables
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.settings.extraction import Idf, MaskAverage, Unbiased, Uniform

AVERAGE = Uniform(kind="uniform", label="x", specials=True, masks=True)


def idf_of(**changes):
    settings = {
        "kind": "idf",
        "label": "x",
        "documents": "task",
        "document_text": "raw",
        "formula": "documents",
        "unseen": "max",
        "repeated": "once",
    }
    return Idf(**settings | changes)


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return load_tokenizer(tiny_bert)


@pytest.fixture(scope="module")
def vocabulary(tokenizer):
    return read_vocabulary(tokenizer, frequent=["the", "a", "absent"], punctuation=[".", ","])


def weights_of(text, tables):
    return weigh(text, tables, np.zeros(len(text), np.int64))


def per_text(text, weights):
    return np.split(weights.weights_F, text.starts[1:-1])


def test_idf_has_its_worked_values():
    """O-71"""
    counts = Counts(1000, 20_000, np.array([1000, 1, 10, 0]))
    np.testing.assert_allclose(idf(counts, idf_of()), [0, 6.9077553, 4.6051702, 6.9077553], atol=1e-7)
    np.testing.assert_allclose(idf(counts, idf_of(unseen="zero"))[3], 0)
    np.testing.assert_allclose(idf(counts, idf_of(formula="tokens"))[1], math.log(20_000))


@pytest.mark.parametrize(
    ("times", "expected"),
    [(None, (3, 4 + 5 + 4, [2, 2, 1, 1, 0])), (np.array([2, 1, 4]), (7, 2 * 4 + 5 + 4 * 4, [3, 6, 1, 4, 0]))],
)
def test_a_repeated_text_is_one_document_or_so_many(tokenizer, times, expected):
    """O-75, counted by hand: three texts, of which the first occurs twice and the last four times."""
    text = tokenise(tokenizer, ["the town", "the king the", "a town"], 32)
    ids = tokenizer.convert_tokens_to_ids(["the", "town", "king", "a", "river"])
    found = count_documents(text, len(tokenizer), times)
    assert (found.documents, found.tokens, found.documents_V[ids].tolist()) == expected


@pytest.mark.parametrize(("documents", "used"), [("wikitext", [0]), ("task", [1]), ("subset", [1, 2])])
def test_idf_is_of_the_documents_that_are_asked_for(vocabulary, documents, used):
    """With Wikitext's counts at hand for other weightings."""
    size = len(vocabulary.tokens)
    counted = [Counts(10 * (part + 2), 99, np.arange(1, size + 1) % 7 + part) for part in range(3)]
    settings = idf_of(documents=documents)
    tables = weight_tables(settings, vocabulary, counted[0], [counted[part] for part in used])
    expected = [np.log(10 * (part + 2) / np.maximum(np.arange(1, size + 1) % 7 + part, 1)) for part in used]
    np.testing.assert_allclose(tables, expected)


def test_a_text_is_weighed_by_the_table_of_its_own_group(tokenizer):
    text = tokenise(tokenizer, ["the town", "the town"], 32)
    tables = np.ones((2, len(tokenizer)))
    tables[1, tokenizer.convert_tokens_to_ids("town")] = 7
    second, first = per_text(text, weigh(text, tables, np.array([1, 0])))
    np.testing.assert_allclose(second, [0.1, 0.1, 0.7, 0.1], rtol=1e-6)
    np.testing.assert_allclose(first, [0.25] * 4, rtol=1e-6)


def test_weights_of_a_text_sum_to_one(tokenizer, vocabulary):
    """O-71; the base of the logarithm cancels too."""
    text = tokenise(tokenizer, sentences(20), 32)
    equal = weights_of(text, np.full((1, len(vocabulary.tokens)), 3.7))
    average = weights_of(text, weight_tables(AVERAGE, vocabulary, None, []))
    np.testing.assert_allclose(equal.weights_F, average.weights_F, rtol=1e-6)
    table = weight_tables(idf_of(), vocabulary, None, [count_documents(text, len(vocabulary.tokens))])
    one, other = weights_of(text, table), weights_of(text, table / math.log(10))
    np.testing.assert_allclose(one.weights_F, other.weights_F, rtol=1e-6)
    np.testing.assert_allclose([part.sum() for part in per_text(text, one)], 1, rtol=1e-6)
    assert all(
        part[0] == part[-1] == 0 for part in per_text(text, one)
    )  # O-72: [CLS] and [SEP] are in every text


def test_a_text_without_weighted_tokens_is_averaged(tokenizer, vocabulary):
    """F6"""
    text = tokenise(tokenizer, ["the. a,", "the river"], 32)
    settings = Unbiased(kind="unbiased", label="x")
    weights = weights_of(text, weight_tables(settings, vocabulary, None, []))
    assert weights.fallbacks == 1
    first, second = per_text(text, weights)
    np.testing.assert_allclose(first, 1 / 6)
    assert second.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("drop", "expected"),
    [
        (["frequent"], [1, 0, 1, 1, 1, 1]),
        (["subword"], [1, 1, 1, 0, 1, 1]),
        (["punctuation"], [1, 1, 1, 1, 0, 1]),
        (["frequent", "subword", "punctuation"], [1, 0, 1, 0, 0, 1]),
        (["frequent", "subword", "punctuation", "special"], [0, 0, 1, 0, 0, 0]),
    ],
)
def test_one_kind_of_tokens_is_left_out_or_several(tokenizer, vocabulary, drop, expected):
    """Section 3.3: [CLS] the river ##s . [SEP]"""
    text = tokenise(tokenizer, ["the rivers."], 32)
    assert [vocabulary.tokens[number] for number in text.ids] == [
        "[CLS]",
        "the",
        "river",
        "##s",
        ".",
        "[SEP]",
    ]
    weights = weights_of(
        text, weight_tables(Unbiased(kind="unbiased", label="x", drop=drop), vocabulary, None, [])
    )
    np.testing.assert_allclose(weights.weights_F, np.array(expected) / sum(expected), rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (MaskAverage(kind="masks", label="x"), [0, 0, 0.5, 0, 0.5, 0]),
        (Uniform(kind="uniform", label="x", specials=True, masks=False), [0.25, 0.25, 0, 0.25, 0, 0.25]),
        (Uniform(kind="uniform", label="x", specials=False, masks=False), [0, 0.5, 0, 0.5, 0, 0]),
    ],
)
def test_masks_and_specials_count_where_the_variant_says_so(tokenizer, vocabulary, settings, expected):
    text = tokenise(tokenizer, ["river [MASK] town [MASK]"], 32)
    found = weights_of(text, weight_tables(settings, vocabulary, None, []))
    assert found.weights_F.tolist() == expected


def test_bert_and_roberta_tell_subwords_by_their_own_marks(vocabulary):
    names = [vocabulary.tokens[number] for number in vocabulary.biased["subword"]]
    assert names
    assert all(name.startswith("##") for name in names)
    byte_level = models.WordLevel(
        {"<unk>": 0, "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}river": 1, "side": 2}, "<unk>"
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(byte_level), unk_token="<unk>")
    assert read_vocabulary(tokenizer, [], []).biased["subword"] == [2]


def test_tokens_are_taken_out_of_the_text_itself(tokenizer, vocabulary):
    """[CLS] the river ##s . [SEP] without frequent tokens, subwords and punctuation; a text of nothing else stays."""
    text = tokenise(tokenizer, ["the rivers.", "river"], 32)
    removed = [
        number for kind in ("frequent", "subword", "punctuation") for number in vocabulary.biased[kind]
    ]
    left = without_ids(text, removed)
    names = [[vocabulary.tokens[number] for number in left.subset(np.array([row])).ids] for row in (0, 1)]
    assert names == [["[CLS]", "river", "[SEP]"]] * 2
    everything = sorted({*text.ids.tolist()})
    assert without_ids(text, everything).ids.tolist() == text.ids.tolist()
    assert without_ids(text, []) is text
