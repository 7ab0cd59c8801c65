"""translate_shard and gather_round_trips as their rules start them, against a scripted server and the real Apertium."""

import json
import random
import shutil
import signal
import time
from collections import Counter

import pytest

from benchmarks.material import wikipedia_sentences
from tests import tiny, workshop
from tests.fault_server import FaultServer, fault, translations
from tests.workshop import CALLS, finish, one_line
from workflow_scripts.apis.door import of_another
from workflow_scripts.apis.ledger import Ledger
from workflow_scripts.columns.corpora import DROPPED, ROUND_TRIPS, TRIPLES
from workflow_scripts.provenance.artefacts import read_record, read_table

KEY = "canary-77f0aa12bc"
LABEL = "a toy stands in for Google"
LIMITS = {"shards": 2, "untranslated_share": 0.8, "shortened_ratio": 0.5, "refused_share": 0.05}
needs_apertium = pytest.mark.skipif(
    shutil.which("apertium") is None, reason="no command apertium (apt-get install apertium apertium-eng-spa)"
)


def cipher(asked):
    """Each word back to front, so that two legs give the sentence back; "town" becomes "city" on the way home."""
    return translations(back_to_front)(asked)


def back_to_front(text, target):
    words = " ".join(word[::-1] for word in text.split())
    return words.replace("town", "city") if target == "en" else words


class Workshop(workshop.Workshop):
    """A folder with a corpus, in which both jobs are started."""

    def __init__(self, folder, sentences):
        super().__init__(folder, "LIBRE_KEY", KEY)
        self.write_sentences("base.parquet", sentences)

    def settings(self, server_url, service=None, **translation):
        """What decides a translation, and how it is asked for; the language "xx" is not one that a detector knows."""
        if server_url is None:
            engine, how = "apertium", {"batch_sentences": 500, "timeout_seconds": 300}
            languages = {"source": "eng", "via": "spa"}
        else:
            engine, how = (
                "libretranslate",
                {"url": server_url, "key_variable": "LIBRE_KEY", "batch_sentences": 1},
            )
            how |= {"calls": CALLS} | (service or {})
            languages = {"source": "en", "via": "xx"}
        base = {"corpus": "toy", "translator": "libre", "max_sentences": None}
        deciding = {name: value for name, value in LIMITS.items() if name != "refused_share"}
        asked = {"translation": base | languages | translation, "translator": {"engine": engine}}
        asked["limits"] = deciding
        return asked, {"translator": {"engine": engine} | how, "limits": LIMITS}

    def translate(self, settings, item="1-of-1", trips=None):
        asked, service = settings
        return self.start(
            "translate_shard", asked, service=service, corpus="toy", scatteritem=item, sentences="base.parquet",
            trips=f"trips/{trips or item + '.parquet'}",
        )  # fmt: skip

    def translated(self, settings, item="1-of-1"):
        return finish(self.translate(settings, item))

    def gather(self, items, form="pairs", unchanged="drop", max_sentences=None):
        settings = {
            "shape": {"form": form, "unchanged": unchanged},
            "max_sentences": max_sentences,
            "label": LABEL,
        }
        files = [f"trips/{item}.parquet" for item in items]
        process = self.start(
            "gather_round_trips", settings, corpus="toy_es", sentences="base.parquet", trips=files,
            train="train.parquet", dropped="dropped.parquet",
        )  # fmt: skip
        return finish(process)


@pytest.fixture
def shop(tmp_path):
    return Workshop(tmp_path, tiny.sentences(40))


def test_two_parts_become_pairs_and_every_row_is_accounted_for(shop):
    with FaultServer(cipher) as server:
        for item in ("1-of-2", "2-of-2"):
            assert shop.translated(shop.settings(server.url), item)[0] == 0
        asked = len(server.requests)
    assert asked == 80  # 40 sentences, all different, both ways
    assert shop.gather(["2-of-2", "1-of-2"])[0] == 0  # in any order
    pairs, dropped = (
        read_table(shop.folder / "train.parquet", TRIPLES),
        read_table(shop.folder / "dropped.parquet", DROPPED),
    )
    with_town = [sentence for sentence in tiny.sentences(40) if "town" in sentence]
    assert 0 < len(with_town) < 40
    assert pairs["anchor"].to_pylist() == with_town
    assert pairs["positive"].to_pylist() == [sentence.replace("town", "city") for sentence in with_town]
    assert pairs["negative"].null_count == len(pairs)
    assert dropped.to_pylist() == [{"reason": "unchanged", "count": 40 - len(with_town)}]
    record = read_record(shop.folder / "train.parquet")
    assert record.labels == [LABEL]
    trips = read_record(shop.folder / "trips/1-of-2.parquet")
    assert trips.inputs["forth"].path == "translator:libretranslate en xx"


def test_a_second_run_asks_nothing_and_gives_the_same_bytes(shop):
    with FaultServer(cipher) as server:
        settings = shop.settings(server.url)
        shop.translated(settings)
        first = (shop.folder / "trips/1-of-1.parquet").read_bytes()
        asked = len(server.requests)
        shop.translated(settings)
        assert len(server.requests) == asked
    assert (shop.folder / "trips/1-of-1.parquet").read_bytes() == first
    shop.environment["SEMBLANCE_OFFLINE"] = "1"  # and the server is gone
    assert shop.translated(settings)[0] == 0
    assert (shop.folder / "trips/1-of-1.parquet").read_bytes() == first
    message = one_line(*shop.translated(shop.settings(server.url, via="fr")))
    assert "40 of 40 answers are not in the ledger, and the study is offline" in message


def test_kill_9_in_the_middle_costs_at_most_the_request_in_flight(tmp_path):
    shop = Workshop(tmp_path, tiny.sentences(500))
    with FaultServer(cipher) as server:
        settings = shop.settings(server.url)
        for stop_at in (300, 700):
            process = shop.translate(settings)
            while len(server.requests) < stop_at:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert not (tmp_path / "trips").exists() or list((tmp_path / "trips").glob("*.parquet")) == []
        assert shop.translated(settings)[0] == 0
        assert 2 * 500 <= len(server.requests) <= 2 * 500 + 2  # one a kill
    assert len(read_table(tmp_path / "trips/1-of-1.parquet", ROUND_TRIPS)) == 500
    assert shop.holds(KEY) == []


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ([None] * 9 + [fault(401, f"bad key {KEY}")] * 9, "key is wrong or missing"),
        (
            [None] * 9 + [fault(200, "<html>Log in.</html>")] * 99,
            "3 of them in a row; the last was failed, no translation: 'Log in.'",
        ),
    ],
    ids=["key", "portal"],
)
def test_a_fault_is_one_line_rows_are_kept_and_the_key_is_nowhere(shop, script, message):
    with FaultServer(cipher, script) as server:
        code, printed = shop.translated(shop.settings(server.url))
        assert message in one_line(code, printed)
        assert KEY not in printed
        assert shop.holds(KEY) == []
        assert list(shop.folder.glob("trips/*")) == []
        server.script.clear()
        before = len(server.requests)
        assert shop.translated(shop.settings(server.url))[0] == 0
        assert len(server.requests) - before == 80 - 9


# What a back leg may say, once every n-th time: each was a positive of 0.1.0.

BACK_LEG = {
    "a page": "<html><body>Please log in to the network.</body></html>",
    "German": "Der alte Fluss liegt im Norden der Stadt und die Kinder lesen dort ein Buch.",
    "one word 400 times": "river " * 400,
    "one message that nobody knows": "Sorry, this function is not available for the moment in your country.",
}


@pytest.mark.slow
@pytest.mark.parametrize("said", BACK_LEG.values(), ids=BACK_LEG)
def test_a_wrong_back_leg_is_never_a_positive(shop, said):
    shop.write_sentences("base.parquet", tiny.sentences(60))
    count = [0]

    def sick(text, target):
        count[0] += target == "en"
        return said if target == "en" and count[0] % 10 == 0 else back_to_front(text, target)

    with FaultServer(translations(sick)) as server:
        settings = shop.settings(server.url)
        settings[1]["limits"] = LIMITS | {"refused_share": 0.2}
        code, printed = shop.translated(settings)
    assert code == 0, printed
    assert shop.gather(["1-of-1"])[0] == 0
    pairs = read_table(shop.folder / "train.parquet", TRIPLES).to_pylist()
    assert len(pairs) > 5
    assert all(pair["positive"] == pair["anchor"].replace("town", "city") for pair in pairs)
    dropped = read_table(shop.folder / "dropped.parquet", DROPPED).to_pylist()
    assert len(pairs) + sum(row["count"] for row in dropped) == 60


@pytest.mark.slow
def test_how_a_service_is_asked_changes_no_byte(shop):
    """Another port, timeout, rate, number of workers and share of refusals, and the server is not even asked."""
    with FaultServer(cipher) as server:
        assert shop.translated(shop.settings(server.url))[0] == 0
        shop.gather(["1-of-1"])
    first = {name: (shop.folder / name).read_bytes() for name in ("trips/1-of-1.parquet", "train.parquet")}
    calls = CALLS | {"timeout_seconds": 9, "workers": 5, "per_second": 1.0, "attempts": 1}
    settings = shop.settings(
        "http://127.0.0.1:1", {"calls": calls, "key_variable": None, "batch_sentences": 7}
    )
    settings[1]["limits"] = LIMITS | {"refused_share": 0.5}
    code, printed = shop.translated(settings)
    assert code == 0, printed
    shop.gather(["1-of-1"])
    assert {name: (shop.folder / name).read_bytes() for name in first} == first


def test_one_message_in_every_shard_is_never_a_positive(shop):
    """One of twenty sentences in each of two parts, which a part may have."""
    shop.write_sentences("base.parquet", sentences := tiny.sentences(40))
    wrong = {sentences[place] for place in (3, 31)}

    def sick(text, target):
        if target == "xx":
            return back_to_front(text, target)
        said = back_to_front(text, "none")
        return (
            "Sorry, this function is not available for the moment."
            if said in wrong
            else back_to_front(text, target)
        )

    with FaultServer(translations(sick)) as server:
        for item in ("1-of-2", "2-of-2"):
            assert shop.translated(shop.settings(server.url), item)[0] == 0
    assert shop.gather(["1-of-2", "2-of-2"], unchanged="keep")[0] == 0
    pairs = read_table(shop.folder / "train.parquet", TRIPLES)
    assert len(pairs) == 38
    assert not wrong & set(pairs["anchor"].to_pylist())


def test_a_missing_or_foreign_part_is_noticed(shop):
    with FaultServer(cipher) as server:
        shop.translated(shop.settings(server.url), "1-of-2")
        shop.translated(shop.settings(server.url, max_sentences=30), "2-of-2")
    for items in (["1-of-2"], ["1-of-2", "2-of-2"], ["1-of-2", "1-of-2"]):
        assert "the corpus has 40, or others. Delete the folder" in one_line(*shop.gather(items))


def test_two_jobs_at_once_pay_for_every_request_once_and_make_the_same(tmp_path):
    """600 sentences, both ways; each answer is another one every time, so that a second one would be seen."""
    shop = Workshop(tmp_path, tiny.sentences(600))
    with FaultServer(
        translations(
            lambda text, target: f"{time.monotonic_ns()} {' '.join(w[::-1] for w in text.split()[::-1])}"
        )
    ) as server:
        processes = [
            shop.translate(
                shop.settings(server.url, {"calls": CALLS | {"workers": 4}}), trips=f"{name}.parquet"
            )
            for name in ("one", "two")
        ]
        assert [process.communicate() and process.returncode for process in processes] == [0, 0]
        assert len(server.requests) == 1200
    rows = [read_table(tmp_path / f"trips/{name}.parquet", ROUND_TRIPS) for name in ("one", "two")]
    assert rows[0].equals(rows[1])


@pytest.mark.slow
def test_ten_kills_at_random_lose_nothing_and_cost_what_was_under_way(tmp_path):
    shop, draw = Workshop(tmp_path, tiny.sentences(600)), random.Random(7)
    with FaultServer(cipher) as server:
        settings = shop.settings(server.url, {"calls": CALLS | {"workers": 4}})
        for stop_at in sorted(draw.sample(range(40, 1160), 10)):
            process = shop.translate(settings)
            while len(server.requests) < stop_at and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert shop.translated(settings)[0] == 0
        asked = Counter((request["q"], request["target"]) for request in server.requests)
    assert len(asked) == 1200
    assert (
        asked.total() <= 1200 + 10 * 2 * 4
    )  # what was under way at a kill, and had come and was not yet written
    assert len(read_table(tmp_path / "trips/1-of-1.parquet", ROUND_TRIPS)) == 600


def moved(asked, away):
    """Answers of a server that gives each text of a list what belongs to another."""
    found = json.loads(cipher(asked))["translatedText"]
    return json.dumps({"translatedText": found[away:] + found[:away]})


@pytest.mark.slow
@pytest.mark.parametrize(("leg", "away"), [("xx", 1), ("en", 3)])
def test_a_list_that_comes_in_another_order_is_refused_whole_and_no_other(shop, leg, away):
    shop.write_sentences("base.parquet", sentences := tiny.sentences(64))
    lists = {"xx": 0, "en": 0}

    def once(asked):
        lists[asked["target"]] += 1
        return moved(asked, away) if asked["target"] == leg and lists[leg] == 3 else cipher(asked)

    with FaultServer(once) as server:
        settings = shop.settings(server.url, {"batch_sentences": 8})
        settings[1]["limits"] = LIMITS | {"refused_share": 0.2}
        code, printed = shop.translated(settings)
        assert code == 0, printed
        asked = len(server.requests)
        first = (shop.folder / "trips/1-of-1.parquet").read_bytes()
        assert shop.translated(settings)[0] == 0
        assert len(server.requests) == asked == 16
    assert (shop.folder / "trips/1-of-1.parquet").read_bytes() == first
    trips = read_table(shop.folder / "trips/1-of-1.parquet", ROUND_TRIPS).to_pylist()
    wrong = [trip["sentence"] for trip in trips if trip["outcome"] == "rejected: of another sentence"]
    assert wrong == sentences[16:24]
    assert all(
        trip["back"] == trip["sentence"].replace("town", "city")
        for trip in trips
        if trip["sentence"] not in wrong
    )
    assert "8 of 64 sentences came back as others; both translations, perhaps paid, are not used" in printed


@pytest.mark.parametrize(("leg", "batch"), [("xx", 16), ("en", 1)])
def test_a_server_that_is_one_answer_behind_ends_the_job_and_leaves_nothing_usable(shop, leg, batch):
    *sentences, before = tiny.sentences(65)
    shop.write_sentences("base.parquet", sentences)
    said = [back_to_front(before, leg)]

    def behind(text, target):
        said.append(back_to_front(text, target))
        return said[-2] if target == leg else said[-1]

    with FaultServer(translations(behind)) as server:
        settings = shop.settings(server.url, {"batch_sentences": batch})
        message = one_line(*shop.translated(settings))
        assert "sentences came back as others, such as" in message
        assert "forget --reason 'of another sentence'" in message
        assert list(shop.folder.glob("trips/*")) == []
    with Ledger(shop.folder / "answers/answers.sqlite", read_only=True) as ledger:
        rows = list(ledger.rows())
    assert Counter((row.status, row.reason) for row in rows) == {("rejected", "of another sentence"): 128}


@pytest.mark.slow
@needs_apertium
def test_apertium_makes_hundreds_of_pairs_of_wikipedia(tmp_path):
    """The real engine: every row accounted for, few unchanged, positives that share words with their anchor."""
    shop = Workshop(tmp_path, wikipedia_sentences(500))
    code, printed = shop.translated(shop.settings(None))
    assert code == 0, printed
    assert shop.gather(["1-of-1"])[0] == 0
    pairs, dropped = (
        read_table(tmp_path / "train.parquet", TRIPLES),
        read_table(tmp_path / "dropped.parquet", DROPPED),
    )
    counts = {row["reason"]: row["count"] for row in dropped.to_pylist()}
    assert len(pairs) + sum(counts.values()) == 500
    assert len(pairs) > 425
    assert not {"rejected: of another sentence", "rejected: chatter", "rejected: refusal"} & counts.keys()
    anchors, positives = pairs["anchor"].to_pylist(), pairs["positive"].to_pylist()
    assert sum(of_another(anchors, positives)) == 0
    assert sum(of_another(anchors, positives[1:] + positives[:1])) == len(pairs)
    assert {reason.partition(":")[0] for reason in counts} <= {
        "unchanged",
        "untranslated",
        "shortened",
        "rejected",
    }
    shared = [len({*a.split()} & {*p.split()}) / len({*a.split()}) for a, p in zip(*(pairs[c].to_pylist() for c in ("anchor", "positive")), strict=True)]  # fmt: skip
    assert 0.5 < sum(shared) / len(shared) < 0.95
