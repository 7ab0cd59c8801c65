import json
import shutil
from urllib.parse import urlsplit

import pytest
from requests.adapters import HTTPAdapter

from tests import fault_server, tiny
from tests.fault_server import HANG, RESET, SHORT, FaultServer, fault
from workflow_scripts.apis import translators
from workflow_scripts.apis.store import AnswerStore
from workflow_scripts.apis.translators import TranslatorSlice, translate_all, translator_of
from workflow_scripts.errors import ApiError

KEY = "canary-5f1d0c"
CALLS = {
    "timeout_seconds": 0.5, "attempts": 3, "first_wait_seconds": 0.001, "longest_wait_seconds": 1, "per_second": None,
}  # fmt: skip
SENTENCES = tiny.sentences(8)
HTML = "<html><body>Please log in to the network.</body></html>"
needs_apertium = pytest.mark.skipif(
    shutil.which("apertium") is None, reason="no command apertium (apt-get install apertium apertium-eng-spa)"
)


def block_of(**settings):
    return TranslatorSlice.parse({"translator": settings}, "translators").translator


@pytest.fixture
def store(tmp_path):
    with AnswerStore(tmp_path / "answers.sqlite") as opened:
        yield opened


@pytest.fixture
def libre(monkeypatch):
    """A function that makes a LibreTranslate client of a server."""
    monkeypatch.setenv("LIBRE_KEY", KEY)

    def make(server, key_variable="LIBRE_KEY", **calls):
        block = block_of(
            engine="libretranslate", url=server.url, key_variable=key_variable, calls=CALLS | calls
        )
        return translator_of(block, "translators.libre", "en", "es")

    return make


def translated(translator, store, sentences=SENTENCES, *, offline=False, refusals=2):
    return translate_all(
        sentences, translator, store, place="translators.libre", offline=offline, refusals=refusals
    )


def proper(sentence):
    return f"{' '.join(reversed(sentence.split()))} es"


def test_libretranslate_answers_in_order_and_is_asked_once_a_sentence(libre, store):
    with FaultServer(fault_server.libretranslate) as server:
        assert translated(libre(server), store, SENTENCES + SENTENCES[:3]) == list(
            map(proper, SENTENCES + SENTENCES[:3])
        )
        assert len(server.requests) == len(SENTENCES)
        assert translated(libre(server), store) == list(map(proper, SENTENCES))
        assert len(server.requests) == len(SENTENCES)


def test_key_and_text_stay_out_of_the_url(libre, store):
    with FaultServer(fault_server.libretranslate) as server:
        translated(libre(server), store)
    assert set(server.lines) == {"/translate"}
    assert {request["api_key"] for request in server.requests} == {KEY}


@pytest.mark.parametrize(
    "step",
    [
        fault(429), fault(429, Retry_After="0"), fault(500), fault(503, HTML), RESET, HANG, SHORT, fault(200, HTML),
        fault(200, '{"translatedText": "half a'), fault(200, '{"error": "busy"}'), fault(200, "[]"), fault(200, "[1]"),
        fault(200, '{"translatedText": ["a"]}'),
    ],
    ids=str,
)  # fmt: skip
def test_a_fault_that_passes_leaves_no_trace(libre, store, step):
    with FaultServer(fault_server.libretranslate, [None, step, step]) as server:
        server.hang_seconds = 1.0
        assert translated(libre(server), store) == list(map(proper, SENTENCES))
        assert len(server.requests) == len(SENTENCES) + 2


@pytest.mark.parametrize("step", [fault(429), fault(502), RESET, HANG], ids=str)
def test_a_fault_that_stays_ends_the_job_and_keeps_what_was_done(libre, store, step):
    with FaultServer(fault_server.libretranslate, [None] * 5 + [step] * 3) as server:
        server.hang_seconds = 1.0
        with pytest.raises(
            ApiError, match=r"translators\.libre: .*3 attempts in a row\. Finished answers are kept"
        ):
            translated(libre(server), store)
        assert len(store) == 5
        assert len(server.requests) == 8
        assert translated(libre(server), store) == list(map(proper, SENTENCES))  # it is back
        assert len(server.requests) == 8 + len(SENTENCES) - 5


def test_retry_after_is_heeded(libre, store):
    with FaultServer(fault_server.libretranslate, [fault(429, Retry_After="0.3")]) as server:
        translated(libre(server), store, SENTENCES[:1])
        assert server.moments[1] - server.moments[0] >= 0.3


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_stops_at_once_and_is_not_shown(libre, store, status):
    body = json.dumps({"error": f"Invalid API key {KEY}"})
    with FaultServer(fault_server.libretranslate, [fault(status, body)] * 9) as server:
        with pytest.raises(ApiError, match="key is wrong or missing") as stopped:
            translated(libre(server), store)
        assert len(server.requests) == 1
    assert KEY not in str(stopped.value)


def test_an_empty_quota_stops_at_once(libre, store):
    with FaultServer(fault_server.libretranslate, [fault(429, '{"error": "quota exceeded"}')] * 9) as server:
        with pytest.raises(ApiError, match="quota is used up"):
            translated(libre(server), store)
        assert len(server.requests) == 1


def test_a_missing_key_is_named_before_anything_is_asked(libre, monkeypatch):
    monkeypatch.delenv("LIBRE_KEY")
    with FaultServer(fault_server.libretranslate) as server:
        with pytest.raises(ApiError, match="environment variable LIBRE_KEY is not set"):
            libre(server)
        assert server.requests == []


def test_a_sentence_that_the_server_refuses_is_none_and_asked_again_the_next_time(libre, store):
    with FaultServer(fault_server.libretranslate, [None, fault(413, "too long")]) as server:
        first = translated(libre(server), store)
        assert first == [proper(s) if number != 1 else None for number, s in enumerate(SENTENCES)]
        assert translated(libre(server), store) == list(map(proper, SENTENCES))
        assert len(server.requests) == len(SENTENCES) + 1


def test_a_server_that_only_talks_nonsense_is_not_asked_for_every_sentence(libre, store):
    with FaultServer(lambda asked: HTML) as server:
        with pytest.raises(ApiError, match=r"no translation of 5 of 5 sentences"):
            translated(libre(server), store, refusals=1000)
        assert len(server.requests) == 5 * CALLS["attempts"]


def test_offline_the_store_alone_answers(libre, store):
    with FaultServer(fault_server.libretranslate) as server:
        translated(libre(server), store, SENTENCES[:5])
        assert translated(libre(server), store, SENTENCES[:5], offline=True) == list(
            map(proper, SENTENCES[:5])
        )
        with pytest.raises(ApiError, match=r"3 of 8 answers are not in the store"):
            translated(libre(server), store, offline=True)
        assert len(server.requests) == 5


def test_an_unknown_language_ends_in_one_line(libre):
    with (
        FaultServer(fault_server.libretranslate) as server,
        pytest.raises(ApiError, match=r"en to ca: .*Name languages it supports"),
    ):
        block = block_of(engine="libretranslate", url=server.url, key_variable=None, calls=CALLS)
        translator_of(block, "translators.libre", "en", "ca")


class _ToLoopback(HTTPAdapter):
    """Sends what is meant for Google to a server here."""

    def __init__(self, server):
        super().__init__()
        self.server = server

    def send(self, request, **settings):
        request.url = (
            self.server.url.rstrip("/") + urlsplit(request.url)._replace(scheme="", netloc="").geturl()
        )
        return super().send(request, **settings)


def google(server):
    translator = translator_of(block_of(engine="google", calls=CALLS), "translators.google", "en", "fr")
    translator.session.mount("https://translate.google.com/", _ToLoopback(server))
    return translator


def test_google_is_read_by_deep_translator(store):
    with FaultServer(fault_server.google) as server:
        assert translated(google(server), store) == [f"{s.upper()} fr" for s in SENTENCES]
        assert {request["sl"] for request in server.requests} == {"en"}


@pytest.mark.parametrize("step", [fault(429), fault(503, HTML), RESET, HANG, fault(200, HTML)], ids=str)
def test_googles_faults_pass_too(store, step):
    with FaultServer(fault_server.google, [step]) as server:
        server.hang_seconds = 1.0
        assert translated(google(server), store)[0] == f"{SENTENCES[0].upper()} fr"


def test_google_gives_back_what_has_no_letters(store):
    with FaultServer(lambda asked: '<div class="result-container">1989 — 2</div>') as server:
        assert translated(google(server), store, ["1989 — 2", "— —"]) == ["1989 — 2", "1989 — 2"]


def test_two_engines_or_directions_share_no_answer(libre):
    with FaultServer(fault_server.libretranslate) as server:
        identities = [libre(server).identity, google(server).identity]
    assert len({json.dumps(identity) for identity in identities}) == 2


@needs_apertium
def test_apertium_translates_batch_by_batch_in_order(store):
    block = block_of(engine="apertium", batch_sentences=2, timeout_seconds=60)
    sentences = [
        "The cat is black.",
        "1989",
        "He lives in a house",
        "It was built there.",
        "The cat is black.",
    ]
    forth = translated(translator_of(block, "translators.apertium", "eng", "spa"), store, sentences)
    assert forth[0] == forth[4] == "El gato es negro."
    assert forth[1] == "1989"
    assert all(text == text.strip() for text in forth)
    back = translated(translator_of(block, "translators.apertium", "spa", "eng"), store, forth)
    assert back[0] == "The cat is black."
    assert len(store) == 8


@needs_apertium
def test_apertium_gives_a_sentence_the_same_translation_in_any_batch():
    block = block_of(engine="apertium", batch_sentences=100, timeout_seconds=60)
    engine = translator_of(block, "translators.apertium", "eng", "spa")
    sentences = [f"{word.capitalize()} is a word about a river." for word in tiny.WORDS[:6]]
    assert engine.translate(sentences) == [engine.translate([sentence])[0] for sentence in sentences]


@needs_apertium
def test_apertium_names_a_direction_that_is_not_installed():
    block = block_of(engine="apertium", batch_sentences=100, timeout_seconds=60)
    with pytest.raises(
        ApiError, match=r"direction eng-xxx is not here\. .*apt-get install apertium apertium-eng-xxx"
    ):
        translator_of(block, "translators.apertium", "eng", "xxx")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("cat | head -1", r"returned 1 lines for 8, exit code 0"),
        ("echo broken >&2; exit 3", r"returned 0 lines for 8, exit code 3 \(broken\)"),
        ("exec sleep 5", r"8 sentences took more than 0\.5 s"),
    ],
)
def test_a_command_that_misbehaves_ends_in_one_line(tmp_path, monkeypatch, store, script, message):
    command = tmp_path / "bin/apertium"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    (tmp_path / "eng-spa.mode").write_text("cat")
    monkeypatch.setenv("PATH", str(command.parent), prepend=":")
    monkeypatch.setattr(translators, "MODES", tmp_path)
    engine = translator_of(
        block_of(engine="apertium", batch_sentences=100, timeout_seconds=0.5),
        "translators.apertium",
        "eng",
        "spa",
    )
    with pytest.raises(ApiError, match=message):
        translated(engine, store)
    assert len(store) == 0


def test_without_the_command_the_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ApiError, match="apt-get install apertium apertium-eng-spa"):
        translator_of(
            block_of(engine="apertium", batch_sentences=1, timeout_seconds=1),
            "translators.apertium",
            "spa",
            "eng",
        )
