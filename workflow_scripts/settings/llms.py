"""Blocks of ``llms``."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import OPERATIONAL, Settings
from workflow_scripts.settings.calls import Calls


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
    tokens_parameter: Literal["max_tokens", "max_completion_tokens"] = Field(
        description="What the server calls the longest completion: newer models know the second name alone.",
        json_schema_extra=OPERATIONAL,
    )
    calls: Calls = Field(json_schema_extra=OPERATIONAL)
    price: Price | None = Field(
        description="Prices to compute costs with, when an answer comes; null: costs are unknown.",
        json_schema_extra=OPERATIONAL,
    )
