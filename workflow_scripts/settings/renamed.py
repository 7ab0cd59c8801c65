"""Keys of the configuration that had another name in an earlier version."""

from collections.abc import Container

RENAMED = {
    "also": ["add_sentences_of"],
    "answers": ["answer_store"],
    "answers_as": ["model_ids"],
    "at": ["values"],
    "between": ["sentence_separator"],
    "chosen_by": ["select_checkpoint_with"],
    "cut": ["truncate"],
    "first_state": ["first_layer"],
    "form": ["fusion", "training_text"],
    "keeps_prompt": ["keep_prompt"],
    "list_words": ["word_list_size"],
    "of_seeds": ["per_seed"],
    "otherwise": ["fallback_encoding"],
    "rate_at_end": ["min_lr_ratio"],
    "remove": ["remove_characters"],
    "shows": ["can_show"],
    "text": ["corpus", "document_text", "text_version"],
    "travel": ["lr_budget"],
    "uses": ["min_uses_per_word"],
    "via": ["pivot_language"],
    "where": ["filter", "position"],
}
"""Old names to the new ones, of which a block has at most one."""


def new_name(key: str, known: Container[str]) -> str | None:
    """Return the present name of a key in a block whose keys are ``known``; None if the key was never renamed."""
    return next((name for name in RENAMED.get(key, ()) if name in known), None)
