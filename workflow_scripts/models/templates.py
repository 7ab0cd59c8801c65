"""Sentences inside a prompt. The bytes of every template are data in the configuration.

``[X]`` is where the sentence goes and ``[MASK]`` becomes the tokeniser's own mask. PromptBERT (Jiang et al.
2022) writes a blank before its colon and appends a full stop to a sentence that ends in none of . ? " ' (its
evaluation.py); other studies do neither. That changes STS by points (Prompt-BERT issue 22), so both are part
of a template.
"""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from workflow_scripts.errors import DataError
from workflow_scripts.models.readouts.prompt import cut, filled
from workflow_scripts.models.tokens import TokenisedText, tokenise
from workflow_scripts.settings.templates import SENTENCE, Template

__all__ = ["PLAIN", "Template", "cut", "fill", "most_tokens", "pieces", "tokenise_in"]

PLAIN = Template(text=SENTENCE, add_period=False)
"""The sentence itself."""


def fill(template: Template, sentence: str, mask_token: str | None) -> str:
    """Put ``sentence`` into ``template``; a sentence that itself says [MASK] or [X] is left as it is.

    Raises:
        ConfigError: if the template has masks and the tokeniser has none.
    """
    return filled(sentence, *template.sides(mask_token), template.add_period)


def pieces(template: Template, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Token ids before and after the sentence, [CLS] and [SEP] included, or what a tokeniser adds in their place."""
    left, right = template.sides(tokenizer.mask_token)
    word = tokenizer("a", return_special_tokens_mask=True)
    special, first = word["special_tokens_mask"], word["special_tokens_mask"].index(0)
    last = len(special) - special[::-1].index(0)
    before, after = (tokenizer(side, add_special_tokens=False)["input_ids"] for side in (left, right))
    return [*word["input_ids"][:first], *before], [*after, *word["input_ids"][last:]]


def most_tokens(template: Template, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> int:
    """More tokens than a filled template has: a word that was cut may take more pieces than it had."""
    return 2 * max_tokens + sum(map(len, pieces(template, tokenizer)))


def tokenise_in(
    template: Template | None, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], max_tokens: int
) -> TokenisedText:
    """Tokenise ``sentences`` inside ``template``; without one, as they are.

    ``max_tokens`` limits the sentence with [CLS] and [SEP], as it does without a template, and the template's own
    tokens come on top. Cutting the filled template instead would take away its mask. An encoder that was published
    for fewer tokens reads no more than those.

    Raises:
        DataError: if a sentence has no token.
    """
    max_tokens = min(max_tokens, tokenizer.model_max_length)
    if template is None or template == PLAIN:
        text = tokenise(tokenizer, sentences, max_tokens)
    else:
        sides = template.sides(tokenizer.mask_token)
        texts = [filled(text, *sides, template.add_period) for text in cut(tokenizer, sentences, max_tokens)]
        text = tokenise(tokenizer, texts, most_tokens(template, tokenizer, max_tokens))
    if not text.lengths.all():
        number = int(text.lengths.argmin())
        found = f"sentence {number + 1} of {len(sentences)}: '{sentences[number]}' has no token"
        raise DataError(f"{found}. Leave it out of the data, or take an encoder that adds tokens of its own.")
    return text
