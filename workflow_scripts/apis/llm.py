"""Language models behind an OpenAI-compatible server: one prompt, one completion, and what it cost."""

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
from workflow_scripts.config import Slice
from workflow_scripts.errors import ApiError


class Price(Slice):
    """Prices of a model on one day."""

    input_usd_per_million: float = Field(ge=0, description="US dollars for a million tokens of prompts.")
    output_usd_per_million: float = Field(ge=0, description="US dollars for a million tokens of completions.")
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="Day on which that was the price.")


class LlmBlock(Slice):
    """One block of ``llms``."""

    base_url: str = Field(pattern=r"^https?://[^\s@?#]+$", description="Of an OpenAI-compatible server.")
    model: str = Field(min_length=1, description="Model to ask for.")
    answers_as: list[str] | None = Field(
        description="Model ids that answers may carry; another one ends the job. null: any, the id is recorded."
    )
    key_variable: str | None = Field(
        pattern=r"^[A-Z][A-Z0-9_]*$", description="Environment variable that holds the key; null: no key."
    )
    temperature: float = Field(ge=0, le=2, description="Of sampling.")
    seed: int | None = Field(description="Sent along where the server takes one; null: not sent.")
    max_completion_tokens: int = Field(gt=0, description="Longest completion, in the model's tokens.")
    calls: Calls
    price: Price | None = Field(description="To count costs by; null: costs are unknown.")


class Completion(Slice):
    """What a model answered."""

    model: str = Field(description="As the server names it.")
    text: str = Field(description="Empty where the model gave none.")
    finish_reason: str = Field(description="stop; length: cut; content_filter, refusal: not answered.")
    prompt_tokens: int | None = Field(description="None where the server does not say.")
    completion_tokens: int | None = Field(description="None where the server does not say.")


class Usage(Slice):
    """What all calls behind one artefact took; asked again or kept, an answer counts the same."""

    model: str
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None = Field(description="None: unknown, see the note.")
    note: str


class Llm:
    """One model on one server."""

    def __init__(self, block: LlmBlock, place: str, store: AnswerStore, *, offline: bool) -> None:
        """Make ready to ask; the key is looked for when the first call needs it.

        Args:
            block: One block of ``llms``.
            place: Its name, for messages.
            store: Answers so far.
            offline: Ask nothing that is not in the store.
        """
        self._block = block
        self._place = place
        self._store = store
        self._offline = offline
        self._caller = Caller(block.calls, place)
        self._client: Any = None
        self._key: str | None = None

    def complete(self, prompt: str) -> Completion:
        """The completion of ``prompt``, from the store where it is there.

        Raises:
            Refused: if the server refuses this prompt, or answers nothing usable.
            ApiError: if it cannot go on, or the answer is not in the store and may not be asked for.
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
        import openai  # slow to import; a study with all answers needs none of it

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
        except openai.APIConnectionError as error:  # timeouts among them
            raise Transient(type(error).__name__) from None
        except ValueError as error:  # an answer that is no JSON, or no UTF-8
            raise Unusable(f"a garbled answer ({type(error).__name__})") from None
        return self._checked(answer)

    def _connected(self) -> Any:
        import openai

        if self._client is None:
            self._key = key_from(self._block.key_variable, self._place)
            self._client = openai.OpenAI(
                api_key=self._key or "none",  # the client wants one
                base_url=self._block.base_url,
                timeout=self._block.calls.timeout_seconds,
                max_retries=0,  # ``Caller`` repeats, and knows an empty quota from a busy server
            )
        return self._client

    def _checked(self, answer: Any) -> Completion:
        """The parts of an answer that count; the client hands over whatever came with status 200."""
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
    """Calls, tokens and cost of each model, by its name; a number that one call lacks is unknown, not 0."""
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
