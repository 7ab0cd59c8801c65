"""A translator through Snakemake itself: two shards at once, on one ledger."""

import re
import sqlite3

import pyarrow.parquet as pq
import pytest
import yaml

from tests.support import fault_server
from tests.support.fault_server import FaultServer
from tests.support.snakemake_plans import DEMO, copy_tree, run

TARGET = "results/toy/corpora/toy/train.parquet"
KEY = "sk-canary-55ab01ef77"
SENTENCES = 60


def translated(text, target):
    """Each word back to front, and "the" becomes "this" on the way home."""
    words = re.sub(r"\w+", lambda word: word[0][::-1], text)
    return words.replace("the", "this") if target == "en" else words


def translate(tree, server_url, *arguments, **calls):
    """Run the demo with a corpus that a server translates, in two shards; no detector knows the language "xx"."""
    libre = {"url": server_url, "key_variable": "TOY_KEY"}
    libre["calls"] = {"timeout_seconds": 20, "attempts": 2, "workers": 4} | calls
    trip = {
        "corpus": "wiki_extract", "translator": "libretranslate", "source": "en", "pivot_language": "xx", "max_sentences": SENTENCES,
        "training_text": "pairs", "unchanged": "keep",
    }  # fmt: skip
    study = {
        "name": "toy",
        "translators": {"libretranslate": libre},
        "round_trip": {"shards": 2, "refused_share": 0.1},
        "corpora": {"toy": {"round_trip": trip, "label": "a toy stands in for Google"}},
    }
    (tree / "study.yaml").write_text(yaml.safe_dump(study))
    command = [
        "-m",
        "snakemake",
        "--cores",
        "2",
        "--configfile",
        DEMO,
        "study.yaml",
        *arguments,
        "--",
        TARGET,
    ]
    return run(tree, *command, TOY_KEY=KEY, PYTHONPATH=str(tree))


@pytest.mark.slow
def test_a_server_translates_and_another_port_changes_nothing(tmp_path):
    """A server translates a corpus and another port changes nothing."""
    tree = copy_tree(tmp_path)
    with FaultServer(fault_server.translations(translated)) as server:
        done = translate(tree, server.url)
        assert done.returncode == 0, done.stdout + done.stderr
        pairs = pq.read_table(tree / TARGET).to_pylist()
        assert len(pairs) > SENTENCES / 2
        assert all(pair["positive"] == pair["anchor"].replace("the", "this") for pair in pairs)
        assert any(pair["positive"] != pair["anchor"] for pair in pairs)
        texts = {(request["q"], request["target"]) for request in server.requests}
        asked = len(server.requests)
        assert len(texts) == asked  # nothing twice
        endpoint = server.url.rstrip("/")
    with sqlite3.connect(tree / "answers/answers.sqlite") as ledger:
        kept = ledger.execute(
            "SELECT json_extract(attributes, '$.endpoint'), count(*) FROM requests GROUP BY 1"
        ).fetchall()
    assert kept == [(endpoint, asked)]
    first = (tree / TARGET).read_bytes()
    with FaultServer(fault_server.translations(translated)) as other:
        again = translate(tree, other.url, workers=1, timeout_seconds=3, per_second=1.0)
        assert again.returncode == 0
        assert "Nothing to be done" in again.stdout + again.stderr
        forced = translate(tree, other.url, "--forcerun", "translate_shard")
        assert forced.returncode == 0, forced.stdout + forced.stderr
        assert other.requests == []
    assert (tree / TARGET).read_bytes() == first
    written = [path for path in tree.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert written == []
