"""Blocks of ``translators``."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import OPERATIONAL, Settings
from workflow_scripts.settings.llms import Calls
from workflow_scripts.settings.names import LlmName


class ApertiumBlock(Settings):
    """Apertium, a rule-based engine, as commands on this machine."""

    engine: Literal["apertium"]
    batch_sentences: int = Field(
        gt=0, description="Sentences after which answers are kept.", json_schema_extra=OPERATIONAL
    )
    timeout_seconds: float = Field(
        gt=0, description="Longest time for one batch.", json_schema_extra=OPERATIONAL
    )


class GoogleBlock(Settings):
    """Google Translate's page for mobile phones; needs no key."""

    engine: Literal["google"]
    calls: Calls = Field(json_schema_extra=OPERATIONAL)


class LibreTranslateBlock(Settings):
    """A LibreTranslate server, with any languages that it has."""

    engine: Literal["libretranslate"]
    url: str = Field(
        pattern=r"^https?://[^\s@?#]+$", description="URL of the server.", json_schema_extra=OPERATIONAL
    )
    key_variable: str | None = Field(
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="Environment variable that holds the key; null: no key.",
        json_schema_extra=OPERATIONAL,
    )
    calls: Calls = Field(json_schema_extra=OPERATIONAL)


class LlmTranslatorBlock(Settings):
    """A language model as a translator, one sentence a request."""

    engine: Literal["llm"]
    llm: LlmName = Field(description="Block of llms.")
    prompt: str = Field(pattern="^[a-z0-9_]+$", description="File in resources/prompts, without suffix.")


TranslatorBlock = Annotated[
    ApertiumBlock | GoogleBlock | LibreTranslateBlock | LlmTranslatorBlock, Field(discriminator="engine")
]


class TranslatorSlice(Settings):
    """One block of ``translators``."""

    translator: TranslatorBlock
