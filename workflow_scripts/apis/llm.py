"""Language models behind an OpenAI-compatible server: a prompt in, a completion out, and its cost."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from string import Template
from typing import Any, NamedTuple

from workflow_scripts.apis.calls import (
    Caller,
    Refused,
    Transient,
    Unusable,
    key_from,
    raise_for_status,
    redacted,
    without_keys,
)
from workflow_scripts.apis.door import completion_fault
from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.errors import ApiError, ConfigError
from workflow_scripts.settings.llms import LlmBlock, Price


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


class Completion(NamedTuple):
    """What a model answered."""

    answer: dict[str, Any]
    """All of it; empty where it is no JSON."""
    text: str
    """Empty if the model returned no text; where there is a fault, what was sent."""
    finish_reason: str = "unknown"
    """stop; length: truncated; content_filter, refusal: no answer."""
    fault: str = ""
    """Why there is no text in an answer that is paid all the same."""

    @property
    def noted(self) -> dict[str, Any]:
        """Model, why it stopped, and tokens, None where the server does not say."""
        usage = self.answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        tokens = {name: counts.get(name) for name in ("prompt_tokens", "completion_tokens")}
        return {
            "model": redacted(str(self.answer.get("model") or "unnamed")),
            "finish_reason": self.finish_reason,
        } | {name: count if isinstance(count, int) else None for name, count in tokens.items()}


class Llm:
    """One model on one server (``asking.Engine``)."""

    at_once = 1
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
        self.settings = json.dumps(
            block.model_dump(include={"temperature", "seed", "max_completion_tokens"}), sort_keys=True
        )
        self._caller = Caller(block.calls, place, ledger)
        self._client: Any = None

    def request(self, prompt: str) -> Request:
        """The request for the completion of ``prompt``."""
        return Request("openai", self.model, "", "", prompt, self.settings)

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request."""
        return [self.answer(request, request.text) for request in requests]

    def answer(self, request: Request, prompt: str) -> Row:
        """What came of ``prompt``, as the row of a request."""
        try:
            completion = self._caller.call(lambda: self._ask(prompt))
        except Refused as error:
            return Row(request, None, "refused", redacted(str(error)))
        except Unusable as error:
            return Row(request, error.answer, "failed", error.reason)
        return self._row(request, completion, prompt)

    def _row(self, request: Request, completion: Completion, prompt: str) -> Row:
        noted = completion.noted
        allowed = self._block.answers_as
        if allowed is not None and not completion.fault and noted["model"] not in allowed:
            found = f"asked {self._block.model}, answered by {noted['model']}"
            raise ApiError(f"{self.place}: {found}. Add it to answers_as, or correct base_url and model.")
        fault = completion.fault or completion_fault(completion.text, completion.finish_reason, prompt)
        attributes = noted | {"endpoint": self._block.base_url, "client": f"openai {version('openai')}"}
        cost = _cost(noted["prompt_tokens"], noted["completion_tokens"], self._block.price)
        return Row.answered(request, completion.text, fault, attributes, cost)

    def _ask(self, prompt: str) -> Completion:
        import openai  # slow to import, and not needed if all answers are kept

        try:
            answer = self._connected().chat.completions.with_raw_response.create(
                model=self._block.model,
                messages=[{"role": "user", "content": prompt}],
                **{self._block.tokens_parameter: self._block.max_completion_tokens},
                **({} if self._block.temperature is None else {"temperature": self._block.temperature}),
                **({} if self._block.seed is None else {"seed": self._block.seed}),
            )
        except openai.APIStatusError as error:
            said = redacted(f"{error.code or ''} {error.response.text}")
            raise_for_status(error.status_code, error.response.headers, said, self.place)
            raise Transient(f"HTTP {error.status_code}") from None
        except openai.APIConnectionError as error:  # includes timeouts
            raise Transient(type(error).__name__) from None
        return _read(answer.http_response.text)

    def _connected(self) -> Any:
        import openai

        if self._client is None:
            key = key_from(self._block.key_variable, self.place)
            self._client = openai.OpenAI(
                api_key=key or "none",  # the client requires one
                base_url=self._block.base_url,
                timeout=self._block.calls.timeout_seconds,
                max_retries=0,  # ``Caller`` retries; it can tell an exhausted quota from a busy server
                http_client=openai.DefaultHttpxClient(follow_redirects=False),
            )
        return self._client


def _read(body: str) -> Completion:
    """The parts of an answer that are used: servers that call themselves compatible send all kinds.

    Raises:
        Unusable: if it is a page, or says that it is an error; nothing of a model is in it.
    """
    if not body.lstrip().startswith("{"):
        raise Unusable("garbled", redacted(body))
    sent = without_keys(body)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return Completion({}, sent, fault="garbled")
    choice = _first(answer.get("choices"))
    if answer.get("error") and not choice:
        raise Unusable("no completion", redacted(str(answer["error"])))
    message = choice.get("message")
    if not isinstance(message, dict):
        return Completion(answer, sent, fault="no completion")
    text = _text_of(message.get("content"))
    if text is None:
        return Completion(answer, sent, fault="no text")
    finish_reason = "refusal" if message.get("refusal") else str(choice.get("finish_reason") or "unknown")
    return Completion(answer, without_keys(text), finish_reason)


def _first(choices: object) -> dict[str, Any]:
    """The first of an answer's choices; nothing where it has none that is an object."""
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _text_of(content: object) -> str | None:
    """The text of a message, which may come in parts, some of them no text; None if none of them is."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    read = [text for text in texts if isinstance(text, str)]
    return "".join(read) if read and len(read) == len(texts) else None


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
        by_model[json.loads(row.attributes)["model"]].append(row)
    return [{"model": model} | _usage(calls) for model, calls in sorted(by_model.items())]


def _usage(rows: list[Row]) -> dict[str, Any]:
    noted = [json.loads(row.attributes) for row in rows]
    cost = _sum([row.cost_usd for row in rows])
    days = sorted(row.asked_at[:10] for row in rows)
    unknown = "cost unknown: tokens or prices of some calls are"
    return {
        "calls": len(rows),
        "prompt_tokens": _sum([call["prompt_tokens"] for call in noted]),
        "completion_tokens": _sum([call["completion_tokens"] for call in noted]),
        "cost_usd": cost,
        "note": unknown if cost is None else "at the prices of the days",
        "asked_from": days[0],
        "asked_to": days[-1],
    }


def _sum(numbers: list[Any]) -> Any:
    return None if None in numbers else sum(numbers)
