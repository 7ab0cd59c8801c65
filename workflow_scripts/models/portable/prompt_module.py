"""An encoder of sentence-transformers that puts sentences into a prompt, for model folders.

``saving`` puts the file that is imported here before what follows the mark below.
"""

# ruff: noqa: I001
from workflow_scripts.models.portable.prompt import cut, filled

# The file of a model folder goes on from here.
from typing import Any

from sentence_transformers.base.modules import Transformer


class PromptedTransformer(Transformer):
    """A transformer that reads sentences between the two sides of a prompt; the sentence alone is cut."""

    config_keys = [*Transformer.config_keys, "before", "after", "dot", "sentence_tokens"]  # noqa: RUF012

    def __init__(
        self, *arguments: Any, before: str, after: str, dot: bool, sentence_tokens: int, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.before, self.after, self.dot = before, after, dot
        self.sentence_tokens = sentence_tokens  # with [CLS] and [SEP]

    def preprocess(self, inputs: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Cut and fill in, then as usual."""
        kept = cut(self.tokenizer, list(inputs), self.sentence_tokens)
        texts = [filled(sentence, self.before, self.after, self.dot) for sentence in kept]
        return super().preprocess(texts, *arguments, **options)
