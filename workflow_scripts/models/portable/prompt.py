"""Sentences put between the two sides of a prompt."""

from collections.abc import Sequence
from typing import Any

CLOSING = (".", "?", '"', "'")
"""Marks after which PromptBERT appends no full stop."""


def filled(sentence: str, before: str, after: str, dot: bool) -> str:
    """The sentence between its sides, with a full stop of its own if ``dot`` and it has no closing mark."""
    stop = "." if dot and sentence and not sentence.endswith(CLOSING) else ""
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
