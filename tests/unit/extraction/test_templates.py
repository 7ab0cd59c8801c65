import pytest
import yaml

from tests.planning import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import load_tokenizer
from workflow_scripts.models.templates import PLAIN, Template, cut, fill

TEMPLATES = {
    name: Template.model_validate(block)
    for name, block in yaml.safe_load((ROOT / "config/extraction.yaml").read_text())["extraction"][
        "templates"
    ].items()
}
SENTENCE = "The river is old"


def test_the_papers_templates_have_its_number_of_masks():
    """O-88"""
    assert [TEMPLATES[name].masks for name in ("t0", "t1", "t2", "t3", "t4")] == [1, 2, 3, 2, 3]


def test_a_template_of_empty_strings_and_one_mask_is_t0s_path():
    """O-88: what T4 does with a sentence is what T0 does, but for its bytes."""
    assert fill(Template(text="[X][MASK]", add_period=False), SENTENCE, "[MASK]") == f"{SENTENCE}[MASK]"
    assert fill(TEMPLATES["t0"], SENTENCE, "[MASK]") == f'This sentence: "{SENTENCE}" means [MASK].'
    assert fill(PLAIN, SENTENCE, None) == SENTENCE


@pytest.mark.parametrize(
    ("sentence", "end"),
    [("Go", "Go."), ("Go.", "Go."), ("Go?", "Go?"), ('"Go"', '"Go"'), ("Go!", "Go!."), ("", "")],
)
def test_promptbert_ends_a_sentence_that_has_no_end(sentence, end):
    assert fill(TEMPLATES["promptbert"], sentence, "<mask>") == f'This sentence : "{end}" means <mask>.'


def test_a_sentence_that_names_a_placeholder_is_left_as_it_is():
    assert (
        fill(TEMPLATES["t0"], "say [MASK] or [X]", "<mask>")
        == 'This sentence: "say [MASK] or [X]" means <mask>.'
    )


def test_a_mask_needs_a_tokeniser_that_has_one():
    with pytest.raises(ConfigError, match="has no mask"):
        fill(TEMPLATES["t0"], SENTENCE, None)


def test_long_sentences_are_cut_to_text_whose_tokens_fit(tiny_bert):
    tokenizer = load_tokenizer(tiny_bert)
    long = "The old river, the new town and a small church."
    kept = cut(tokenizer, [long, "a king", ""], 8)
    assert kept[1:] == ["a king", ""]
    assert kept[0] == "The old river, the new"
    assert tokenizer(kept[0])["input_ids"] == tokenizer(long, truncation=True, max_length=8)["input_ids"]
