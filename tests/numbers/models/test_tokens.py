import pytest
import torch

from tests.support import toys
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.tokens import tokenise

TEXTS = ["the old town.", "a river in the north of the city", "x", ""]


@pytest.mark.parametrize("kind", toys.KINDS)
def test_ids_are_the_tokenisers_own_and_padding_is_its_padding(tiny_models, kind):
    tokenizer = load_tokenizer(tiny_models[kind])
    text = tokenise(tokenizer, TEXTS, 32)
    batch = text.batch([2, 0, 1])
    padded = tokenizer([TEXTS[row] for row in (2, 0, 1)], padding=True, return_tensors="pt")
    assert torch.equal(batch.ids_BT, padded.input_ids)
    assert torch.equal(batch.mask_BT, padded.attention_mask)
    assert batch.ids_BT[0, -1] == tokenizer.pad_token_id


def test_a_sentence_is_cut_with_its_special_tokens_counted(tiny_bert):
    tokenizer = load_tokenizer(tiny_bert)
    text = tokenise(tokenizer, TEXTS, 5)
    assert text.lengths.tolist() == [5, 5, 3, 2]
    ids = text.batch([1]).ids_BT[0].tolist()
    assert [tokenizer.decode([number]) for number in ids] == ["[CLS]", "a", "river", "in", "[SEP]"]


def test_padding_saved_with_a_tokeniser_does_not_reach_ids(tiny_bert, tmp_path):
    """all-MiniLM-L6-v2 is published with padding to 128 tokens and truncation there."""
    tokenizer = load_tokenizer(tiny_bert)
    tokenizer.backend_tokenizer.enable_padding(length=20)
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.save_pretrained(tmp_path)
    assert tokenise(load_tokenizer(tmp_path), TEXTS, 32).lengths.tolist() == [6, 10, 3, 2]
