"""Language models on OpenAI-compatible servers: a prompt in, a completion out, and its cost."""

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.apis.answer_checks import completion_fault
from workflow_scripts.apis.asking import Client, Engine, NoAnswer, Server, key_from, redacted
from workflow_scripts.apis.ledger import ApiRequest, Ledger, Row
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.apis import LlmBlock, Price

_SENTENCES = {"type": "array", "items": {"type": "string"}}
_LIST = {
    "type": "object",
    "properties": {"sentences": _SENTENCES},
    "required": ["sentences"],
    "additionalProperties": False,
}
_SCHEMA = {"type": "json_schema", "json_schema": {"name": "sentences", "strict": True, "schema": _LIST}}
"""Parameter that requests a list of sentences as JSON, without their number: some servers refuse limits."""


class Llm(Engine):
    """One model on one server."""

    def __init__(self, block: LlmBlock, path: str, ledger: Ledger, sentences: int | None = None) -> None:
        """Prepare a client; the key is read at the first call.

        Args:
            block: One block of ``llms``.
            path: Its dotted path, for messages; requests of all its jobs are counted together.
            ledger: Ledger that counts requests.
            sentences: Number of sentences of which each completion must consist; None for any text.
        """
        self._block = block
        self._sentences = sentences
        self.asks_json = sentences is not None and block.response_format == "json_schema"
        """Whether JSON by a schema is requested."""
        self.path = path
        self.model = block.model
        self.calls = block.calls
        server = Server(path, block.base_url, ("base_url", "model"), block.key_variable)
        self.client: Client = Client(block.calls, server, ledger)

    def request(self, prompt: str) -> ApiRequest:
        """Return the request for the completion of a prompt."""
        deciding = self._block.model_dump(include={"temperature", "seed", "max_completion_tokens"})
        if self.asks_json:
            deciding["response_format"] = _SCHEMA
        return ApiRequest("openai", self.model, "", "", prompt, json.dumps(deciding, sort_keys=True))

    def fault(self, row: Row) -> str | None:
        """Return the fault of a completion as a whole; None if it is usable."""
        # Earlier versions stored reasons as servers sent them, such as numbers.
        finish_reason = str(row.metadata.get("finish_reason", "unknown"))
        return completion_fault(row.answer or "", finish_reason, self._sentences)

    def answer(self, request: ApiRequest) -> Row:
        """Return the row of a request with the completion of its prompt."""
        block, complete = self._block, self._call(request)
        text, metadata, fault = self.client.call(lambda: _read(complete()))
        if block.model_ids is not None and not fault and metadata["model"] not in block.model_ids:
            problem = f"'{metadata['model']}' has answered instead of '{block.model}'"
            raise ApiError(f"{self.path}: {problem}. Add it to model_ids, or correct base_url and model.")
        cost = _cost(metadata["prompt_tokens"], metadata["completion_tokens"], block.price)
        return self.row(request, text, metadata | {"endpoint": block.base_url}, cost, fault)

    def _call(self, request: ApiRequest) -> Callable[[], Any]:
        """Return a function that calls the server and returns the SDK's raw response."""
        from openai import OpenAI, omit  # takes a second

        block = self._block
        optional = {
            block.tokens_parameter: block.max_completion_tokens,
            "temperature": block.temperature,
            "seed": block.seed,
            "response_format": json.loads(request.settings).get("response_format"),
        }
        key = key_from(block.key_variable, self.path)
        # Address and key override the SDK's environment variables; the client drops the headers that others add.
        model = OpenAI(base_url=block.base_url, api_key=key or "none", max_retries=0, http_client=self.client)
        return partial(
            model.chat.completions.with_raw_response.create,
            model=block.model,
            messages=[{"role": "user", "content": request.text}],
            extra_headers={"Authorization": f"Bearer {key}" if key else omit},
            timeout=block.calls.timeout_seconds,
            **{name: value for name, value in optional.items() if value is not None},
        )


def _read(response: Any) -> tuple[str, dict[str, Any], str | None]:
    """Return the completion in a response, whose form differs between compatible servers.

    Args:
        response: The SDK's raw response.

    Returns:
        The text, or the raw response if there is a fault; model, finish reason and tokens (None if unknown); and the
        reason why a response that may cost money contains no text.

    Raises:
        NoAnswer: if the response is a page or an error message, without an answer of the model: no choices and no count
            of tokens, or an error as the reason of its end.
    """
    body = response.text
    if not body.lstrip().startswith("{"):
        raise NoAnswer("failed", "garbled", body)
    try:
        answer = response.parse()
        fields = ("model", "choices", "usage", "error")
        model, choices, usage, error = (getattr(answer, name, None) for name in fields)
    except (ValueError, RecursionError):
        raise NoAnswer("failed", "broken off", body) from None
    if not choices and (error or usage is None):
        raise NoAnswer("failed", "no completion", str(error or body))
    metadata = _metadata_of(model, usage)
    try:
        choice = (choices or [])[0]
        text = _text_of(choice.message.content)
        said = choice.finish_reason or "unknown"
        reason = said if isinstance(said, str) else json.dumps(said, default=str)
        metadata["finish_reason"] = "refusal" if choice.message.refusal else reason
    except (TypeError, LookupError, AttributeError):
        return body, metadata, "no completion"
    if said == "error":  # of a server behind this one
        raise NoAnswer("failed", "no completion", body)
    return (body, metadata, "no completion") if text is None else (text, metadata, None)


def _text_of(content: object) -> str | None:
    """Return the text of a message, joined from its parts of the type text if it is a list; None if it has none.

    Models that reason may send a list, with their thoughts in parts of another type.
    """
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        return "".join(texts) if texts and len(texts) == len(parts) else None
    if content is None:
        return ""
    return content if isinstance(content, str) else None


def _metadata_of(model: object, usage: object) -> dict[str, Any]:
    tokens = {name: getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")}
    return {"model": redacted(str(model or "unnamed")), "finish_reason": "unknown"} | {
        name: count if isinstance(count, int) else None for name, count in tokens.items()
    }


def _cost(prompt_tokens: int | None, completion_tokens: int | None, price: Price | None) -> float | None:
    """Return the cost of a completion in US dollars; None if the price or a number of tokens is unknown."""
    if price is None or prompt_tokens is None or completion_tokens is None:
        return None
    dollars = prompt_tokens * price.input_usd_per_million + completion_tokens * price.output_usd_per_million
    return dollars / 1e6


def usage_by_model(rows: Iterable[Row]) -> pd.DataFrame:
    """Return tokens and cost of all calls for one artefact, by model (columns of ``columns.USAGE``).

    Stored answers count like new ones; a number that any call lacks is unknown, not 0.
    """
    numbers = ["prompt_tokens", "completion_tokens", "cost_usd"]
    # Only usable and rejected rows cost anything.
    paid = pd.DataFrame(
        [
            row.metadata | {"cost_usd": row.cost_usd, "day": row.asked_at[:10]}
            for row in rows
            if row.status in ("usable", "rejected")
        ],
        columns=["model", *numbers, "day"],
    ).astype(dict.fromkeys(numbers, float))
    by_model = paid.groupby("model")
    usage = by_model[numbers].agg(lambda column: column.sum(skipna=False))
    unknown = "cost unknown: tokens or prices of some calls are"
    usage["note"] = np.where(usage["cost_usd"].isna(), unknown, "at the prices of the days")
    days = by_model["day"]
    return usage.assign(calls=by_model.size(), asked_from=days.min(), asked_to=days.max()).reset_index()
