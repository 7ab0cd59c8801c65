"""Sentences inside a prompt, whose exact bytes are data in the configuration."""

from collections.abc import Iterator

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError

SENTENCE = "[X]"
MASK = "[MASK]"


class Template(Settings):
    """One prompt."""

    text: str = Field(description="Exact bytes, [X] once, [MASK] any number of times.")
    add_period: bool = Field(
        description="Whether a sentence without a closing mark gets a full stop (PromptBERT)."
    )

    def conflicts(self) -> Iterator[str]:
        """The sentence has one place."""
        if (times := self.text.count(SENTENCE)) != 1:
            yield f"text: the place of the sentence, {SENTENCE}, occurs {times} times. Write it once."

    @property
    def masks(self) -> int:
        """Number of masks."""
        return self.text.count(MASK)

    def sides(self, mask_token: str | None) -> tuple[str, str]:
        """The text before and after the sentence, with the tokeniser's own mask.

        Raises:
            ConfigError: if the template has masks and the tokeniser has none.
        """
        if self.masks and mask_token is None:
            raise ConfigError("templates: the tokeniser has no mask. Choose a template without one.")
        before, after = (part.replace(MASK, mask_token or "") for part in self.text.split(SENTENCE))
        return before, after
