"""Transformer module of sentence-transformers that puts sentences into a prompt."""

from pathlib import Path
from typing import Any

from sentence_transformers.base.modules import Transformer

from .base import write_own_code
from .prompt import cut, filled, room


class PromptedTransformer(Transformer):
    """Transformer that puts sentences between the two sides of a prompt; only the sentence is cut."""

    config_keys = [*Transformer.config_keys, "before", "after", "add_period", "sentence_tokens"]  # noqa: RUF012
    save_in_root = False  # in the root, AutoModel would load the encoder without its prompt

    def __init__(
        self,
        *arguments: Any,
        before: str,
        after: str,
        add_period: bool,
        sentence_tokens: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.before, self.after, self.add_period = before, after, add_period
        self.room = room(self.tokenizer, before, after)
        self.sentence_tokens = self.room if sentence_tokens is None else sentence_tokens

    @property
    def max_seq_length(self) -> int:
        """Return the maximum number of tokens of a sentence, with [CLS] and [SEP], without those of the prompt."""
        return self.sentence_tokens

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self.sentence_tokens = min(value, self.room)

    def preprocess(self, inputs: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Cut sentences, put them into the prompt, and tokenise."""
        kept = cut(self.tokenizer, list(inputs), self.sentence_tokens)
        texts = [filled(sentence, self.before, self.after, self.add_period) for sentence in kept]
        return super().preprocess(texts, *arguments, **options)

    def save(self, output_path: str, *arguments: Any, **options: Any) -> None:
        """Write weights and settings, and copy the code into the model folder."""
        super().save(output_path, *arguments, **options)
        write_own_code(self, Path(output_path).parent)
