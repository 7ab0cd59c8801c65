import json
import os
import signal
import socket
import subprocess
import sys

import pytest
import requests
from tenacity import Retrying, stop_after_delay, wait_fixed

from tests import fault_server
from tests.fault_server import FaultServer
from workflow_scripts.apis.asking import Watch, settled
from workflow_scripts.apis.ledger import Request, Row
from workflow_scripts.apis.llm import Llm, usage_of
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.llms import LlmBlock

KEY = "sk-canary-8899aabbccdd"
BLOCK = {
    "model": "deepseek-chat", "answers_as": ["deepseek-chat"], "key_variable": "TOY_KEY", "temperature": 1.0, "seed": 7,
    "max_completion_tokens": 64, "tokens_parameter": "max_tokens", "price": None,
    "calls": {
        "timeout_seconds": 30, "attempts": 3, "first_wait_seconds": 0.001, "longest_wait_seconds": 1, "workers": 1,
        "per_second": None, "per_day": None,
    },
}  # fmt: skip
HTML = "<html>Please log in.</html>"


@pytest.fixture
def llm(monkeypatch, ledger):
    """A function that makes a client of a server."""
    monkeypatch.setenv("TOY_KEY", KEY)

    def make(server, **changes):
        block = LlmBlock.parse(BLOCK | {"base_url": f"{server.url}v1"} | changes, "llms.toy")
        return Llm(block, "llms.toy", ledger)

    return make


def complete(llm, ledger, *prompts, offline=False):
    """The rows of some prompts, in order; the last one's alone where there is one."""
    requests = [llm.request(prompt) for prompt in prompts or ["Write."]]
    rows = settled(requests, ledger, llm, Watch(llm.place, 1000), offline=offline)
    found = [rows[request.key] for request in requests]
    return found if len(found) > 1 else found[0]


def test_a_completion_comes_with_model_and_tokens_and_is_asked_once(llm, ledger):
    with FaultServer(fault_server.chat()) as server:
        first = complete(llm(server), ledger)
        assert (first.answer, first.status) == ("The old town is on the river.", "usable")
        noted = json.loads(first.attributes)
        assert noted.items() >= {
            "model": "deepseek-chat", "finish_reason": "stop", "prompt_tokens": 100, "completion_tokens": 50
        }.items()  # fmt: skip
        assert complete(llm(server), ledger, offline=True) == first
        assert len(server.requests) == 1
        asked = server.requests[0]
    assert asked["messages"] == [{"role": "user", "content": "Write."}]
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (1.0, 7, 64)
    assert asked["_headers"]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        ({"model": "other"}, True), ({"temperature": 0.5}, True), ({"seed": 8}, True), ({"max_completion_tokens": 65}, True),
        ({"base_url": "http://elsewhere.example/v1"}, False), ({"key_variable": None}, False),
        ({"tokens_parameter": "max_completion_tokens"}, False),
        ({"price": {"input_usd_per_million": 1, "output_usd_per_million": 1, "as_of": "2026-01-01"}}, False),
        ({"calls": BLOCK["calls"] | {"timeout_seconds": 9, "workers": 3}}, False),
    ],
    ids=str,
)  # fmt: skip
def test_every_setting_that_decides_an_answer_asks_anew_and_no_other_does(llm, ledger, change, decides):
    with FaultServer(fault_server.chat()) as server:
        first = complete(llm(server), ledger)
        again = complete(llm(server, **change), ledger)
        assert len(server.requests) == 1 + decides and (again == first or decides)


def test_newer_models_are_asked_with_the_parameters_that_they_know(llm, ledger):
    with FaultServer(fault_server.chat()) as server:
        complete(llm(server, tokens_parameter="max_completion_tokens", temperature=None, seed=None), ledger)
        (asked,) = server.requests
    assert asked["max_completion_tokens"] == 64
    assert not {"max_tokens", "temperature", "seed"} & asked.keys()


@pytest.mark.parametrize("body", [HTML, '{"error": {"message": "busy"}}', '{"error": "busy", "choices": []}'])
def test_a_page_or_an_error_that_stays_is_a_failure_that_the_next_job_asks_again(llm, ledger, body):
    with FaultServer(lambda asked: body) as server:
        row = complete(llm(server), ledger)
        assert (row.status, len(server.requests)) == ("failed", 2)
    assert row.reason in ("no completion", "garbled")
    with FaultServer(fault_server.chat()) as server:
        assert complete(llm(server), ledger).status == "usable"


MESSAGE = {"role": "assistant", "content": "The old town."}


PRICE = {"input_usd_per_million": 1, "output_usd_per_million": 2, "as_of": "2026-01-01"}


@pytest.mark.parametrize(
    "choices",
    [
        [], None, "The old town.", {"0": MESSAGE}, ["The old town."], [None], [{"message": "The old town."}],
        [{"text": "The old town."}],
        *([{"message": MESSAGE | {"content": content}}] for content in (
            7, {"text": "The old town."}, ["The old town."], [], [{"type": "text", "text": None}],
            [{"type": "image_url", "image_url": {"url": "x"}}],
        )),
    ],
    ids=str,
)  # fmt: skip
def test_a_paid_answer_that_cannot_be_read_is_paid_once_and_stands_in_the_ledger(llm, ledger, choices):
    usage = {"prompt_tokens": 100, "completion_tokens": 50}
    body = json.dumps({"id": "1", "model": "deepseek-chat", "choices": choices, "usage": usage})
    with FaultServer(lambda asked: body) as server:
        row = complete(llm(server, price=PRICE), ledger)
        assert (row.status, row.reason, row.answer) == ("rejected", "no completion", body)
        assert row.cost_usd == pytest.approx((100 + 2 * 50) / 1e6)
        assert complete(llm(server), ledger) == row
        assert len(server.requests) == 1
    (counted,) = usage_of([row])
    assert (counted["calls"], counted["prompt_tokens"], counted["completion_tokens"]) == (1, 100, 50)


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "The old town "}, {"type": "text", "text": "is on the river."}],
        [
            {"type": "thinking", "thinking": "A town?"},
            {"type": "text", "text": "The old town is on the river."},
        ],
        {"type": "text", "text": "The old town is on the river."},
    ],
)
def test_a_text_in_parts_is_read(llm, ledger, content):
    with FaultServer(fault_server.chat(lambda asked: content)) as server:
        row = complete(llm(server), ledger)
    assert (row.status, row.answer) == ("usable", "The old town is on the river.")


def test_another_model_that_answers_ends_the_job_or_is_recorded(llm, ledger):
    with FaultServer(fault_server.chat(model="small-and-cheap")) as server:
        with pytest.raises(ApiError, match="asked deepseek-chat, answered by small-and-cheap"):
            complete(llm(server), ledger)
        assert len(ledger) == 0
        row = complete(llm(server, answers_as=None), ledger)
    assert json.loads(row.attributes)["model"] == "small-and-cheap"


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("", "stop", "empty"), (None, "content_filter", "content filter"), (" \n", "stop", "empty"),
        ("I'm sorry, but I can't help with that.", "stop", "refusal"), ("As an AI language model, I", "stop", "refusal"),
        ("<think>Words, then. Five sentences", "length", "thinking alone"), ("Plan.</think>\n", "stop", "thinking alone"),
        ("<html><body>Busy</body></html>", "stop", "markup"), ("The town \ud800 is old.", "stop", "broken characters"),
        ("The town \x00 is old.", "stop", "broken characters"), ("Error 502: Bad Gateway", "stop", "error message"),
    ],
)  # fmt: skip
def test_what_is_of_no_use_is_kept_with_the_reason_and_not_paid_again(llm, ledger, text, finish, reason):
    with FaultServer(fault_server.chat(lambda asked: text, finish=finish)) as server:
        row = complete(llm(server, price=PRICE), ledger)
        assert (row.status, row.reason) == ("rejected", reason)
        assert row.cost_usd == pytest.approx((100 + 2 * 50) / 1e6)
        assert complete(llm(server), ledger) == row
        assert len(server.requests) == 1


def test_a_cut_answer_is_usable_up_to_its_last_line(llm, ledger):
    with FaultServer(fault_server.chat(lambda asked: "1. One.\n2. Half a sen", finish="length")) as server:
        assert complete(llm(server), ledger).status == "usable"


def test_sixty_empty_answers_are_not_paid(llm, ledger):
    with FaultServer(fault_server.chat(lambda asked: "")) as server:
        with pytest.raises(ApiError, match="5 of them in a row; the last was rejected, empty"):
            complete(llm(server), ledger, *map(str, range(60)))
        assert len(server.requests) == 5
    with FaultServer(fault_server.chat()) as server:
        assert {row.status for row in complete(llm(server), ledger, *map(str, range(60)))} == {"usable"}
        assert len(server.requests) == 60


def test_a_key_that_a_model_says_is_in_no_column(llm, ledger, tmp_path):
    echoed = fault_server.chat(lambda asked: f"The key {KEY} is on the river.", model=f"m-{KEY}")
    with FaultServer(echoed) as server:
        complete(llm(server, answers_as=None), ledger)
    content = (tmp_path / "answers.sqlite").read_bytes()
    assert b"on the river" in content and KEY.encode() not in content


def test_costs_are_added_and_unknown_where_a_call_was_not_counted():
    def row(model, cost, tokens, day):
        noted = {"model": model, "prompt_tokens": tokens, "completion_tokens": tokens}
        asked = Request("openai", "x", "", "", day)
        return Row(asked, "", "usable", "", f"{day}T00:00:00Z", cost, json.dumps(noted))

    counted = [row("m", 0.25, 10, "2026-01-05"), row("m", 0.5, 20, "2026-01-02")]
    (usage,) = usage_of(counted)
    assert usage == {
        "model": "m", "calls": 2, "prompt_tokens": 30, "completion_tokens": 30, "cost_usd": 0.75,
        "note": "at the prices of the days", "asked_from": "2026-01-02", "asked_to": "2026-01-05",
    }  # fmt: skip
    other, usage = usage_of([*counted, row("m", None, None, "2026-01-03"), row("a", 0.1, 1, "2026-01-01")])
    assert (other["model"], other["cost_usd"]) == ("a", 0.1)
    assert (usage["cost_usd"], usage["prompt_tokens"]) == (None, None)
    assert "cost unknown" in usage["note"]


# A real server


@pytest.fixture
def transformers_server(tmp_path, tiny_bert):
    """``transformers serve`` with a random Llama of one layer; skipped where its packages are not there."""
    for needed in ("fastapi", "openai", "uvicorn"):
        pytest.importorskip(needed, reason=f"transformers serve needs {needed}")
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    tokenizer.save_pretrained(tmp_path / "llama")
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=512, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(tmp_path / "llama")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["-m", "transformers.cli.transformers", "serve", str(tmp_path / "llama"), "--device", "cpu"]
    address, environment = ["--host", "127.0.0.1", "--port", str(port)], {"HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [sys.executable, *command, *address], env=os.environ | environment, start_new_session=True
    )
    health = Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.5), reraise=True)
    try:
        health(requests.get, f"http://127.0.0.1:{port}/health", timeout=1)
        yield f"http://127.0.0.1:{port}/v1", str(tmp_path / "llama")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@pytest.mark.slow
def test_a_real_server_answers_the_real_client(transformers_server, ledger, llm):
    url, model = transformers_server
    calls = BLOCK["calls"] | {"timeout_seconds": 120}
    changes = {
        "base_url": url,
        "answers_as": None,
        "max_completion_tokens": 12,
        "temperature": 0,
        "calls": calls,
    }
    row = complete(llm(FaultServer(str), model=model, **changes), ledger, "The river")
    noted = row.noted  # what it answers is noise, and may be rejected as such
    assert noted["model"].startswith(model) and noted["finish_reason"] in ("length", "stop")
    assert noted["prompt_tokens"] >= 2 and 0 < noted["completion_tokens"] <= 12
    wrong = llm(FaultServer(str), model="no/such-model", **changes)
    assert complete(wrong, ledger, "The river").status == "refused"
