"""Sentences put between the two sides of a prompt."""

from collections.abc import Sequence
from typing import Any

CLOSING = (".", "?", '"', "'")
"""Marks after which PromptBERT appends no full stop."""

SPARE = 16
"""More tokens than a text that was cut within a word has on top of those it was cut at."""


def filled(sentence: str, before: str, after: str, add_period: bool) -> str:
    """The sentence between its sides, with a full stop of its own if ``add_period`` and it has no closing mark."""
    stop = "." if add_period and sentence and not sentence.endswith(CLOSING) else ""
    return f"{before}{sentence}{stop}{after}"


def cut(tokenizer: Any, sentences: Sequence[str], max_tokens: int) -> list[str]:
    """Cut each sentence at ``max_tokens`` tokens, special ones included, to text again."""
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
    """Where the last token that is kept ends in the text; as many are kept as there is room for beside special ones."""
    ends = [end for (_, end), is_special in zip(offsets, special, strict=True) if not is_special]
    return ends[max(0, max_tokens - sum(special)) - 1] if max_tokens > sum(special) else 0


def room(tokenizer: Any, before: str, after: str) -> int:
    """Tokens that a prompt leaves for a sentence, special ones included."""
    prompt = tokenizer(f"{before} {after}", verbose=False)["input_ids"]
    return int(tokenizer.model_max_length) - len(prompt) - SPARE
