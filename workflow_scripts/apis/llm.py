"""Language models behind an OpenAI-compatible server: a prompt in, a completion out, and its cost."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from workflow_scripts.apis.calls import (
    Caller,
    Calls,
    Transient,
    Unusable,
    key_from,
    raise_for_status,
    redacted,
)
from workflow_scripts.apis.store import AnswerStore, key_of
from workflow_scripts.config import Settings
from workflow_scripts.errors import ApiError


class Price(Settings):
    """Prices of a model on one day."""

    input_usd_per_million: float = Field(ge=0, description="US dollars per million prompt tokens.")
    output_usd_per_million: float = Field(ge=0, description="US dollars per million completion tokens.")
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="Day of the price.")


class LlmBlock(Settings):
    """One block of ``llms``."""

    base_url: str = Field(pattern=r"^https?://[^\s@?#]+$", description="URL of an OpenAI-compatible server.")
    model: str = Field(min_length=1, description="Model to request.")
    answers_as: list[str] | None = Field(
        description="Model ids allowed in answers; any other ends the job. null: any; the id is recorded."
    )
    key_variable: str | None = Field(
        pattern=r"^[A-Z][A-Z0-9_]*$", description="Environment variable that holds the key; null: no key."
    )
    temperature: float = Field(ge=0, le=2, description="Sampling temperature.")
    seed: int | None = Field(description="Seed sent to the server; null: none.")
    max_completion_tokens: int = Field(gt=0, description="Longest completion, in the model's tokens.")
    calls: Calls
    price: Price | None = Field(description="Prices to compute costs with; null: costs are unknown.")


class Completion(Settings):
    """What a model answered."""

    model: str = Field(description="Model id given by the server.")
    text: str = Field(description="Empty if the model returned no text.")
    finish_reason: str = Field(description="stop; length: truncated; content_filter, refusal: no answer.")
    prompt_tokens: int | None = Field(description="None if the server does not say.")
    completion_tokens: int | None = Field(description="None if the server does not say.")


class Usage(Settings):
    """What all calls behind one artefact cost; a stored answer counts like a new one."""

    model: str
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None = Field(description="None: unknown, see the note.")
    note: str


class Llm:
    """One model on one server."""

    def __init__(self, block: LlmBlock, place: str, store: AnswerStore, *, offline: bool) -> None:
        """Prepare a client; the key is looked up at the first call.

        Args:
            block: One block of ``llms``.
            place: Its name, for messages.
            store: Answers so far.
            offline: Use only answers in the store.
        """
        self._block = block
        self._place = place
        self._store = store
        self._offline = offline
        self._caller = Caller(block.calls, place)
        self._client: Any = None
        self._key: str | None = None

    def complete(self, prompt: str) -> Completion:
        """The completion of ``prompt``, from the store if it is there.

        Raises:
            Refused: if the server refuses this prompt, or gives no usable answer.
            ApiError: if the server cannot be used any more, or the study is offline and the answer is not stored.
        """
        request = self._block.model_dump(
            include={"base_url", "model", "temperature", "seed", "max_completion_tokens"}
        )
        key = key_of({"engine": "openai"} | request | {"prompt": prompt})
        if not (kept := self._store.find([key])):
            if self._offline:
                raise ApiError(
                    f"{self._place}: an answer is not in the store, and the study is offline. "
                    "Run it once with offline: false."
                )
            completion = self._caller.call(lambda: self._ask(prompt))
            kept = self._store.settle({key: completion.model_dump_json()})
        return Completion.parse(json.loads(kept[key]), f"{self._place}: answer in the store")

    def _ask(self, prompt: str) -> Completion:
        import openai  # slow to import, and not needed if all answers are stored

        try:
            answer = self._connected().chat.completions.create(
                model=self._block.model,
                messages=[{"role": "user", "content": prompt}],
                temperature=self._block.temperature,
                max_tokens=self._block.max_completion_tokens,
                **({} if self._block.seed is None else {"seed": self._block.seed}),
            )
        except openai.APIStatusError as error:
            said = redacted(f"{error.code or ''} {error}", self._key)
            raise_for_status(error.status_code, error.response.headers, said, self._place)
            raise Transient(f"HTTP {error.status_code}") from None
        except openai.APIConnectionError as error:  # includes timeouts
            raise Transient(type(error).__name__) from None
        except ValueError as error:  # an answer that is not JSON or not UTF-8
            raise Unusable(f"a garbled answer ({type(error).__name__})") from None
        return self._checked(answer)

    def _connected(self) -> Any:
        import openai

        if self._client is None:
            self._key = key_from(self._block.key_variable, self._place)
            self._client = openai.OpenAI(
                api_key=self._key or "none",  # the client requires one
                base_url=self._block.base_url,
                timeout=self._block.calls.timeout_seconds,
                max_retries=0,  # ``Caller`` retries; it can tell an exhausted quota from a busy server
            )
        return self._client

    def _checked(self, answer: Any) -> Completion:
        """The parts of an answer that are used; the client does not validate what comes with status 200."""
        choices = getattr(answer, "choices", None)
        if not isinstance(choices, list) or not choices:
            error = redacted(str(getattr(answer, "error", None) or "no choices"), self._key)
            raise Unusable(f"status 200 without a completion ({error})")
        model = str(getattr(answer, "model", None) or "unnamed")
        allowed = self._block.answers_as
        if allowed is not None and model not in allowed:
            found = f"asked {self._block.model}, answered by {redacted(model, self._key)}"
            raise ApiError(f"{self._place}: {found}. Add it to answers_as, or correct base_url and model.")
        message, usage = choices[0].message, getattr(answer, "usage", None)
        refusal = getattr(message, "refusal", None)
        return Completion(
            model=model,
            text=getattr(message, "content", None) or "",
            finish_reason="refusal" if refusal else str(choices[0].finish_reason or "unknown"),
            prompt_tokens=getattr(usage, "prompt_tokens", None),
            completion_tokens=getattr(usage, "completion_tokens", None),
        )


def usage_of(completions: Iterable[Completion], price: Price | None) -> list[Usage]:
    """Calls, tokens and cost of each model, sorted by name; a number that any call lacks is unknown, not 0."""
    by_model: dict[str, list[Completion]] = {}
    for completion in completions:
        by_model.setdefault(completion.model, []).append(completion)
    return [_usage(model, calls, price) for model, calls in sorted(by_model.items())]


def _usage(model: str, calls: list[Completion], price: Price | None) -> Usage:
    prompt = _sum([call.prompt_tokens for call in calls])
    completion = _sum([call.completion_tokens for call in calls])
    cost, note = None, "cost unknown: no price in the configuration"
    if price and (prompt is None or completion is None):
        note = "cost unknown: the server did not count the tokens of every call"
    elif price and prompt is not None and completion is not None:
        dollars = prompt * price.input_usd_per_million + completion * price.output_usd_per_million
        cost, note = dollars / 1e6, f"at the prices of {price.as_of}"
    return Usage(
        model=model,
        calls=len(calls),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost_usd=cost,
        note=note,
    )


def _sum(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
