"""Sentences inside a prompt. The bytes of each template are part of the configuration.

``[X]`` is replaced by the sentence and ``[MASK]`` by the tokeniser's own mask. PromptBERT (Jiang et al. 2022) writes a
blank before its colon and appends a full stop to sentences that do not end in . ? " or ' (its evaluation.py); other
studies do neither. These details change STS by points (Prompt-BERT issue 22), so both are part of a template.
"""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from workflow_scripts.errors import DataError
from workflow_scripts.models.readouts.prompt import cut, filled
from workflow_scripts.models.tokens import TokenisedText, tokenise
from workflow_scripts.settings.names import SENTENCE, Template

__all__ = ["PLAIN", "Template", "cut", "fill", "most_tokens", "pieces", "tokenise_in"]

PLAIN = Template(text=SENTENCE, add_period=False)
"""The template that adds nothing to a sentence."""


def fill(template: Template, sentence: str, mask_token: str | None) -> str:
    """Return ``sentence`` inside ``template``; [MASK] or [X] in the sentence itself is not replaced.

    Raises:
        ConfigError: if the template has masks and the tokeniser has none.
    """
    return filled(sentence, *template.sides(mask_token), template.add_period)


def pieces(template: Template, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Return token ids before and after the sentence, with [CLS] and [SEP] or other special tokens of the tokeniser."""
    left, right = template.sides(tokenizer.mask_token)
    word = tokenizer("a", return_special_tokens_mask=True)
    special, first = word["special_tokens_mask"], word["special_tokens_mask"].index(0)
    last = len(special) - special[::-1].index(0)
    before, after = (tokenizer(side, add_special_tokens=False)["input_ids"] for side in (left, right))
    return [*word["input_ids"][:first], *before], [*after, *word["input_ids"][last:]]


def most_tokens(template: Template, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> int:
    """Return an upper bound of the tokens of a filled template; a cut word may have more pieces than before."""
    return 2 * max_tokens + sum(map(len, pieces(template, tokenizer)))


def tokenise_in(
    template: Template | None, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], max_tokens: int
) -> TokenisedText:
    """Return the tokens of ``sentences``, inside ``template`` if it is not None.

    ``max_tokens`` limits the sentence with [CLS] and [SEP], as without a template; the template's own tokens are not
    counted. Cutting the filled template instead could remove its mask. If the encoder was published for fewer tokens,
    that limit applies.

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
        raise DataError(
            f"sentence {number + 1} of {len(sentences)}: '{sentences[number]}' has no token. Remove it "
            "from the data, or choose an encoder that adds special tokens."
        )
    return text
