"""Language models behind an OpenAI-compatible server: a prompt in, a completion out, and its cost."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from string import Template
from typing import Any, NamedTuple

from workflow_scripts.apis.asking import Engine
from workflow_scripts.apis.calls import Client, NoAnswer, key_from, redacted, without_keys
from workflow_scripts.apis.door import completion_fault
from workflow_scripts.apis.ledger import Ledger, Request, Row, row_of
from workflow_scripts.errors import ApiError, ConfigError
from workflow_scripts.settings.apis import LlmBlock, Price


def filled(template: str, values: Mapping[str, object], needed: str, place: str) -> str:
    """A prompt with values in the place of ``$name``.

    Raises:
        ConfigError: if it has an unknown placeholder, or none for the value ``needed``.
    """
    try:
        prompt = Template(template.strip()).substitute(values)
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${name}" for name in values)
        raise ConfigError(f"{place}: {error}; placeholders are {known}.") from None
    if str(values[needed]) not in prompt:
        raise ConfigError(f"{place}: no placeholder ${needed}. Add it.")
    return prompt


def _text_of(content: Any) -> str:
    """A message's text, which may come in parts, some of them no text.

    Raises:
        TypeError, LookupError: if there is none.
    """
    if content is None or isinstance(content, str):
        return content or ""
    texts = [
        part["text"]
        for part in (content if isinstance(content, list) else [content])
        if part["type"] == "text"
    ]
    return str(texts[0] + "".join(texts[1:]))


class Completion(NamedTuple):
    """What a model answered."""

    text: str
    """Empty if the model returned no text; where there is a fault, what was sent."""
    noted: dict[str, Any]
    """Model, why it stopped, and tokens, None where the server does not say."""
    fault: str = ""
    """Why there is no text in an answer that is paid all the same."""


class Llm(Engine):
    """One model on one server."""

    tries = 2

    def __init__(self, block: LlmBlock, place: str, ledger: Ledger) -> None:
        """Prepare a client; the key is looked up at the first call.

        Args:
            block: One block of ``llms``.
            place: Its name, for messages; requests of all its jobs are counted together.
            ledger: It counts requests.
        """
        self._block = block
        self.place = place
        self.model = block.model
        self.calls = block.calls
        deciding = block.model_dump(include={"temperature", "seed", "max_completion_tokens"})
        self.settings = json.dumps(deciding, sort_keys=True)
        self.client = Client(block.calls, place, block.base_url, ledger)

    def request(self, prompt: str) -> Request:
        """The request for the completion of ``prompt``."""
        return Request("openai", self.model, "", "", prompt, self.settings)

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request."""
        return [self.answer(request, request.text) for request in requests]

    def fault(self, row: Row) -> str | None:
        """What is wrong with a whole completion."""
        return completion_fault(row.answer or "", row.noted.get("finish_reason", "unknown"), row.request.text)

    def answer(self, request: Request, prompt: str) -> Row:
        """What came of ``prompt``, as the row of a request."""
        try:
            completion = self._complete(prompt)
        except NoAnswer as error:
            return error.row(request)
        noted, allowed = completion.noted, self._block.answers_as
        if allowed is not None and not completion.fault and noted["model"] not in allowed:
            found = f"asked {self._block.model}, answered by {noted['model']}"
            raise ApiError(f"{self.place}: {found}. Add it to answers_as, or correct base_url and model.")
        fault = completion.fault or completion_fault(completion.text, noted["finish_reason"], prompt)
        cost = _cost(noted["prompt_tokens"], noted["completion_tokens"], self._block.price)
        return row_of(request, completion.text, fault, noted | {"endpoint": self._block.base_url}, cost)

    def _complete(self, prompt: str) -> Completion:
        block = self._block
        asked = {
            block.tokens_parameter: block.max_completion_tokens,
            "temperature": block.temperature,
            "seed": block.seed,
        }
        key = key_from(block.key_variable, self.place)
        from openai import OpenAI, omit  # a second

        # The SDK's environment variables give neither address nor key; other headers of theirs are not sent (calls).
        model = OpenAI(
            base_url=block.base_url, api_key=key or "none", max_retries=0, http_client=self.client.http
        )
        create = partial(
            model.chat.completions.with_raw_response.create,
            model=block.model,
            messages=[{"role": "user", "content": prompt}],
            extra_headers={"Authorization": f"Bearer {key}" if key else omit},
            timeout=block.calls.timeout_seconds,
            **{name: value for name, value in asked.items() if value is not None},
        )
        return _read(self.client.call(create))


def _read(answered: Any) -> Completion:
    """The parts of an answer that are used: servers that call themselves compatible send all kinds.

    Args:
        answered: The SDK's raw response.

    Raises:
        NoAnswer: if it is a page, or says that it is an error; nothing of a model is in it.
    """
    body = answered.text
    if not body.lstrip().startswith("{"):
        raise NoAnswer("failed", "garbled", body)
    try:
        answer = answered.parse()
        model, choices, usage, error = (
            getattr(answer, name, None) for name in ("model", "choices", "usage", "error")
        )
    except (ValueError, RecursionError):
        return Completion(without_keys(body), _noted(None, None), "garbled")
    if error and not choices:
        raise NoAnswer("failed", "no completion", str(error))
    noted = _noted(model, usage)
    try:
        choice = (choices or [])[0]
        text = _text_of(choice.message.content)
        noted["finish_reason"] = "refusal" if choice.message.refusal else choice.finish_reason or "unknown"
    except (TypeError, LookupError, AttributeError):
        return Completion(without_keys(body), noted, "no completion")
    return Completion(without_keys(text), noted)


def _noted(model: object, usage: object) -> dict[str, Any]:
    tokens = {name: getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")}
    return {"model": redacted(str(model or "unnamed")), "finish_reason": "unknown"} | {
        name: count if isinstance(count, int) else None for name, count in tokens.items()
    }


def _cost(asked: int | None, answered: int | None, price: Price | None) -> float | None:
    """US dollars of a completion; None if the price, or a number of tokens, is unknown."""
    if price is None or asked is None or answered is None:
        return None
    return (asked * price.input_usd_per_million + answered * price.output_usd_per_million) / 1e6


def usage_of(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """What all calls behind one artefact cost, by model (columns of ``columns.corpora.USAGE``).

    A kept answer counts like a new one; a number that any call lacks is unknown, not 0.
    """
    by_model: dict[str, list[Row]] = defaultdict(list)
    for row in (row for row in rows if row.status in ("usable", "rejected")):  # the others cost nothing
        by_model[row.noted["model"]].append(row)
    return [{"model": model} | _usage(calls) for model, calls in sorted(by_model.items())]


def _usage(rows: list[Row]) -> dict[str, Any]:
    noted = [row.noted | {"cost_usd": row.cost_usd} for row in rows]
    counted = {
        name: [call[name] for call in noted] for name in ("prompt_tokens", "completion_tokens", "cost_usd")
    }
    sums = {name: None if None in numbers else sum(numbers) for name, numbers in counted.items()}
    days = sorted(row.asked_at[:10] for row in rows)
    unknown = "cost unknown: tokens or prices of some calls are"
    note = unknown if sums["cost_usd"] is None else "at the prices of the days"
    return {"calls": len(rows), **sums, "note": note, "asked_from": days[0], "asked_to": days[-1]}
