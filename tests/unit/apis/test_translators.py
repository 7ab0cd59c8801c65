import json
import re
import shutil
from collections import Counter

import pytest

from benchmarks.material import wikipedia_sentences
from tests import fault_server, tiny
from tests.fault_server import FaultServer, fault
from tests.unit.apis.test_engines import ToLoopback
from workflow_scripts.apis import translators
from workflow_scripts.apis.translators import Direction, translate_all, translator_of
from workflow_scripts.errors import ApiError, ConfigError
from workflow_scripts.settings.llms import LlmBlock
from workflow_scripts.settings.translators import TranslatorSlice

KEY = "canary-5f1d0c"
CALLS = {
    "timeout_seconds": 30, "attempts": 3, "first_wait_seconds": 0.001, "longest_wait_seconds": 1, "workers": 1,
    "per_second": None, "per_day": None,
}  # fmt: skip
SENTENCES = tiny.sentences(8)
GOOGLES = "Error 500 (Server Error)!!1500.That\u2019s an error.There was an error. Please try again later.That\u2019s all we know."
HTML = "<html><body>Please log in to the network.</body></html>"
needs_apertium = pytest.mark.skipif(
    shutil.which("apertium") is None, reason="no command apertium (apt-get install apertium apertium-eng-spa)"
)


def block_of(**settings):
    return TranslatorSlice.parse({"translator": settings}, "translators").translator


@pytest.fixture
def libre(monkeypatch, ledger):
    """A function that makes a LibreTranslate client of a server."""
    monkeypatch.setenv("LIBRE_KEY", KEY)

    def make(server, batch=1, url="", direction=("en", "es"), **calls):
        block = block_of(
            engine="libretranslate", url=url or server.url, key_variable="LIBRE_KEY", batch_sentences=batch, calls=CALLS | calls
        )  # fmt: skip
        return translator_of(block, towards(*direction), ledger)

    return make


def towards(source, target):
    return Direction(place="translators.libre", source=source, target=target)


def rows_of(translator, ledger, sentences=SENTENCES, *, offline=False, most_without=2):
    return translate_all(sentences, translator, ledger, offline=offline, most_without=most_without)


def translated(*arguments, **settings):
    return [row.answer if row.status == "usable" else None for row in rows_of(*arguments, **settings)]


def usable(ledger):
    return sum(row.status == "usable" for row in ledger.rows())


def proper(sentence):
    return fault_server.foreign(sentence, "es")


def test_libretranslate_answers_in_order_and_is_asked_once_a_sentence(libre, ledger):
    """Key and text stay out of the URL."""
    with FaultServer(fault_server.libretranslate) as server:
        assert translated(libre(server), ledger, SENTENCES + SENTENCES[:3]) == list(
            map(proper, SENTENCES + SENTENCES[:3])
        )
        assert translated(libre(server), ledger) == list(map(proper, SENTENCES))
        assert len(server.requests) == len(SENTENCES)
    assert set(server.lines) == {"/translate"}
    assert {request["api_key"] for request in server.requests} == {KEY}


def test_every_attempt_takes_its_turn_and_waits_as_long_as_the_server_says(libre, ledger):
    with FaultServer(fault_server.libretranslate, [fault(429, Retry_After="0.3"), fault(503)]) as server:
        translated(libre(server, per_day=3), ledger, SENTENCES[:1])
        assert len(server.moments) == 3 and server.moments[1] - server.moments[0] >= 0.3
        with pytest.raises(ApiError, match="the 3 requests a day of per_day are sent"):
            rows_of(libre(server, per_day=3), ledger)


@pytest.mark.parametrize(
    "body",
    [
        '{"translatedText": "half a', '{"error": "busy"}', "[]", "[1]", '{"translatedText": ["a"]}', '{"translatedText": null}',
        json.dumps({"translatedText": GOOGLES}), json.dumps({"translatedText": HTML}), '{"translatedText": "Too many requests"}',
    ],
)  # fmt: skip
def test_a_wrong_form_that_passes_leaves_no_trace(libre, ledger, body):
    with FaultServer(fault_server.libretranslate, [None, fault(200, body)]) as server:
        assert translated(libre(server), ledger) == list(map(proper, SENTENCES))
        assert len(server.requests) == len(SENTENCES) + 1
    assert {row.status for row in ledger.rows()} == {"usable"}


# Wrong answers: what the server says, and how often it says so of the sentences of one job; how the job ends, how many
# requests it needs at most, and what the ledger then holds as usable. None of the wrong answers is.

WRONG = {
    "Google's soft failure, of one in ten, which passes": (GOOGLES, 0.1, None),
    "Google's soft failure, always": (GOOGLES, 1, "failed, error message: 'Error 500"),
    "too many requests": ("Too many requests", 1, "failed, error message: 'Too many requests'"),
    "an HTML page": (HTML, 1, "failed, markup"),
    "null": (None, 1, "failed, no translation"),
    "nothing": ("", 1, "rejected, empty"),
    "German": ("Der alte Fluss liegt im Norden der Stadt und die Kinder lesen dort ein Buch.", 1, "rejected, not in es"),
    "one word 400 times": ("río " * 400, 1, "rejected, too long: 'río"),
    "one word a dozen times": ("río " * 12, 1, "rejected, one word over and over"),
    "the text itself": ("{q}", 1, "rejected, not in es"),
    "an unknown message in the language": ("Lo sentimos, esta función no está disponible ahora.", 1, "the same one"),
    "a lone surrogate": ("el río de la ciudad \ud800 está en el norte del país", 1, "rejected, broken characters"),
    "a stray byte": ("el río de la ciudad \ufffd está en el norte del país", 1, "rejected, broken characters"),
    "a fragment": ("el", 1, "rejected, "),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "share", "ends"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_never_usable_and_a_healthy_server_mends_what_was_asked(
    libre, ledger, wrong, share, ends
):
    sentences = [s for s in tiny.sentences(200) if len(s) > 45][:60]
    assert len(sentences) == 60
    said = [0]

    def sick(text, target):
        said[0] += 1
        if said[0] % round(1 / share):
            return fault_server.foreign(text, target)
        return wrong.format(q=text) if wrong else wrong

    with FaultServer(fault_server.translations(sick)) as server:
        if ends is None:
            assert translated(libre(server), ledger, sentences) == list(map(proper, sentences))
            assert len(server.requests) == 66
        else:
            with pytest.raises(ApiError, match=re.escape(ends)):
                rows_of(libre(server), ledger, sentences)
            assert len(server.requests) <= (60 if ends == "the same one" else 5 * 2)
            assert usable(ledger) == 0
    with FaultServer(fault_server.libretranslate) as server:
        if ends == "the same one":  # which nobody can tell from translations before the end
            ledger.forget([row.request for row in ledger.rows() if row.reason.startswith("given to several")])
        assert translated(libre(server), ledger, sentences) == list(map(proper, sentences))


def test_offline_the_ledger_alone_answers_also_with_a_refusal_or_a_failure(libre, ledger):
    script = [None, fault(400, "no"), *[fault(200, "{}")] * 2]
    with FaultServer(fault_server.libretranslate, script) as server:
        first = rows_of(libre(server), ledger, SENTENCES[:5])
        assert [row.status for row in first] == ["usable", "refused", "failed", "usable", "usable"]
        asked = len(server.requests)
        offline = rows_of(libre(server), ledger, SENTENCES[:5], offline=True)
        assert offline == first
        with pytest.raises(ApiError, match=r"3 of 8 answers are not in the ledger"):
            rows_of(libre(server), ledger, offline=True)
        assert len(server.requests) == asked


# Several at once


@pytest.mark.parametrize("batch", [1, 5])
def test_sixteen_requests_at_once_give_what_one_gives(libre, ledger, batch):
    sentences = tiny.sentences(300)
    with FaultServer(fault_server.libretranslate) as server:
        assert translated(libre(server, batch=batch, workers=16), ledger, sentences) == list(
            map(proper, sentences)
        )
        assert len(server.requests) == 300 / batch


def test_a_list_is_one_request_and_a_refused_list_is_asked_one_by_one(libre, ledger):
    with FaultServer(fault_server.libretranslate, [None, fault(413, "list too long")]) as server:
        assert translated(libre(server, batch=4), ledger) == list(map(proper, SENTENCES))
        assert [
            len(request["q"]) if isinstance(request["q"], list) else 1 for request in server.requests
        ] == [4, 4, 1, 1, 1, 1]


@pytest.mark.parametrize("wrong", [None, GOOGLES, 7, ["a"], HTML], ids=str)
def test_of_a_list_the_good_answers_are_kept_and_what_is_missing_is_asked_once_more(libre, ledger, wrong):
    """Two of eight are wrong for ever, one passes: 8 texts, then each of 3, and never more in one job."""
    for_ever, once = set(SENTENCES[2:4]), {SENTENCES[6]}

    def sick(text, target):
        if text in for_ever or text in once:
            once.discard(text)
            return wrong
        return fault_server.foreign(text, target)

    with FaultServer(fault_server.translations(sick)) as server:
        rows = rows_of(libre(server, batch=8), ledger)
        assert [request["q"] for request in server.requests] == [
            SENTENCES,
            *(SENTENCES[number] for number in (2, 3, 6)),
        ]
    good = [text not in for_ever for text in SENTENCES]
    assert [row.status == "usable" for row in rows] == good
    assert [row.answer for row in rows if row.status == "usable"] == [
        proper(text) for text, is_good in zip(SENTENCES, good, strict=True) if is_good
    ]
    assert {row.status for row in rows} == {"usable", "failed"}
    with FaultServer(fault_server.libretranslate) as server:
        assert translated(libre(server, batch=8), ledger) == list(map(proper, SENTENCES))
        assert [request["q"] for request in server.requests] == [SENTENCES[2:4]]


def test_a_server_whose_lists_are_one_short_is_paid_for_one_list_and_then_asked_one_by_one(libre, ledger):
    sentences = tiny.sentences(128)

    def short(asked):
        found = json.loads(fault_server.libretranslate(asked))["translatedText"]
        return json.dumps({"translatedText": found[1:] if isinstance(found, list) else found})

    with FaultServer(short) as server:
        assert translated(libre(server, batch=8), ledger, sentences) == list(map(proper, sentences))
        sizes = [len(r["q"]) if isinstance(r["q"], list) else 1 for r in server.requests]
    assert sizes == [8] + [1] * 128


def test_a_job_that_ends_in_the_second_try_keeps_what_the_first_gave(libre, ledger):
    body = json.dumps({"translatedText": [None, *map(proper, SENTENCES[1:])]})
    with FaultServer(fault_server.libretranslate, [fault(200, body), fault(401)]) as server:
        with pytest.raises(ApiError, match="key is wrong"):
            rows_of(libre(server, batch=8), ledger)
        assert len(server.requests) == 2
    assert Counter(row.status for row in ledger.rows()) == {"usable": 7}


# Language models


LLM = {
    "model": "any", "answers_as": None, "key_variable": None, "temperature": 0.0, "seed": 0, "max_completion_tokens": 64,
    "tokens_parameter": "max_tokens", "price": {"input_usd_per_million": 1, "output_usd_per_million": 2, "as_of": "2026-01-01"},
    "calls": CALLS,
}  # fmt: skip
PROMPT = "From $source to $target:\n$text\n"


def by_llm(server, ledger, prompt=PROMPT, **changes):
    block = LlmBlock.parse(LLM | {"base_url": f"{server.url}v1"} | changes, "llms.any")
    direction = Direction(place="translators.llm", source="English", target="Spanish")
    return translator_of(
        block_of(engine="llm", llm="any", prompt="x"), direction, ledger, llm=block, prompt=prompt
    )


def told(asked):
    assert asked["messages"][0]["content"].startswith("From English to Spanish:\n")
    return fault_server.foreign(asked["messages"][0]["content"].split("\n")[1], "es")


def test_a_language_model_translates_with_a_prompt(ledger):
    with FaultServer(fault_server.chat(told, model="any-1")) as server:
        rows = rows_of(by_llm(server, ledger), ledger)
        assert [row.answer for row in rows] == list(map(proper, SENTENCES))
        assert rows[0].request.text == SENTENCES[0]
        assert rows[0].cost_usd == (100 * 1 + 50 * 2) / 1e6
        noted = json.loads(rows[0].attributes)
        assert (noted["model"], noted["endpoint"]) == ("any-1", f"{server.url}v1")
        rows_of(by_llm(server, ledger, base_url="http://elsewhere.example"), ledger)
        assert len(server.requests) == len(SENTENCES)
        rows_of(by_llm(server, ledger, temperature=0.5), ledger, SENTENCES[:1])
        assert len(server.requests) == len(SENTENCES) + 1


@pytest.mark.parametrize(
    ("said", "finish", "kept"),
    [
        ('"{}"', "stop", None), ("<think>Spanish, then.</think>\n{}", "stop", None), ("{}", "length", "cut off"),
        ("{}\n{}", "stop", "several lines"), ("I'm sorry, I can't help with that.", "stop", "refusal"),
        ("<think>Spanish", "stop", "thinking alone"), ("", "stop", "empty"), (None, "content_filter", "content filter"),
        ("Here is the translation: {}", "stop", "chatter"), ("**Translation:** {}", "stop", "chatter"),
        ("{} (Note: a free translation.)", "stop", "chatter"), ("I would rather not translate this.", "stop", "refusal"),
    ],
)  # fmt: skip
def test_what_a_model_says_around_a_translation_is_taken_off_or_the_answer_rejected(
    ledger, said, finish, kept
):
    with FaultServer(
        fault_server.chat(lambda asked: said and said.replace("{}", told(asked)), finish=finish)
    ) as server:
        (row,) = rows_of(by_llm(server, ledger), ledger, SENTENCES[:1])
    if kept is None:
        assert (row.status, row.answer) == ("usable", proper(SENTENCES[0]))
    else:
        assert (row.status, row.reason) == ("rejected", kept)
    assert row.cost_usd > 0


@pytest.mark.parametrize(
    ("prompt", "found"), [("$sentence", r"placeholders are \$source"), ("To $target.", "no placeholder")]
)
def test_a_prompt_without_the_text_is_named(ledger, prompt, found):
    with FaultServer(fault_server.chat(told)) as server, pytest.raises(ConfigError, match=found):
        by_llm(server, ledger, prompt=prompt)


# Google


def google(server, ledger, **calls):
    direction = Direction(place="translators.google", source="en", target="fr")
    translator = translator_of(block_of(engine="google", calls=CALLS | calls), direction, ledger)
    translator.client.session.mount("https://translate.google.com/", ToLoopback(server))
    return translator


def test_google_gives_back_what_has_no_letters(ledger):
    with FaultServer(lambda asked: '<div class="result-container">1989 — 2</div>') as server:
        assert translated(google(server, ledger), ledger, ["1989 — 2", "— —"]) == ["1989 — 2", "1989 — 2"]


def test_google_names_a_language_that_it_does_not_have(ledger):
    direction = Direction(place="translators.google", source="en", target="xx")
    with pytest.raises(ApiError, match=r"translators\.google: en to xx: .*Name languages it supports"):
        translator_of(block_of(engine="google", calls=CALLS), direction, ledger)


# Apertium


def apertium(ledger, source="eng", target="spa", batch=100, seconds=60):
    block = block_of(engine="apertium", batch_sentences=batch, timeout_seconds=seconds)
    return translator_of(block, Direction(place="translators.apertium", source=source, target=target), ledger)


@needs_apertium
@pytest.mark.parametrize("target", ["spa", "cat"])
def test_apertium_gives_a_sentence_the_same_translation_in_any_batch_and_order(ledger, target):
    """Of 120 sentences of Wikipedia, among them those that the tagger of a running process changes its mind about."""
    sentences = [*wikipedia_sentences(120), "1989", "AT&T [1] costs $5/day @ home ^x$ {a} <b> \\\\."]
    whole = translated(apertium(ledger, target=target, batch=50), ledger, sentences)
    marks = ("AT&T [1]", "$5/", "@", "^x$", "{", "\\\\")
    assert whole[-2] == "1989" and (target == "cat" or all(mark in whole[-1] for mark in marks))
    assert all(text == text.strip() for text in whole if text)
    ledger.forget([row.request for row in ledger.rows()])
    backwards = translated(apertium(ledger, target=target), ledger, sentences[::-1])
    assert backwards[::-1] == whole


@needs_apertium
def test_apertium_names_a_direction_that_is_not_installed(ledger):
    with pytest.raises(ApiError, match=r"direction eng-xxx is not here\. Install both"):
        apertium(ledger, target="xxx")


@pytest.mark.parametrize(
    ("mode", "seconds", "message"),
    [
        ("head -c 30", 60, r"returned \d+ texts for 8, or some without their ends"),
        ("cat | (echo broken >&2; exit 3)", 60, r"ended with code 3 \(broken\)"),
        ("sleep 60", 0.5, r"a batch took more than 0\.5 s"),
        ("tr a b | apertium-tagger -g absent.prob", 60, r"ended with code \d+"),
    ],
)
def test_programs_that_misbehave_end_in_one_line(tmp_path, monkeypatch, ledger, mode, seconds, message):
    command = tmp_path / "bin/apertium"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    (tmp_path / "eng-spa.mode").write_text(mode)
    monkeypatch.setenv("PATH", str(command.parent), prepend=":")
    monkeypatch.setattr(translators, "MODES", tmp_path)
    with pytest.raises(ApiError, match=message):
        rows_of(apertium(ledger, seconds=seconds), ledger)
    assert len(ledger) == 0
