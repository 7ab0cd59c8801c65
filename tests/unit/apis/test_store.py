import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.apis.store import AnswerStore, key_of
from workflow_scripts.closure import ROOT
from workflow_scripts.errors import DataError

WRITER = """
import sys
from pathlib import Path
from workflow_scripts.apis.store import AnswerStore, key_of

store, name, count = AnswerStore(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for number in range(count):
    store.settle({key_of({"text": number}): f"{name} {number}"})
    print(number, flush=True)
"""


def keys(count):
    return [key_of({"text": number}) for number in range(count)]


def writer(path, name, count):
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )


def test_an_answer_is_found_again_after_the_store_was_closed(tmp_path):
    with AnswerStore(tmp_path / "deep/answers.sqlite") as store:
        assert store.settle({key_of({"text": "a"}): "A", key_of({"text": "b"}): ""}) != {}
    with AnswerStore(tmp_path / "deep/answers.sqlite") as store:
        assert store.find([key_of({"text": t}) for t in "abc"]) == {
            key_of({"text": "a"}): "A",
            key_of({"text": "b"}): "",
        }


def test_many_keys_are_found_at_once(tmp_path):
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        store.settle({key: str(number) for number, key in enumerate(keys(1201))})
        found = store.find(keys(1300))
        assert [found[key] for key in keys(1201)] == [str(number) for number in range(1201)]
        assert len(found) == 1201
        assert store.find([]) == {}


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5)),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5)),
)
@settings(max_examples=50)
def test_requests_have_one_key_if_and_only_if_they_are_equal(one, other):
    assert (key_of(one) == key_of(other)) == (one == other)
    assert key_of(one) == key_of(dict(reversed(one.items())))


def test_the_first_answer_counts_also_for_who_brings_a_second(tmp_path):
    key = key_of({"text": "a"})
    with AnswerStore(tmp_path / "answers.sqlite") as one, AnswerStore(tmp_path / "answers.sqlite") as two:
        assert one.settle({key: "first"}) == {key: "first"}
        assert two.settle({key: "second"}) == {key: "first"}


@pytest.mark.parametrize("change", ["UPDATE answers SET answer = 'x'", "DELETE FROM answers"])
def test_nothing_is_changed_or_taken_out(tmp_path, change):
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        store.settle({key_of({}): "kept"})
    with (
        sqlite3.connect(tmp_path / "answers.sqlite") as database,
        pytest.raises(sqlite3.IntegrityError, match="append only"),
    ):
        database.execute(change)


def test_two_writers_at_once_lose_nothing_and_agree(tmp_path):
    path = tmp_path / "answers.sqlite"
    processes = [writer(path, name, 300) for name in ("one", "two")]
    assert [process.wait() for process in processes] == [0, 0]
    with AnswerStore(path) as store:
        assert len(store) == 300
        assert {answer.split()[1] for answer in store.find(keys(300)).values()} == set(map(str, range(300)))


def test_what_was_settled_survives_kill_9_at_any_moment(tmp_path):
    path = tmp_path / "answers.sqlite"
    for _round in range(3):
        process = writer(path, "killed", 100_000)
        settled = [int(process.stdout.readline()) for _ in range(40)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        with AnswerStore(path) as store:
            assert set(keys(max(settled) + 1)) <= store.find(keys(200)).keys()
            assert store.settle({key_of({"round": _round}): "goes on"}) != {}


def test_a_file_that_is_no_store_ends_in_one_line(tmp_path):
    (tmp_path / "answers.sqlite").write_text("not a database, but long enough to look like one" * 20)
    with pytest.raises(DataError, match=r"answers\.sqlite: .*Move the file away"):
        AnswerStore(tmp_path / "answers.sqlite")
