"""Sentences inside a prompt. The bytes of every template are data (``extraction.templates``).

``[X]`` is where the sentence goes and ``[MASK]`` becomes the tokeniser's own mask. PromptBERT (Jiang et al.
2022) writes a blank before its colon and appends a full stop to a sentence that ends in none of . ? " ' (its
evaluation.py); the extraction study does neither as printed. That changes STS by points (Prompt-BERT issue 22),
so that both are templates of their own.
"""

from collections.abc import Sequence

from pydantic import Field, field_validator
from transformers import PreTrainedTokenizerBase

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError

SENTENCE = "[X]"
MASK = "[MASK]"
_NO_DOT_AFTER = (".", "?", '"', "'")


class Template(Slice):
    """One prompt."""

    text: str = Field(description="Exact bytes, [X] once, [MASK] any number of times.")
    dot: bool = Field(description="Whether a sentence without a closing mark gets a full stop (PromptBERT).")

    @field_validator("text")
    @classmethod
    def _has_one_place(cls, text: str) -> str:
        if text.count(SENTENCE) != 1:
            raise ValueError(f"{SENTENCE} must stand in it once")
        return text

    @property
    def masks(self) -> int:
        """Number of masks."""
        return self.text.count(MASK)


PLAIN = Template(text=SENTENCE, dot=False)
"""The sentence itself."""


def fill(template: Template, sentence: str, mask_token: str | None) -> str:
    """Put ``sentence`` into ``template``; a sentence that itself says [MASK] or [X] is left as it is.

    Raises:
        ConfigError: if the template has masks and the tokeniser has none.
    """
    if template.masks and mask_token is None:
        raise ConfigError("extraction.templates: the tokeniser has no mask. Choose a template without one.")
    if template.dot and sentence and not sentence.endswith(_NO_DOT_AFTER):
        sentence += "."
    before, after = (part.replace(MASK, mask_token or "") for part in template.text.split(SENTENCE))
    return before + sentence + after


def cut(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], max_tokens: int) -> list[str]:
    """Cut each sentence at ``max_tokens`` tokens, [CLS] and [SEP] included, to text again.

    ASSUME: the limit is the sentence's, and a template's own tokens come on top. Cutting the filled template
    instead would take away its masks, and the same text would be cut elsewhere under every template.
    """
    ends = tokenizer(
        list(sentences), truncation=True, max_length=max_tokens, return_offsets_mapping=True, verbose=False
    )["offset_mapping"]
    whole = tokenizer(list(sentences), verbose=False)["input_ids"] if sentences else []
    return [
        sentence if len(ids) <= max_tokens else sentence[: max(end for _start, end in offsets)]
        for sentence, ids, offsets in zip(sentences, whole, ends, strict=True)
    ]
