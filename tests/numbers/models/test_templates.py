import pytest
from tokenizers import processors

from tests.support import toys
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.templates import PLAIN, pieces, tokenise_in
from workflow_scripts.settings.names import Template


@pytest.mark.parametrize("text", ["no place", "[X] and [X]"])
def test_a_template_has_one_place_for_the_sentence(text):
    with pytest.raises(ConfigError, match=r"the place of the sentence, \[X\], occurs . times"):
        Template.parse({"text": text, "add_period": False}, "template")


def test_without_a_template_sentences_are_tokenised_as_they_are(tiny_bert):
    tokenizer = load_tokenizer(tiny_bert)
    plain = tokenise_in(None, tokenizer, ["the town"], 8).batch([0]).ids_BT
    assert plain.tolist() == tokenise_in(PLAIN, tokenizer, ["the town"], 8).batch([0]).ids_BT.tolist()
    before, after = pieces(Template(text="the [X] [MASK]", add_period=False), tokenizer)
    filled = tokenise_in(Template(text="the [X] [MASK]", add_period=False), tokenizer, ["town"], 8)
    inside = tokenizer("town", add_special_tokens=False)["input_ids"]
    assert filled.batch([0]).ids_BT[0].tolist() == before + inside + after


@pytest.mark.parametrize("single", ["$A", "[CLS] $A", "$A [SEP]", "[CLS] $A [SEP]"])
def test_a_prompt_goes_around_a_sentence_with_any_tokeniser(single):
    """Decoders' tokenisers add one special token, before or after, or none; the sentence alone is cut."""
    tokenizer = toys.make_tokenizer("bert")
    added = [
        (token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[SEP]") if token in single
    ]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=added
    )
    template = Template(text="the [X] town", add_period=False)
    before, after = pieces(template, tokenizer)
    assert tokenizer.convert_ids_to_tokens([*before, *after]) == single.replace("$A", "the town").split()
    filled = (
        tokenise_in(template, tokenizer, ["river road field"], 2 + len(added)).batch([0]).ids_BT[0].tolist()
    )
    assert filled == [*before, *tokenizer("river road", add_special_tokens=False)["input_ids"], *after]


def test_a_sentence_without_tokens_is_named(tiny_bert):
    tokenizer = load_tokenizer(tiny_bert)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    found = "sentence 2 of 3: '' has no token. Remove it from the data"
    with pytest.raises(DataError, match=found):
        tokenise_in(None, tokenizer, ["the town", "", "a river"], 8)
