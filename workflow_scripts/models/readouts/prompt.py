"""Sentences inside a prompt: filling the prompt, and cutting sentences to a number of tokens."""

from collections.abc import Sequence
from typing import Any

CLOSING = (".", "?", '"', "'")
"""Final characters after which PromptBERT appends no full stop."""

SPARE = 16
"""Upper bound of the additional tokens of a text that is cut within a word and tokenised again."""


def filled(sentence: str, before: str, after: str, add_period: bool) -> str:
    """Return the sentence between both sides; ``add_period`` appends a full stop unless it ends in ``CLOSING``."""
    stop = "." if add_period and sentence and not sentence.endswith(CLOSING) else ""
    return f"{before}{sentence}{stop}{after}"


def cut(tokenizer: Any, sentences: Sequence[str], max_tokens: int) -> list[str]:
    """Return the text of the first ``max_tokens`` tokens of each sentence, including special tokens."""
    if not sentences:
        return []
    tokens = tokenizer(
        list(sentences), return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False
    )
    return [
        sentence if len(ids) <= max_tokens else sentence[: _end(offsets, special, max_tokens)]
        for sentence, ids, offsets, special in zip(
            sentences,
            tokens["input_ids"],
            tokens["offset_mapping"],
            tokens["special_tokens_mask"],
            strict=True,
        )
    ]


def _end(offsets: Sequence[tuple[int, int]], special: Sequence[int], max_tokens: int) -> int:
    """Return the end of the cut text, with as many tokens as fit together with the special tokens."""
    ends = [end for (_, end), is_special in zip(offsets, special, strict=True) if not is_special]
    return ends[max(0, max_tokens - sum(special)) - 1] if max_tokens > sum(special) else 0


def room(tokenizer: Any, before: str, after: str) -> int:
    """Return the number of tokens that a prompt leaves for a sentence, including special tokens."""
    prompt = tokenizer(f"{before} {after}", verbose=False)["input_ids"]
    return int(tokenizer.model_max_length) - len(prompt) - SPARE
