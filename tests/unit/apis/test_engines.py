"""What a client does about a server that fails, the same whichever engine it is; a server of faults stands for each."""

import json
from urllib.parse import urlsplit

import pytest
from requests.adapters import HTTPAdapter

from tests import fault_server, tiny
from tests.fault_server import DRIP, DRIPPING_HEADERS, HANG, RESET, SHORT, FaultServer, fault, patience
from workflow_scripts.apis.asking import Watch, settled
from workflow_scripts.apis.llm import Llm
from workflow_scripts.apis.translators import Direction, translator_of
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.llms import Calls, LlmBlock
from workflow_scripts.settings.translators import TranslatorSlice

KEY = "sk-canary-8899aabbccdd"
CALLS = {
    "timeout_seconds": 30, "attempts": 3, "first_wait_seconds": 0.001, "longest_wait_seconds": 1, "workers": 1,
    "per_second": None, "per_day": None,
}  # fmt: skip
HTML = "<html><body>Please log in to the network.</body></html>"
TEXTS = tiny.sentences(8)
PROPER = {
    "libretranslate": fault_server.libretranslate,
    "google": fault_server.google,
    "llm": fault_server.chat(lambda asked: fault_server.foreign(asked["messages"][0]["content"], "es")),
}


class ToLoopback(HTTPAdapter):
    """Sends what is meant for Google to a server here."""

    def __init__(self, server):
        super().__init__()
        self.server = server

    def send(self, request, **settings):
        request.url = (
            self.server.url.rstrip("/") + urlsplit(request.url)._replace(scheme="", netloc="").geturl()
        )
        return super().send(request, **settings)


@pytest.fixture(params=PROPER)
def name(request, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)
    return request.param


@pytest.fixture
def client(name, ledger):
    """A function that makes the engine's client of a server."""

    def make(server, **changes):
        calls = CALLS | changes
        if name == "llm":
            block = {
                "base_url": f"{server.url}v1", "model": "toy", "answers_as": None, "key_variable": "TOY_KEY",
                "temperature": 1.0, "seed": 7, "max_completion_tokens": 64, "tokens_parameter": "max_tokens",
                "price": None, "calls": calls,
            }  # fmt: skip
            return Llm(LlmBlock.parse(block, "llms.toy"), "llms.toy", ledger)
        block = {"engine": name, "calls": calls}
        if name == "libretranslate":
            block |= {"url": server.url, "key_variable": "TOY_KEY", "batch_sentences": 1}
        direction = Direction(place="llms.toy", source="en", target="es")
        engine = translator_of(
            TranslatorSlice.parse({"translator": block}, "x").translator, direction, ledger
        )
        engine.client.session.mount("https://translate.google.com/", ToLoopback(server))
        return engine

    return make


def rows_of(engine, ledger, texts=TEXTS, most_without=1000):
    requests = [engine.request(text) for text in texts]
    rows = settled(requests, ledger, engine, Watch(engine.place, most_without), offline=False)
    return [rows[request.key] for request in requests]


def answers(engine, ledger, texts=TEXTS):
    return [row.answer if row.status == "usable" else row.status for row in rows_of(engine, ledger, texts)]


WELL = [fault_server.foreign(text, "es") for text in TEXTS]


@pytest.mark.parametrize(
    ("step", "times"),
    [
        (fault(429), 2), (fault(429, Retry_After="0"), 2), (fault(500), 2), (fault(503, HTML), 2), (RESET, 2),
        (HANG, 2), (SHORT, 2), (fault(200, HTML), 1), (fault(200, '{"error": {"message": "busy"}}'), 1),
    ],
    ids=str,
)  # fmt: skip
def test_a_fault_that_passes_leaves_no_trace(client, name, ledger, step, times):
    with FaultServer(PROPER[name], [None, *[step] * times]) as server:
        assert answers(client(server, **patience(step)), ledger) == WELL
        assert len(server.requests) == len(TEXTS) + times
    assert {row.status for row in ledger.rows()} == {"usable"}


@pytest.mark.parametrize("step", [fault(429), fault(502), RESET, HANG], ids=str)
def test_a_fault_that_stays_ends_the_job_and_keeps_what_was_done(client, name, ledger, step):
    with FaultServer(PROPER[name], [None] * 5 + [step] * 3) as server:
        with pytest.raises(ApiError, match=r"llms\.toy: .*3 attempts in a row\. Finished answers are kept"):
            answers(client(server, **patience(step)), ledger)
        assert (len(ledger), len(server.requests)) == (5, 8)
        assert answers(client(server), ledger) == WELL  # it is back
        assert len(server.requests) == 8 + len(TEXTS) - 5


ENDS = {
    "a wrong key": (fault(401, f"Invalid API key {KEY}"), "key is wrong or missing"),
    "no right": (fault(403, f"Invalid API key {KEY}"), "key is wrong or missing"),
    "an empty quota": (fault(429, '{"error": {"code": "insufficient_quota"}}'), "quota is used up"),
    "no such address": (fault(404, f"<h1>Not found</h1> {KEY}"), r"HTTP 404 .*There is nothing to ask"),
    "a redirection": (
        fault(302, KEY, Location=f"http://127.0.0.1/{KEY}?api_key={KEY}"),
        r"sent on to http://127\.0\.0\.1, where nothing is sent",
    ),
    "a long wait": (fault(429, Retry_After="9999"), "asks to wait 9999 s"),
}


@pytest.mark.parametrize(("step", "message"), ENDS.values(), ids=ENDS)
def test_a_server_that_will_not_is_asked_once_whatever_the_number_of_workers(
    client, name, ledger, step, message
):
    with FaultServer(PROPER[name], [step] * 99) as server:
        with pytest.raises(ApiError, match=message) as stopped:
            rows_of(client(server, workers=16), ledger)
        assert len(server.requests) == 1
    assert KEY not in str(stopped.value)
    assert len(ledger) == 0


def test_nothing_is_sent_on_to_another_server(client, name, ledger):
    with FaultServer(PROPER[name]) as other, FaultServer(PROPER[name]) as server:
        server.script = [fault(307, "", Location=f"{other.url}translate")] * 9
        with pytest.raises(ApiError, match=r"HTTP 307.* where nothing is sent"):
            rows_of(client(server), ledger)
        assert (len(server.requests), other.requests) == (1, [])


@pytest.mark.parametrize("step", [DRIP, DRIPPING_HEADERS])
def test_an_answer_without_an_end_ends_the_job(client, name, ledger, monkeypatch, step):
    with FaultServer(PROPER[name], [None, None, step]) as server:
        engine = client(server)
        assert answers(engine, ledger, TEXTS[:2]) == WELL[:2]
        with monkeypatch.context() as hurried:
            hurried.setattr(Calls, "attempt_seconds", 0.5)
            with pytest.raises(ApiError, match=r"llms\.toy: no whole answer within 0\.5 s"):
                rows_of(engine, ledger)
        assert len(server.requests) == 3
        assert answers(engine, ledger) == WELL


def test_an_end_in_the_middle_keeps_what_was_under_way(client, name, ledger):
    texts = tiny.sentences(60)
    with FaultServer(PROPER[name], [None] * 30 + [fault(401)] * 99) as server:
        with pytest.raises(ApiError, match="key is wrong"):
            rows_of(client(server, workers=8), ledger, texts)
        assert len(ledger) == 30 and len(server.requests) <= 30 + 8
        server.script.clear()
        before = len(server.requests)
        assert len(answers(client(server), ledger, texts)) == 60
        assert len(server.requests) - before == 30


def test_a_refused_request_stays_refused_until_it_is_forgotten(client, name, ledger):
    with FaultServer(PROPER[name], [None, fault(413, f"too long {KEY}")]) as server:
        first = rows_of(client(server), ledger)
        assert [row.status for row in first] == ["usable", "refused", *["usable"] * 6]
        assert "HTTP 413 (too long [key])" in first[1].reason
        assert rows_of(client(server), ledger) == first
        assert len(server.requests) == len(TEXTS)
        ledger.forget([first[1].request])
        assert answers(client(server), ledger) == WELL


def test_a_key_that_a_server_echoes_is_in_no_column(client, name, ledger, tmp_path):
    body = json.dumps({"error": {"message": f"no {KEY}"}, "translatedText": None})
    with FaultServer(PROPER[name], [None, fault(400, body), *[fault(200, body)] * 3]) as server:
        rows_of(client(server), ledger, TEXTS[:3])
    content = (tmp_path / "answers.sqlite").read_bytes()
    assert b"en" in content and KEY.encode() not in content


@pytest.mark.parametrize("key", [None, "sk-canary\nX-Other: 1", "sk-canary…8899", "sk-canary 8899"])
def test_a_key_that_is_missing_or_can_be_none_is_neither_sent_nor_shown(
    client, name, ledger, monkeypatch, key
):
    if name == "google":
        pytest.skip("needs no key")
    monkeypatch.delenv("TOY_KEY") if key is None else monkeypatch.setenv("TOY_KEY", key)
    with FaultServer(PROPER[name]) as server:
        with pytest.raises(ApiError, match=r"TOY_KEY (is not set|holds a space, a line break)") as stopped:
            rows_of(client(server), ledger)
        assert server.requests == []
    assert "canary" not in str(stopped.value)
