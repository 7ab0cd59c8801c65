import re
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.material import wikipedia_sentences
from tests.rooms.apis.conftest import HTML, KEY, TEXTS, WELL, answers, forget, statuses
from tests.support import fault_server, toys
from tests.support.fault_server import FaultServer, fault
from workflow_scripts.apis import translators
from workflow_scripts.apis.ledger import Ledger, Row
from workflow_scripts.apis.translators import translate_all
from workflow_scripts.errors import ApiError

GOOGLES = "Error 500 (Server Error)!!1500.That\u2019s an error.There was an error. Please try again later.That\u2019s all we know."
needs_apertium = pytest.mark.skipif(
    shutil.which("apertium") is None, reason="no command apertium (apt-get install apertium apertium-eng-spa)"
)


@pytest.fixture
def translate(make, ledger):
    """A function that gives the row of each sentence, by LibreTranslate unless another engine is named."""

    def rows(server, sentences=TEXTS, name="libretranslate", *, offline=False, max_unanswered=2, **changes):
        engine = make(name, server, **changes)
        ledger.read_only = offline
        return translate_all(sentences, engine, ledger, max_unanswered=max_unanswered)

    return rows


def proper(sentences):
    return [fault_server.foreign(sentence, "es") for sentence in sentences]


def test_libretranslate_is_asked_once_a_sentence(translate):
    """Key and text stay out of the URL."""
    with FaultServer(fault_server.libretranslate) as server:
        assert answers(translate(server, TEXTS + TEXTS[:3])) == WELL + WELL[:3]
        assert answers(translate(server)) == WELL
        assert len(server.requests) == len(TEXTS)
    assert {(request["_path"], request["api_key"]) for request in server.requests} == {("/translate", KEY)}


def test_every_attempt_takes_its_turn_and_waits_as_told(translate):
    """Every attempt takes its turn and waits as long as the server says."""
    with FaultServer(fault_server.libretranslate, [fault(429, Retry_After="0.3"), fault(503)]) as server:
        translate(server, TEXTS[:1], per_day=3)
        first, second, _third = (request["_time"] for request in server.requests)
        assert second - first >= 0.3
        with pytest.raises(ApiError, match="the limit per_day of 3 requests is reached"):
            translate(server, per_day=3)


@pytest.mark.parametrize("asked", ["0", "0.01", "Sun, 06 Nov 1994 08:00:00 GMT", "soon"])
def test_a_server_cannot_shorten_the_wait(make, ask, asked):
    with FaultServer(fault_server.libretranslate, [fault(429, Retry_After=asked)]) as server:
        engine = make("libretranslate", server)
        engine.client._backoff = lambda state: 0.3  # it is drawn from zero to a limit
        ask(engine, TEXTS[:1])
        first, second = (request["_time"] for request in server.requests)
    assert second - first >= 0.3


def test_a_job_waits_for_one_that_asks_the_same_engine(translate, make, ledger, capfd):
    """A job waits for one that asks the same engine, says so and takes its answers."""
    with FaultServer(fault_server.libretranslate) as server, ThreadPoolExecutor(1) as pool:
        with Ledger(ledger.path) as other, other.asking("libretranslate", "other"):
            waiting = pool.submit(translate, server)
            while "llms.toy: waiting for another job" not in capfd.readouterr().err:
                time.sleep(0.01)
            other.save([Row(make("libretranslate").request(TEXTS[0]), WELL[0], "usable")])
        assert answers(waiting.result()) == WELL
        assert [request["q"] for request in server.requests] == TEXTS[1:]


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
    "one word a dozen times": ("río " * 12, 1, "rejected, cut end"),
    "a phrase four times": ("El río de la " * 4 + "ciudad.", 1, "rejected, a loop"),
    "the text itself": ("{q}", 1, "rejected, not in es"),
    "an unknown message in the language": ("Lo sentimos, esta función no está disponible ahora.", 1, "the same one"),
    "a lone surrogate": ("el río de la ciudad \ud800 está en el norte del país", 1, "rejected, broken characters"),
    "a stray byte": ("el río de la ciudad \ufffd está en el norte del país", 1, "rejected, broken characters"),
    "a fragment": ("el", 1, "rejected, "),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "share", "ends"), WRONG.values(), ids=WRONG)
def test_wrong_answers_are_unusable_and_asked_again(translate, ledger, wrong, share, ends):
    sentences = [text for text in toys.sentences(200) if len(text) > 45][:60]
    said = Counter()

    def sick(text, target):
        said["texts"] += 1
        is_well = said["texts"] % round(1 / share)
        return fault_server.foreign(text, target) if is_well else wrong and wrong.format(q=text)

    with FaultServer(fault_server.translations(sick)) as server:
        if ends is None:
            assert answers(translate(server, sentences)) == proper(sentences)
            assert len(server.requests) == 66
        else:
            with pytest.raises(ApiError, match=re.escape(ends)):
                translate(server, sentences)
            assert len(server.requests) <= (60 if ends == "the same one" else 5 * 3)
            assert "usable" not in statuses(ledger)
    # What several sentences were given nobody can tell from translations before the end.
    forget(ledger, "reason LIKE 'given to several%'")
    with FaultServer(fault_server.libretranslate) as server:
        assert answers(translate(server, sentences)) == proper(sentences)


def test_offline_only_stored_rows_are_used(translate):
    script = [None, fault(400, "no"), *[fault(200, "{}")] * 3]
    with FaultServer(fault_server.libretranslate, script) as server:
        first = translate(server, TEXTS[:5])
    assert [row.status for row in first] == ["usable", "refused", "failed", "usable", "usable"]
    assert translate(None, TEXTS[:5], offline=True) == first
    with pytest.raises(ApiError, match=r"3 of 8 answers are not in the ledger"):
        translate(None, offline=True)


KEPT = [
    (WELL[0], "usable", ""), (f"{WELL[0]} **río**: river", "rejected", "markup"), (f"l&apos;un {WELL[0]}", "rejected", "markup"),
    (TEXTS[0], "rejected", "not in es"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "status", "reason"), KEPT)
@pytest.mark.parametrize("kept", [("usable", ""), ("rejected", "chatter")])
def test_a_stored_answer_is_judged_again_when_it_is_read(translate, make, ledger, said, status, reason, kept):
    request = make("libretranslate").request(TEXTS[0])
    ledger.save([Row(request, said, *kept)])
    for rows in (translate(None, TEXTS[:1]), ledger.find([request]).values()):
        assert [(row.status, row.reason, row.answer) for row in rows] == [(status, reason, said)]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("L&apos;un &#39; d&#x27;ici {}", "L'un ' d'ici {}"),
        ("{}&lt;br&gt;", None),
        ("L&amp;apos;un {}", "L'un {}"),
    ],
)
def test_entities_are_decoded_before_an_answer_is_judged(translate, said, found):
    with FaultServer(fault_server.translations(lambda text, target: said.replace("{}", WELL[0]))) as server:
        (row,) = translate(server, TEXTS[:1])
    assert answers([row]) == [found.replace("{}", WELL[0]) if found else "failed"]


@pytest.mark.parametrize("tag", ["<br>", "<br/>", "<wbr>", "<b>", "<!-- -->", "<div>"])
def test_a_translation_with_tags_is_asked_again(translate, tag):
    """The parser of deep_translator would join the words before and after a tag."""
    page, tagged = (
        f'<div class="result-container">{text}</div>' for text in (WELL[0], WELL[0].replace(" ", tag, 1))
    )
    with FaultServer(lambda asked: page, [fault(200, tagged)]) as server:
        assert answers(translate(server, TEXTS[:1], "google")) == WELL[:1]
        assert len(server.requests) == 2


def test_google_is_sent_one_line(translate):
    """Its page has a tag for each line end."""
    first, second = TEXTS[0].split(" ", 1)
    with FaultServer(fault_server.google) as server:
        assert answers(translate(server, [f" {first}\n\t{second} "], "google")) == WELL[:1]
        assert server.requests[0]["q"] == TEXTS[0]


@pytest.mark.parametrize(
    ("name", "languages", "found"),
    [
        ("google", ("en", "xx"), "llms.toy: en to xx: .*Choose languages that it supports"),
        ("apertium", ("eng", "xxx"), "direction eng-xxx is not installed. Install both"),
    ],
)
def test_mistakes_of_engines_are_named(make, name, languages, found):
    with pytest.raises(ApiError, match=found):
        make(name, languages=languages)


# Apertium


@needs_apertium
@pytest.mark.parametrize("target", ["spa", "cat"])
def test_apertium_translates_alike_in_any_batch_and_order(translate, ledger, target):
    """120 sentences of Wikipedia, some of which a running tagger would tag differently in another order."""
    sentences = [*wikipedia_sentences(120), "1989", "AT&T [1] costs $5/day @ home ^x$ {a} <b> \\\\."]
    languages = ("eng", target)
    whole = answers(translate(None, sentences, "apertium", languages=languages, batch_sentences=50))
    marks = ("AT&T [1]", "$5/", "@", "^x$", "{", "\\\\")
    assert whole[-2] == "1989"
    assert all(text == text.strip() for text in whole)
    assert target == "cat" or [mark for mark in marks if mark not in whole[-1]] == []
    forget(ledger)
    backwards = answers(translate(None, sentences[::-1], "apertium", languages=languages))
    assert backwards[::-1] == whole


@pytest.mark.parametrize(
    ("mode", "seconds", "message"),
    [
        ("head -c 30", 60, r"returned \d+ texts for 8, or incomplete ones"),
        ("cat | (echo broken >&2; exit 3)", 60, r"ended with code 3 \(broken\)"),
        ("sleep 60", 0.5, r"a batch took more than 0\.5 s"),
        ("tr a b | apertium-tagger -g absent.prob", 60, r"ended with code \d+"),
    ],
)
def test_programs_that_misbehave_end_in_one_line(
    tmp_path, monkeypatch, translate, ledger, mode, seconds, message
):
    (tmp_path / "apertium").touch(0o755)
    (tmp_path / "eng-spa.mode").write_text(mode)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(translators, "MODES", tmp_path)
    with pytest.raises(ApiError, match=message):
        translate(None, name="apertium", languages=("eng", "spa"), timeout_seconds=seconds)
    assert len(statuses(ledger)) == 0
