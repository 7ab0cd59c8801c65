import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests import fault_server
from tests.fault_server import HANG, RESET, SHORT, FaultServer, fault
from workflow_scripts.apis.calls import Refused
from workflow_scripts.apis.llm import Completion, Llm, LlmBlock, Price, usage_of
from workflow_scripts.apis.store import AnswerStore
from workflow_scripts.errors import ApiError

KEY = "sk-canary-8899aabbccdd"
BLOCK = {
    "model": "deepseek-chat", "answers_as": ["deepseek-chat"], "key_variable": "TOY_KEY", "temperature": 1.0, "seed": 7,
    "max_completion_tokens": 64, "price": None,
    "calls": {
        "timeout_seconds": 0.6, "attempts": 3, "first_wait_seconds": 0.001, "longest_wait_seconds": 1, "per_second": None,
    },
}  # fmt: skip
HTML = "<html>Please log in.</html>"
QUOTA = json.dumps({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}})


@pytest.fixture
def store(tmp_path):
    with AnswerStore(tmp_path / "answers.sqlite") as opened:
        yield opened


@pytest.fixture
def llm(monkeypatch, store):
    """A function that makes a client of a server."""
    monkeypatch.setenv("TOY_KEY", KEY)

    def make(server, offline=False, **changes):
        block = LlmBlock.parse(BLOCK | {"base_url": f"{server.url}v1"} | changes, "llms.toy")
        return Llm(block, "llms.toy", store, offline=offline)

    return make


def test_a_completion_comes_with_model_and_tokens_and_is_asked_once(llm):
    with FaultServer(fault_server.chat()) as server:
        first = llm(server).complete("Write.")
        assert first == Completion(
            model="deepseek-chat", text="The old town is on the river.", finish_reason="stop", prompt_tokens=100, completion_tokens=50
        )  # fmt: skip
        assert llm(server, offline=True).complete("Write.") == first
        assert len(server.requests) == 1
        asked = server.requests[0]
    assert asked["messages"] == [{"role": "user", "content": "Write."}]
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (1.0, 7, 64)
    assert asked["_headers"]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "change", [{"model": "other"}, {"temperature": 0.5}, {"seed": 8}, {"max_completion_tokens": 65}], ids=str
)
def test_every_setting_that_decides_an_answer_asks_anew(llm, change):
    with FaultServer(fault_server.chat()) as server:
        llm(server).complete("Write.")
        llm(server, **change).complete("Write.")
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "step",
    [
        fault(429), fault(429, Retry_After="0"), fault(500), fault(503, HTML), RESET, HANG, SHORT, fault(200, HTML, Content_Type="text/html"),
        fault(200, '{"choices": [{"mess'), fault(200, '{"error": {"message": "busy"}}'), fault(200, '{"choices": []}'),
    ],
    ids=str,
)  # fmt: skip
def test_a_fault_that_passes_leaves_no_trace(llm, store, step):
    with FaultServer(fault_server.chat(), [step, step]) as server:
        server.hang_seconds = 1.2
        assert llm(server).complete("Write.").text == "The old town is on the river."
        assert len(server.requests) == 3
    assert len(store) == 1


@pytest.mark.parametrize("step", [fault(429), fault(502), RESET, HANG], ids=str)
def test_a_fault_that_stays_ends_the_job(llm, store, step):
    with FaultServer(fault_server.chat(), [step] * 9) as server:
        server.hang_seconds = 1.2
        with pytest.raises(ApiError, match=r"llms\.toy: .*3 attempts in a row"):
            llm(server).complete("Write.")
        assert len(server.requests) == 3
    assert len(store) == 0


@pytest.mark.parametrize(
    "body", [HTML, '{"choices": [{"mess', '{"choices": []}', '{"error": {"message": "busy"}}']
)
def test_an_answer_that_stays_unusable_is_a_refusal_of_the_one_prompt(llm, store, body):
    with FaultServer(lambda asked: body) as server, pytest.raises(Refused):
        llm(server).complete("Write.")
    assert len(store) == 0


def test_a_wrong_key_stops_at_once_and_is_not_shown(llm):
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with FaultServer(fault_server.chat(), [fault(401, body)] * 9) as server:
        with pytest.raises(ApiError, match="key is wrong or missing") as stopped:
            llm(server).complete("Write.")
        assert len(server.requests) == 1
    assert KEY not in str(stopped.value)


def test_an_empty_quota_is_not_asked_again(llm):
    with FaultServer(fault_server.chat(), [fault(429, QUOTA)] * 9) as server:
        with pytest.raises(ApiError, match="quota is used up"):
            llm(server).complete("Write.")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "key", ["sk-canary\nX-Other: 1", "sk-canary…8899", "sk-canáry", "sk-canary 8899", "sk-canary\x7f"]
)
def test_a_key_that_can_be_none_is_neither_sent_nor_shown(llm, monkeypatch, key):
    """The client would quote it in an error of its own, try again, or call each prompt refused."""
    with FaultServer(fault_server.chat()) as server:
        client = llm(server)
        monkeypatch.setenv("TOY_KEY", key)
        with pytest.raises(ApiError, match="TOY_KEY holds a space, a line break") as stopped:
            client.complete("Write.")
        assert key not in str(stopped.value) and key[:8] not in str(stopped.value)
        assert server.requests == []


def test_a_missing_key_is_named_before_anything_is_asked(llm, monkeypatch):
    monkeypatch.delenv("TOY_KEY")
    with FaultServer(fault_server.chat()) as server:
        with pytest.raises(ApiError, match="environment variable TOY_KEY is not set"):
            llm(server).complete("Write.")
        assert server.requests == []


def test_another_model_that_answers_ends_the_job_or_is_recorded(llm, store):
    with FaultServer(fault_server.chat(model="small-and-cheap")) as server:
        with pytest.raises(ApiError, match="asked deepseek-chat, answered by small-and-cheap"):
            llm(server).complete("Write.")
        assert len(store) == 0
        assert llm(server, answers_as=None).complete("Write.").model == "small-and-cheap"


@pytest.mark.parametrize(
    ("text", "finish"), [("", "stop"), (None, "content_filter"), ("half a sen", "length")]
)
def test_what_was_paid_for_is_kept_even_if_it_is_of_no_use(llm, store, text, finish):
    with FaultServer(fault_server.chat(lambda asked: text, finish=finish)) as server:
        completion = llm(server).complete("Write.")
    assert (completion.text, completion.finish_reason) == (text or "", finish)
    assert len(store) == 1


def test_offline_a_missing_answer_ends_the_job(llm):
    with FaultServer(fault_server.chat()) as server:
        with pytest.raises(ApiError, match="not in the store, and the study is offline"):
            llm(server, offline=True).complete("Write.")
        assert server.requests == []


def test_cost_is_tokens_times_price_and_unknown_where_a_call_was_not_counted():
    counted = Completion(
        model="m", text="", finish_reason="stop", prompt_tokens=1_000_000, completion_tokens=500_000
    )
    uncounted = Completion(
        model="m", text="", finish_reason="stop", prompt_tokens=None, completion_tokens=None
    )
    price = Price(input_usd_per_million=0.27, output_usd_per_million=1.1, as_of="2025-02-09")
    (usage,) = usage_of([counted, counted], price)
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 2_000_000, 1_000_000)
    assert usage.cost_usd == pytest.approx(2 * 0.27 + 1.1)
    assert usage.note == "at the prices of 2025-02-09"
    (usage,) = usage_of([counted, uncounted], price)
    assert (usage.cost_usd, usage.prompt_tokens) == (None, None)
    assert "did not count" in usage.note
    (usage,) = usage_of([counted], None)
    assert usage.cost_usd is None
    assert "no price" in usage.note


# A real server


def write_llama(folder):
    """A Llama of one layer with a tokeniser of bytes: enough to answer noise."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate(["<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=512, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture
def transformers_server(tmp_path):
    """``transformers serve`` with a tiny random model; skipped where its packages are not there."""
    pytest.importorskip("fastapi", reason="transformers serve needs fastapi")
    pytest.importorskip("uvicorn", reason="transformers serve needs uvicorn")
    write_llama(tmp_path / "llama")
    (tmp_path / "hf/hub").mkdir(parents=True)
    port = 20000 + os.getpid() % 20000
    command = ["-m", "transformers.cli.transformers", "serve", str(tmp_path / "llama"), "--device", "cpu"]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command, "--host", "127.0.0.1", "--port", str(port)],
            env=os.environ | {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).read()
                break
            except OSError:
                assert process.poll() is None, (tmp_path / "server.log").read_text()[-2000:]
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1", str(tmp_path / "llama")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def test_a_real_server_answers_the_real_client(transformers_server, store, monkeypatch):
    url, model = transformers_server
    monkeypatch.setenv("TOY_KEY", KEY)
    changes = {
        "base_url": url,
        "model": model,
        "answers_as": None,
        "max_completion_tokens": 12,
        "temperature": 0,
    }
    calls = BLOCK["calls"] | {"timeout_seconds": 120}
    block = LlmBlock.parse(BLOCK | changes | {"calls": calls}, "llms.toy")
    completion = Llm(block, "llms.toy", store, offline=False).complete("The river")
    assert completion.model.startswith(model)
    assert completion.finish_reason in ("length", "stop")
    assert completion.prompt_tokens == len("The river")
    assert 0 < completion.completion_tokens <= 12
    wrong = LlmBlock.parse(BLOCK | changes | {"calls": calls, "model": "no/such-model"}, "llms.toy")
    with pytest.raises((Refused, ApiError)):
        Llm(wrong, "llms.toy", store, offline=False).complete("The river")
