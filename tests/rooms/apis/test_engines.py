"""Clients of every engine with a server that fails."""

import json

import pytest

from tests.rooms.apis.conftest import HTML, KEY, PROPER, TEXTS, WELL, answers, statuses
from tests.support import fault_server, toys
from tests.support.fault_server import DRIP, HANG, RESET, SHORT, FaultServer, fault, patience
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.apis import Calls


@pytest.fixture(params=PROPER)
def name(request):
    return request.param


@pytest.mark.parametrize(
    ("step", "times"),
    [
        (fault(429), 2), (fault(429, Retry_After="0"), 2), (fault(500), 2), (fault(503, HTML), 2), (RESET, 2),
        (HANG, 2), (SHORT, 2), (fault(200, HTML), 1), (fault(200, '{"error": {"message": "busy"}}'), 1),
    ],
    ids=str,
)  # fmt: skip
def test_a_temporary_fault_leaves_no_trace(make, ask, name, ledger, step, times):
    with FaultServer(PROPER[name], [None, *[step] * times]) as server:
        assert answers(ask(make(name, server, **patience(step)))) == WELL
        assert len(server.requests) == len(TEXTS) + times
    assert {*statuses(ledger)} == {"usable"}


@pytest.mark.parametrize("step", [fault(429), fault(502), RESET, HANG], ids=str)
def test_a_lasting_fault_ends_the_job_and_keeps_finished_answers(make, ask, name, ledger, step):
    with FaultServer(PROPER[name], [None] * 5 + [step] * 3) as server:
        with pytest.raises(
            ApiError,
            match=r"llms\.toy: http://127\.0\.0\.1:\S+: .*3 attempts in a row\. Run again when the server is back",
        ):
            ask(make(name, server, **patience(step)))
        assert (len(statuses(ledger)), len(server.requests)) == (5, 8)
        assert answers(ask(make(name, server))) == WELL  # it is back
        assert len(server.requests) == 8 + len(TEXTS) - 5


ENDS = {
    "a wrong key": (fault(401, f"Invalid API key {KEY}"), "key is wrong or missing|this machine"),
    "no right": (fault(403, f"Invalid API key {KEY}"), "key is wrong or missing|this machine"),
    "an empty quota": (fault(429, '{"error": {"code": "insufficient_quota"}}'), "quota is exhausted"),
    "no such address": (
        fault(404, f"<h1>Not found</h1> {KEY}"),
        r"HTTP 404 .*The server has no such address(: check url| or model: check base_url and model|: use another)",
    ),
    "a redirection": (
        fault(302, KEY, Location=f"http://127.0.0.1/{KEY}?api_key={KEY}"),
        r"redirected to http://127\.0\.0\.1/\S+, which is not followed",
    ),
    "a long wait": (fault(429, Retry_After="9999"), "requests a wait of 9999 s"),
}


@pytest.mark.parametrize(("step", "message"), ENDS.values(), ids=ENDS)
def test_a_server_that_refuses_all_is_asked_once(make, ask, name, ledger, step, message):
    with FaultServer(PROPER[name], [step] * 99) as server:
        engine = make(name, server, workers=16)
        with pytest.raises(ApiError, match=message) as stopped:
            ask(engine)
        assert len(server.requests) == 1
    assert KEY not in str(stopped.value)
    assert len(statuses(ledger)) == 0


def test_an_answer_without_an_end_ends_the_job(make, ask, name, monkeypatch):
    monkeypatch.setattr(Calls, "attempt_seconds", 0.5)
    with FaultServer(PROPER[name], [DRIP]) as server:
        with pytest.raises(
            ApiError, match=r"llms\.toy: http://127\S+: no complete answer within 0\.5 s and 8 MB"
        ):
            ask(make(name, server))
        assert len(server.requests) == 1


def test_a_longer_answer_than_any_real_one_ends_the_job(make, ask, name):
    with FaultServer(PROPER[name], [fault(200, " " * (8 << 20) + HTML)]) as server:
        with pytest.raises(ApiError, match=r"llms\.toy: http://127\S+: no complete answer within .* 8 MB"):
            ask(make(name, server))
        assert len(server.requests) == 1


def test_answers_in_flight_are_saved_when_a_job_ends(make, ask, name, ledger):
    with FaultServer(PROPER[name], [None] * 30 + [fault(401)] * 99) as server:
        with pytest.raises(ApiError, match=r"key is wrong|this machine"):
            ask(make(name, server, workers=8), toys.sentences(60))
        assert len(statuses(ledger)) == 30
        assert len(server.requests) <= 30 + 8


SAYS = f"The key {KEY} is on the river."
SAYS_KEY = {
    "libretranslate": fault_server.translations(lambda text, target: SAYS),
    "google": lambda asked: f'<div class="result-container">{SAYS}</div>',
    "model": fault_server.chat(lambda asked: SAYS, model=f"m-{KEY}"),
}


def test_a_key_that_a_server_echoes_is_in_no_column(make, ask, name, tmp_path):
    body = json.dumps({"error": {"message": f"no {KEY}"}, "translatedText": None})
    with FaultServer(SAYS_KEY[name], [None, fault(400, body), *[fault(200, body)] * 3]) as server:
        ask(make(name, server), TEXTS[:3])
    content = (tmp_path / "answers.sqlite").read_bytes()
    assert b"on the river" in content
    assert KEY.encode() not in content


@pytest.mark.parametrize("name", ["libretranslate", "model"])
@pytest.mark.parametrize("key", [None, "sk-canary\nX-Other: 1", "sk-canary…8899", "sk-canary 8899"])
def test_an_invalid_key_is_neither_sent_nor_shown(make, ask, name, monkeypatch, key):
    with FaultServer(PROPER[name]) as server:
        engine = make(name, server)
        monkeypatch.delenv("TOY_KEY") if key is None else monkeypatch.setenv("TOY_KEY", key)
        with pytest.raises(ApiError, match=r"TOY_KEY (is not set|contains a space, a line break)") as stopped:
            ask(engine)
        assert server.requests == []
    assert "canary" not in str(stopped.value)
