import numpy as np
import pytest
import torch
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from tests.support import toys
from tests.support.snakemake_plans import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.extraction.representations import EncoderVectors, Key
from workflow_scripts.extraction.study import marks_of
from workflow_scripts.extraction.vocabulary import read_vocabulary
from workflow_scripts.extraction.weighting import weigh, weight_tables
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.templates import cut, fill
from workflow_scripts.settings.extraction import MaskAverage, Uniform
from workflow_scripts.settings.names import Template

TEMPLATES = {
    name: Template.model_validate(block)
    for name, block in yaml.safe_load((ROOT / "config/extraction.yaml").read_text())["extraction"][
        "templates"
    ].items()
}
SENTENCE = "The river is old"


@pytest.mark.parametrize(
    ("sentence", "plain", "stopped"),
    [
        ("A man is playing", "A man is playing", "A man is playing."),
        ("Really?", "Really?", "Really?"),
        ("It rains.", "It rains.", "It rains."),
        ('He said "no"', 'He said "no"', 'He said "no"'),
        ("a dog ,", "a dog ,", "a dog ,."),
        ("", "", ""),
    ],
)
def test_prompts_have_the_bytes_of_their_papers(sentence, plain, stopped):
    """O-09: PromptBERT's blank and full stop, which the study of extraction has not; five points of STS lie between."""
    assert fill(TEMPLATES["t0"], sentence, "[MASK]") == f'This sentence: "{plain}" means [MASK].'
    assert fill(TEMPLATES["promptbert"], sentence, "[MASK]") == f'This sentence : "{stopped}" means [MASK].'
    t4 = f'This sentence from the dictionary: "{plain}" means "[MASK]" and is about [MASK], which is a synonym for [MASK].'
    assert fill(TEMPLATES["t4"], sentence, "[MASK]") == t4


@pytest.mark.parametrize(
    ("template", "masks"),
    [
        (TEMPLATES["t0"], 1),
        (TEMPLATES["t1"], 2),
        (TEMPLATES["t2"], 3),
        (TEMPLATES["t3"], 2),
        (TEMPLATES["t4"], 3),
        (Template(text="[X][MASK]", add_period=False), 1),  # T4 without its words, and one mask
    ],
    ids=["t0", "t1", "t2", "t3", "t4", "mask alone"],
)
def test_a_prompted_sentence_is_the_mean_of_its_masks(tmp_path, template, masks):
    """O-88: all templates take one path, whatever their words and number of masks."""
    folder = toys.write_model(tmp_path / "bert", "bert", max_position_embeddings=256)
    backbone, tokenizer = load_backbone(folder), load_tokenizer(folder)
    texts = toys.sentences(4)
    representation = EncoderVectors(backbone, tokenizer, template, None, "float32")
    text = representation.tokens(texts, 32).filled
    tables = weight_tables(MaskAverage(kind="masks", label="x"), read_vocabulary(tokenizer, [], []), None, [])
    weights = {"masks": weigh(text, tables, np.zeros(len(text), np.int64))}
    (made,) = representation.make(text, weights, [Key(0.0, 0, "last", "masks")])
    assert made.note == ""
    for text, vector in zip(texts, made.vectors_UD, strict=True):
        tokens = tokenizer(template.text.replace("[X]", text), return_tensors="pt")
        with torch.no_grad():
            states = backbone(**tokens).last_hidden_state[0]
        at_masks = states[tokens.input_ids[0] == tokenizer.mask_token_id]
        assert len(at_masks) == masks
        np.testing.assert_allclose(vector, at_masks.mean(dim=0).numpy(), atol=1e-5)


def test_a_sentence_that_names_a_placeholder_is_left_as_it_is():
    assert (
        fill(TEMPLATES["t0"], "say [MASK] or [X]", "<mask>")
        == 'This sentence: "say [MASK] or [X]" means <mask>.'
    )


def test_a_mask_needs_a_tokeniser_that_has_one():
    with pytest.raises(ConfigError, match="has no mask"):
        fill(TEMPLATES["t0"], SENTENCE, None)


def test_a_mask_stays_where_a_cut_goes_through_a_character(byte_level):
    """Bytes that are left of a character are one sign of three bytes in the text that was cut."""
    text = "the old river \U0001f600\U0001f600\U0001f600"
    representation = EncoderVectors(torch.nn.Identity(), byte_level, TEMPLATES["t0"], None, "float32")
    limits = range(5, len(byte_level(text).input_ids))
    grown = [m for m in limits if len(byte_level(cut(byte_level, [text], m)[0]).input_ids) > m]
    assert grown
    for limit in limits:
        assert byte_level.mask_token_id in representation.tokens([text], limit).filled.ids.tolist()


@pytest.fixture
def byte_level():
    """A tokeniser whose vocabulary is hardly more than single bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = ["<s>", "<pad>", "</s>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=names, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([SENTENCE] * 5, trainer)
    ends = [(name, names.index(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def test_long_sentences_are_cut_to_text_whose_tokens_fit(tiny_bert):
    tokenizer = load_tokenizer(tiny_bert)
    long = "The old river, the new town and a small church."
    kept = cut(tokenizer, [long, "a king", ""], 8)
    assert kept[1:] == ["a king", ""]
    assert kept[0] == "The old river, the new"
    assert tokenizer(kept[0])["input_ids"] == tokenizer(long, truncation=True, max_length=8)["input_ids"]


@pytest.mark.parametrize(
    ("weighting", "read"),
    [
        (MaskAverage(kind="masks", label="x"), ["[MASK]", "[MASK]"]),
        (Uniform(kind="uniform", label="x", specials=False, masks=False), ["the", "[MASK]", "and", "[SEP]", "of", "means", "and"]),
        (Uniform(kind="uniform", label="x", specials=True, masks=False), ["[CLS]", "the", "[MASK]", "and", "[SEP]", "of", "means", "and", "[SEP]"]),
    ],
    ids=["masks", "words", "words and specials"],
)  # fmt: skip
def test_marks_inside_a_text_are_words_like_others(tmp_path, weighting, read):
    folder = toys.write_model(tmp_path / "bert", "bert")
    backbone, tokenizer = load_backbone(folder), load_tokenizer(folder)
    template = Template(text="[X] means [MASK] and [MASK]", add_period=False)
    text = (
        EncoderVectors(backbone, tokenizer, template, None, "float32")
        .tokens(["the [MASK] and [SEP] of"], 32)
        .filled
    )
    tokens = tokenizer.convert_ids_to_tokens(text.ids.tolist())
    tables = weight_tables(weighting, read_vocabulary(tokenizer, [], []), None, [])
    weights = weigh(text, tables, np.zeros(1, np.int64), weighting, marks_of(tokenizer, template)).weights_F
    letters = [token for token in tokens if token in ("m", *(f"##{letter}" for letter in "eans"))]
    expected = [part for word in read for part in (letters if word == "means" else [word])]
    assert [token for token, weight in zip(tokens, weights, strict=True) if weight] == expected
    np.testing.assert_allclose(weights[weights > 0], 1 / len(expected), rtol=1e-6)
    own = tokens.index("[MASK]")
    assert (weights[own] == 0) == isinstance(weighting, MaskAverage)
