"""Language models and translators, and how any server is called."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.settings.base import OPERATIONAL, Settings


class Calls(Settings):
    """How an API is called; none of it decides an answer."""

    timeout_seconds: float = Field(gt=0, description="Longest silence of the server.")
    attempts: int = Field(
        ge=1, description="Attempts at one request that gets no answer, including the first."
    )
    first_wait_seconds: float = Field(
        ge=0, description="Upper limit of the random wait before the second attempt; doubles each time."
    )
    longest_wait_seconds: float = Field(
        gt=0, description="Longest wait between attempts; a server that asks for more ends the job."
    )
    workers: int = Field(ge=1, le=256, description="Requests of one job that are under way at the same time.")
    per_second: float | None = Field(
        gt=0, description="Most requests per second of all jobs together; null: no limit."
    )
    per_day: int | None = Field(
        gt=0, description="Most requests a day (UTC) of all jobs together; null: no limit."
    )

    @property
    def attempt_seconds(self) -> float:
        """No attempt takes longer, whatever a server sends; waiting for its turn is not counted."""
        return self.timeout_seconds + 60


class Price(Settings):
    """Prices of a model on one day."""

    input_usd_per_million: float = Field(ge=0, description="US dollars per million prompt tokens.")
    output_usd_per_million: float = Field(ge=0, description="US dollars per million completion tokens.")
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="Day of the price.")


class LlmBlock(Settings):
    """One block of ``llms``."""

    base_url: str = Field(
        pattern=r"^https?://[^\s@?#]+$",
        description="URL of an OpenAI-compatible server.",
        json_schema_extra=OPERATIONAL,
    )
    model: str = Field(min_length=1, description="Model to request.")
    answers_as: list[str] | None = Field(
        description="Model ids allowed in answers; any other ends the job. null: any; the id is recorded."
    )
    key_variable: str | None = Field(
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="Environment variable that holds the key; null: no key.",
        json_schema_extra=OPERATIONAL,
    )
    temperature: float | None = Field(ge=0, le=2, description="Sampling temperature; null: not sent.")
    seed: int | None = Field(description="Seed sent to the server; null: none.")
    max_completion_tokens: int = Field(gt=0, description="Longest completion, in the model's tokens.")
    response_format: Literal["json_schema", "text"] = Field(
        description="Form of answers to ask for: JSON by a schema, or, of a server that refuses to, text."
    )
    tokens_parameter: Literal["max_tokens", "max_completion_tokens"] = Field(
        description="What the server calls the longest completion: newer models know the second name alone.",
        json_schema_extra=OPERATIONAL,
    )
    calls: Calls = Field(json_schema_extra=OPERATIONAL)
    price: Price | None = Field(
        description="Prices to compute costs with, when an answer comes; null: costs are unknown.",
        json_schema_extra=OPERATIONAL,
    )


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


TranslatorBlock = Annotated[ApertiumBlock | GoogleBlock | LibreTranslateBlock, Field(discriminator="engine")]


class TranslatorSlice(Settings):
    """One block of ``translators``."""

    translator: TranslatorBlock
