"""translate_shard and gather_round_trips as their rules start them, against a scripted server."""

import re
import signal
import time

import pytest

from tests.support import api_jobs, toys
from tests.support.api_jobs import CALLS, finish, one_line
from tests.support.fault_server import FaultServer, fault, translations
from workflow_scripts.columns import DROPPED, ROUND_TRIPS, TRIPLES
from workflow_scripts.provenance.artefacts import read_record, read_table

KEY = "canary-77f0aa12bc"
LABEL = "a toy stands in for Google"
LIMITS = {"shards": 2, "untranslated_share": 0.8, "shortened_ratio": 0.5, "refused_share": 0.05}


def back_to_front(text, target):
    words = re.sub(r"\w+", lambda word: word[0][::-1], text)
    return words.replace("town", "city") if target == "en" else words


cipher = translations(back_to_front)
"""Each word back to front, so that two legs give the sentence back; "town" becomes "city" on the way home."""


class Workshop(api_jobs.Workshop):
    """A folder with a corpus, in which both jobs are started."""

    def __init__(self, folder, sentences):
        super().__init__(folder, "LIBRE_KEY", KEY)
        self.write_sentences("base.parquet", sentences)

    def settings(self, server_url, service=None, **translation):
        """Settings of a translation and of its requests; no detector knows the language "xx"."""
        engine = {"engine": "libretranslate"}
        how = {"url": server_url, "key_variable": "LIBRE_KEY", "calls": CALLS}
        base = {
            "corpus": "toy",
            "translator": "libre",
            "max_sentences": None,
            "source": "en",
            "pivot_language": "xx",
        }
        deciding = {name: value for name, value in LIMITS.items() if name != "refused_share"}
        asked = {"translation": base | translation, "translator": engine, "limits": deciding}
        return asked, {"translator": engine | how | (service or {}), "limits": LIMITS}

    def translate(self, settings, item="1-of-1", trips=None):
        asked, service = settings
        return self.start(
            "translate_shard", asked, service=service, corpus="toy", scatteritem=item, sentences="base.parquet",
            trips=f"trips/{trips or item + '.parquet'}",
        )  # fmt: skip

    def translated(self, settings, item="1-of-1"):
        return finish(self.translate(settings, item))

    def gather(self, items):
        settings = {
            "shape": {"training_text": "pairs", "unchanged": "drop"}, "max_sentences": None, "label": LABEL, "similarity": None,
        }  # fmt: skip
        files = {"train": "train.parquet", "dropped": "dropped.parquet", "sentences": "base.parquet"}
        trips = [f"trips/{item}.parquet" for item in items]
        return finish(self.start("gather_round_trips", settings, corpus="toy_es", trips=trips, **files))


@pytest.fixture
def shop(tmp_path):
    return Workshop(tmp_path, toys.sentences(40))


def test_two_parts_become_pairs_and_every_row_is_accounted_for(shop):
    with FaultServer(cipher) as server:
        for item in ("1-of-2", "2-of-2"):
            assert shop.translated(shop.settings(server.url), item)[0] == 0
    assert len(server.requests) == 80  # 40 sentences, all different, both ways
    assert shop.gather(["2-of-2", "1-of-2"])[0] == 0  # in any order
    pairs = read_table(shop.folder / "train.parquet", TRIPLES)
    with_town = [sentence for sentence in toys.sentences(40) if "town" in sentence]
    assert 0 < len(with_town) < 40
    assert pairs["anchor"].to_pylist() == with_town
    assert pairs["positive"].to_pylist() == [sentence.replace("town", "city") for sentence in with_town]
    assert pairs["negative"].null_count == len(pairs)
    dropped = read_table(shop.folder / "dropped.parquet", DROPPED).to_pylist()
    assert dropped == [{"reason": "unchanged", "count": 40 - len(with_town)}]
    assert [*map(str, read_record(shop.folder / "train.parquet").labels)] == [LABEL]
    asked = read_record(shop.folder / "trips/1-of-2.parquet").inputs["forth"].path
    assert asked == "translator:libretranslate en xx"


def test_kill_9_costs_at_most_the_request_in_flight(tmp_path):
    """`kill -9` in the middle costs at most the request in flight."""
    shop = Workshop(tmp_path, toys.sentences(100))
    with FaultServer(cipher) as server:
        settings = shop.settings(server.url)
        for stop_at in (60, 140):
            process = shop.translate(settings)
            while len(server.requests) < stop_at:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert list(tmp_path.glob("trips/*.parquet")) == []
        assert shop.translated(settings)[0] == 0
        assert 2 * 100 <= len(server.requests) <= 2 * 100 + 2  # one a kill
    assert len(read_table(tmp_path / "trips/1-of-1.parquet", ROUND_TRIPS)) == 100
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
def test_a_fault_is_one_line_and_the_key_is_nowhere(shop, script, message):
    with FaultServer(cipher, script) as server:
        code, printed = shop.translated(shop.settings(server.url))
    assert message in one_line(code, printed)
    assert KEY not in printed
    assert shop.holds(KEY) == []
    assert list(shop.folder.glob("trips/*")) == []


def test_a_missing_or_foreign_part_is_noticed(shop):
    with FaultServer(cipher) as server:
        shop.translated(shop.settings(server.url), "1-of-2")
        shop.translated(shop.settings(server.url, max_sentences=30), "2-of-2")
    for items in (["1-of-2"], ["1-of-2", "2-of-2"], ["1-of-2", "1-of-2"]):
        assert "do not match the corpus's 40 sentences. Delete the folder" in one_line(*shop.gather(items))


def test_two_jobs_at_once_pay_for_every_request_once(tmp_path):
    """200 sentences, both ways; each answer is another one every time, so that a second one would be seen."""
    shop = Workshop(tmp_path, toys.sentences(200))
    with FaultServer(
        translations(
            lambda text, target: (
                f"{time.monotonic_ns()} {' '.join(w[::-1] for w in text.replace('.', '').split()[::-1])}."
            )
        )
    ) as server:
        processes = [
            shop.translate(
                shop.settings(server.url, {"calls": CALLS | {"workers": 4}}), trips=f"{name}.parquet"
            )
            for name in ("one", "two")
        ]
        assert [process.communicate() and process.returncode for process in processes] == [0, 0]
        assert len(server.requests) == 400
    rows = [read_table(tmp_path / f"trips/{name}.parquet", ROUND_TRIPS) for name in ("one", "two")]
    assert rows[0].equals(rows[1])
