import json

import numpy as np
import pytest

from tests.rooms.apis.conftest import KEY, PRICE, statuses
from tests.support.fault_server import FaultServer, chat, fault
from workflow_scripts.apis.ledger import ApiRequest, Row
from workflow_scripts.apis.llm import usage_by_model
from workflow_scripts.errors import ApiError

COST = (100 * 1 + 50 * 2) / 1e6
"""What a completion costs: the server counts 100 tokens of a prompt and 50 of an answer."""


@pytest.fixture
def complete(make, ask):
    """A function that gives the row of a prompt, by a model on a server."""
    return lambda server, prompt="Write.", **changes: ask(make("model", server, **changes), [prompt])[0]


def test_a_completion_comes_with_tokens_and_is_asked_once(complete, make, ask):
    """A completion comes with model and tokens and is asked once."""
    with FaultServer(chat()) as server:
        first = complete(server, price=PRICE)
        assert (first.answer, first.status) == ("The old town is on the river.", "usable")
        assert first.metadata.items() >= {
            "model": "deepseek-chat", "finish_reason": "stop", "prompt_tokens": 100, "completion_tokens": 50
        }.items()  # fmt: skip
        assert ask(make("model", server), ["Write."], offline=True) == [first]
        (asked,) = server.requests
    assert asked["messages"] == [{"role": "user", "content": "Write."}]
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (1.0, 7, 64)
    assert asked["_headers"]["authorization"] == f"Bearer {KEY}"


def test_nothing_of_the_sdks_environment_is_sent(complete, monkeypatch):
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "http://canary.example")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: canary\nX-Other: canary")
    with FaultServer(chat()) as server:
        complete(server)
        complete(server, "Again.", key_variable=None)
        one, other = (request["_headers"] for request in server.requests)
    assert one.pop("authorization") == f"Bearer {KEY}"
    assert one == other
    assert "canary" not in str(one)
    assert "x-other" not in one


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        ({"model": "other"}, True), ({"temperature": 0.5}, True), ({"seed": 8}, True), ({"max_completion_tokens": 65}, True),
        ({"base_url": "http://elsewhere.example/v1"}, False), ({"key_variable": None}, False),
        ({"tokens_parameter": "max_completion_tokens"}, False), ({"price": None}, False),
        ({"timeout_seconds": 9, "workers": 3}, False),
    ],
    ids=str,
)  # fmt: skip
def test_only_settings_of_an_answer_send_a_request_again(complete, change, decides):
    """Only settings that decide an answer send a request again."""
    with FaultServer(chat()) as server:
        first, again = complete(server), complete(server, **change)
        assert len(server.requests) == 1 + decides
        assert again == first or decides


MESSAGE = {"role": "assistant", "content": "The old town."}
NO_COMPLETION = [
    [], None, "The old town.", {"0": MESSAGE}, ["The old town."], [None], [{"message": "The old town."}],
    [{"text": "The old town."}],
    *([{"message": MESSAGE | {"content": content}}] for content in (
        7, {"text": "The old town."}, ["The old town."], [], [{"type": "text", "text": None}],
        [{"type": "image_url", "image_url": {"url": "x"}}],
    )),
]  # fmt: skip


USAGE = {"prompt_tokens": 100, "completion_tokens": 50}
BODIES = [
    json.dumps({"model": "deepseek-chat", "choices": choices, "usage": USAGE}) for choices in NO_COMPLETION
]


OF_NO_USE = [
    ("", "stop", "empty"), (None, "content_filter", "content filter"), (" \n", "stop", "empty"),
    ("I'm sorry, but I can't. Ask for more.", "stop", "no plain sentence"), ("The old town", "length", "cut off"),
    ("The old town", "stop", "no plain sentence"), ("Words.\nThe old town.", "stop", "not a list of 1 sentences"),
    ("<think>Words, then. Five sentences", "length", "cut off"), ("Plan.</think>\n", "stop", "not a list of 1 sentences"),
    ("<html><body>Busy</body></html>", "stop", "markup"), ("The town \ud800 is old.", "stop", "broken characters"),
    ("The town \x00 is old.", "stop", "broken characters"), ("Error 502: Bad Gateway", "stop", "no plain sentence"),
    ("The old town is here.", 7, "cut off"), ("The old town is here.", {"type": "x"}, "cut off"), ("The old town.", ["stop"], "cut off"),
]  # fmt: skip
KINDS = [
    *((lambda asked, body=body: body, "no completion", body) for body in BODIES),
    *(
        (chat(lambda asked, said=said: said, finish=finish), reason, None)
        for said, finish, reason in OF_NO_USE
    ),
]


@pytest.mark.parametrize(("server", "reason", "kept"), KINDS)
def test_an_unusable_answer_is_paid_once_and_kept(complete, server, reason, kept):
    """An unusable answer is paid once and kept with the reason."""
    with FaultServer(server) as server:
        row = complete(server)
        assert (row.status, row.reason) == ("rejected", reason)
        assert kept in (None, row.answer)
        assert row.cost_usd == pytest.approx(COST)
        assert complete(server) == row
        assert len(server.requests) == 1
    (usage,) = usage_by_model([row]).to_dict("records")
    assert usage.items() >= {"calls": 1, "prompt_tokens": 100, "completion_tokens": 50}.items()


def test_a_body_that_breaks_off_is_asked_again_and_never_final(complete, ledger):
    whole = chat()({})
    script = [fault(200, whole[:length]) for length in (30, 120, len(whole) - 3)]
    with FaultServer(chat(), script) as server:
        assert (complete(server).status, len(server.requests)) == ("failed", 3)  # attempts
        row = complete(server)
        assert (row.status, len(server.requests)) == ("usable", 4)


MODEL_SAID = json.loads(chat()({}))
NO_ANSWERS = [
    {"detail": "Too many requests"}, {"object": "error", "message": "busy", "code": 429}, {}, {"choices": []},
    {"error": {"message": "upstream"}, "choices": [], "usage": USAGE},
    MODEL_SAID | {"choices": [{"message": MESSAGE, "finish_reason": "error", "error": {"code": 502}}]},
]  # fmt: skip
"""Messages of servers with status 200, which no model wrote."""


@pytest.mark.parametrize("body", NO_ANSWERS)
def test_an_error_with_status_200_is_asked_again_and_never_final(complete, body):
    """A message of a server with status 200 is asked again and never final."""
    with FaultServer(chat(), [fault(200, json.dumps(body))] * 3) as server:
        assert (complete(server).status, len(server.requests)) == ("failed", 3)  # attempts
        assert (complete(server).status, len(server.requests)) == ("usable", 4)


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "The old "}, {"type": "text", "text": "town."}],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "A town?"}]}, {"type": "text", "text": "The old town."}],
    ],
)  # fmt: skip
def test_parts_of_a_message_are_joined_without_thoughts(complete, content):
    choice = {"message": MESSAGE | {"content": content}, "finish_reason": "stop"}
    with FaultServer(chat(), [fault(200, json.dumps(MODEL_SAID | {"choices": [choice]}))]) as server:
        row = complete(server)
    assert (row.status, row.answer) == ("usable", "The old town.")


def test_a_row_with_a_stored_reason_that_is_no_text_is_read(complete, make, ask, ledger):
    request = make("model").request("Write.")
    ledger.save([Row(request, "The old town.", "usable", attributes='{"finish_reason": 7, "model": "m"}')])
    assert complete(None).reason == "cut off"


def test_json_is_asked_for_by_a_schema_and_read(make, ask):
    said = '{"sentences": ["The old town.", "The river is near."]}'
    with FaultServer(chat(lambda asked: said)) as server:
        (row,) = ask(make("model", server, sentences=2, response_format="json_schema"), ["Write."])
        (asked,) = server.requests
    assert (row.status, row.answer) == ("usable", said)
    form = asked["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"]["properties"]["sentences"]["items"] == {"type": "string"}


def test_another_model_that_answers_ends_the_job_or_is_recorded(complete, ledger):
    with FaultServer(chat(model="small-and-cheap")) as server:
        with pytest.raises(ApiError, match="'small-and-cheap' has answered instead of 'deepseek-chat'"):
            complete(server, model_ids=["deepseek-chat"])
        assert len(statuses(ledger)) == 0
        assert complete(server, model_ids=None).metadata["model"] == "small-and-cheap"


def test_costs_are_unknown_where_a_call_was_not_counted():
    """Costs are added and unknown where a call was not counted."""

    def row(model, cost, tokens, day):
        metadata = {"model": model, "prompt_tokens": tokens, "completion_tokens": tokens}
        asked = ApiRequest("openai", "x", "", "", day)
        return Row(asked, "", "usable", "", f"{day}T00:00:00Z", cost, json.dumps(metadata))

    counted = [row("m", 0.25, 10, "2026-01-05"), row("m", 0.5, 20, "2026-01-02")]
    (usage,) = usage_by_model(counted).to_dict("records")
    assert usage == {
        "model": "m", "calls": 2, "prompt_tokens": 30, "completion_tokens": 30, "cost_usd": 0.75,
        "note": "at the prices of the days", "asked_from": "2026-01-02", "asked_to": "2026-01-05",
    }  # fmt: skip
    more = [row("m", None, None, "2026-01-03"), row("a", 0.1, 1, "2026-01-01")]
    other, usage = usage_by_model([*counted, *more]).to_dict("records")
    assert (other["model"], other["cost_usd"]) == ("a", 0.1)
    assert np.isnan([usage["cost_usd"], usage["prompt_tokens"]]).all()
    assert "cost unknown" in usage["note"]
