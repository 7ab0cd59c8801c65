"""Settings of language models and translators, and of requests to their servers."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.settings.base import OPERATIONAL, Settings


class Calls(Settings):
    """Settings of requests to an API; none of them changes an answer."""

    timeout_seconds: float = Field(gt=0, description="Read timeout in seconds.")
    attempts: int = Field(ge=1, description="Maximum number of attempts at one request, including the first.")
    first_wait_seconds: float = Field(
        ge=0,
        description="Upper limit, in seconds, of the random wait before the second attempt; doubles each time.",
    )
    longest_wait_seconds: float = Field(
        gt=0,
        description="Maximum wait between attempts, in seconds; a server that asks for more ends the job.",
    )
    workers: int = Field(ge=1, le=256, description="Maximum number of concurrent requests of one job.")
    per_second: float | None = Field(
        gt=0, description="Maximum requests per second of all jobs together; null: no limit."
    )
    per_day: int | None = Field(
        gt=0, description="Maximum requests per day (UTC) of all jobs together; null: no limit."
    )

    @property
    def attempt_seconds(self) -> float:
        """Return the maximum duration of an attempt, in seconds; the wait for a free slot is not counted."""
        return self.timeout_seconds + 60


class Price(Settings):
    """Prices of a model on one day."""

    input_usd_per_million: float = Field(ge=0, description="US dollars per million prompt tokens.")
    output_usd_per_million: float = Field(ge=0, description="US dollars per million completion tokens.")
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="Day of the price.")


class LlmBlock(Settings):
    """One block of ``llms``: a language model, its server and its prices."""

    base_url: str = Field(
        pattern=r"^https?://[^\s@?#]+$",
        description="URL of an OpenAI-compatible server.",
        json_schema_extra=OPERATIONAL,
    )
    model: str = Field(min_length=1, description="Model to request.")
    model_ids: list[str] | None = Field(
        description="Model ids allowed in answers; any other id ends the job. null: any id, which is recorded."
    )
    key_variable: str | None = Field(
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="Environment variable with the key; null: no key.",
        json_schema_extra=OPERATIONAL,
    )
    temperature: float | None = Field(ge=0, le=2, description="Sampling temperature; null: not sent.")
    seed: int | None = Field(description="Seed sent to the server; null: none.")
    max_completion_tokens: int = Field(
        gt=0, description="Maximum length of a completion, in the model's tokens."
    )
    response_format: Literal["json_schema", "text"] = Field(
        description="Requested format of answers: JSON by a schema, or text for servers without that option."
    )
    tokens_parameter: Literal["max_tokens", "max_completion_tokens"] = Field(
        description="Name of the API's length parameter; newer models accept only `max_completion_tokens`.",
        json_schema_extra=OPERATIONAL,
    )
    calls: Calls = Field(json_schema_extra=OPERATIONAL)
    price: Price | None = Field(
        description="Prices from which the cost of an answer is computed; null: costs are unknown.",
        json_schema_extra=OPERATIONAL,
    )


class ApertiumBlock(Settings):
    """Apertium, a rule-based engine, run as local commands."""

    engine: Literal["apertium"]
    batch_sentences: int = Field(
        gt=0,
        description="Sentences per batch; answers are stored after each batch.",
        json_schema_extra=OPERATIONAL,
    )
    timeout_seconds: float = Field(
        gt=0, description="Timeout of one batch, in seconds.", json_schema_extra=OPERATIONAL
    )


class GoogleBlock(Settings):
    """Google Translate's page for mobile phones, which needs no key."""

    engine: Literal["google"]
    calls: Calls = Field(json_schema_extra=OPERATIONAL)


class LibreTranslateBlock(Settings):
    """A LibreTranslate server, for any of its languages."""

    engine: Literal["libretranslate"]
    url: str = Field(
        pattern=r"^https?://[^\s@?#]+$", description="URL of the server.", json_schema_extra=OPERATIONAL
    )
    key_variable: str | None = Field(
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="Environment variable with the key; null: no key.",
        json_schema_extra=OPERATIONAL,
    )
    calls: Calls = Field(json_schema_extra=OPERATIONAL)


TranslatorBlock = Annotated[ApertiumBlock | GoogleBlock | LibreTranslateBlock, Field(discriminator="engine")]


class TranslatorSlice(Settings):
    """One block of ``translators``, as a job receives it."""

    translator: TranslatorBlock
