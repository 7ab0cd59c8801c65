import os
import random
import signal
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.apis.store import AnswerStore, key_of
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.tools import save_answers

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
    with pytest.raises(DataError, match=r"answers\.sqlite: damaged \(file is not a database\)"):
        AnswerStore(tmp_path / "answers.sqlite")


# Damage


ANSWERS = {key_of({"text": number}): f"answer {number} " * 5 for number in range(300)}


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "answers.sqlite"
    with AnswerStore(path) as store:
        store.settle(ANSWERS)
    assert [file.name for file in tmp_path.iterdir()] == ["answers.sqlite"]  # nothing is left in a log
    return path


def flip(path, position, bit):
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


def test_no_flipped_bit_changes_or_loses_an_answer_unseen(filled):
    """At 400 places: each is noticed, or lies where nothing is kept, and every answer is as it was."""
    generator = random.Random(0)
    content = filled.read_bytes()
    noticed = 0
    for _round in range(400):
        flip(filled, generator.randrange(len(content)), generator.randrange(8))
        try:
            with AnswerStore(filled) as store:
                assert store.find(list(ANSWERS)) == ANSWERS
        except DataError as error:
            assert "save_answers" in str(error)
            noticed += 1
        for left in filled.parent.iterdir():
            left.unlink()
        filled.write_bytes(content)
    assert noticed > 200


def test_a_damaged_answer_is_not_used(filled):
    position = filled.read_bytes().index(b"answer 7 ")
    flip(filled, position, 0)
    with AnswerStore(filled) as store, pytest.raises(DataError, match="an answer has a wrong checksum"):
        store.find([key_of({"text": 7})])


def test_an_answer_is_not_called_missing_before_the_whole_file_was_read(filled):
    """The first find is content; the other would pay for an answer that is there, under a damaged request."""
    flip(filled, filled.read_bytes().index(b"answer 7 ") - 5, 0)
    with AnswerStore(filled) as store:
        assert store.find([key_of({"text": 8})]) == {key_of({"text": 8}): "answer 8 " * 5}
        with pytest.raises(DataError, match=r"damaged .*row 8 missing from index"):
            store.find([key_of({"text": "never asked"})])


def test_what_is_whole_in_a_damaged_store_can_be_saved(filled):
    flip(filled, filled.read_bytes().index(b"answer 7 "), 0)
    assert save_answers.save(filled) == 299
    kept = {key: answer for key, answer in ANSWERS.items() if not answer.startswith("answer 7 ")}
    with AnswerStore(filled.with_name("answers.sqlite.saved")) as store:
        assert store.find(list(kept)) == kept
    with pytest.raises(DataError, match="exists already"):
        save_answers.save(filled)


def test_what_lies_on_both_sides_of_a_damaged_page_can_be_saved(filled):
    content = bytearray(filled.read_bytes())
    place = content.index(b"answer 150 ") // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    filled.write_bytes(content)
    assert 150 < save_answers.save(filled) < 300


def test_a_store_of_which_nothing_can_be_saved_is_one_line(tmp_path):
    with pytest.raises(DataError, match="no whole answer"):
        save_answers.save(tmp_path / "absent.sqlite")
    (tmp_path / "garbage.sqlite").write_text("garbage")
    with pytest.raises(DataError, match="no whole answer"):
        save_answers.save(tmp_path / "garbage.sqlite")


# Stores of earlier versions


@pytest.fixture
def old(tmp_path):
    """A store whose rows have no checksum yet."""
    with sqlite3.connect(tmp_path / "answers.sqlite") as database:
        database.executescript(
            "CREATE TABLE answers (request BLOB PRIMARY KEY, answer TEXT NOT NULL);"
            "CREATE TRIGGER unchanged BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'append only'); END;"
            "CREATE TRIGGER kept BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'append only'); END;"
        )
        database.executemany("INSERT INTO answers VALUES (?, ?)", ANSWERS.items())
    database.close()
    return tmp_path / "answers.sqlite"


def test_an_old_store_is_given_its_checksums_once_and_stays_append_only(old):
    for _opened in range(2):
        with AnswerStore(old) as store:
            assert store.find([*ANSWERS, b"new"]) == ANSWERS
    with sqlite3.connect(old) as database, pytest.raises(sqlite3.IntegrityError, match="append only"):
        database.execute("DELETE FROM answers")
    flip(old, old.read_bytes().rindex(b"answer 7 "), 0)
    with AnswerStore(old) as store, pytest.raises(DataError, match="wrong checksum"):
        store.find([key_of({"text": 7})])


def test_two_processes_that_open_an_old_store_at_once_give_it_checksums_once(old):
    processes = [writer(old, name, 20) for name in ("one", "two")]
    assert [process.wait() for process in processes] == [0, 0]
    with AnswerStore(old) as store:
        assert store.find([*ANSWERS, b"new"]) == ANSWERS


def test_a_damaged_old_store_is_not_sealed(old):
    content = bytearray(old.read_bytes())
    content[4096 + 20] ^= 1
    old.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        AnswerStore(old)


def test_a_full_disk_is_not_called_damage(filled):
    with AnswerStore(filled) as store:
        (pages,) = store._database.execute("PRAGMA page_count").fetchone()
        store._database.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(DataError, match=r"database or disk is full\. Check free space"):
            store.settle({key_of({"long": 1}): "x" * 100_000})
        assert store.find(list(ANSWERS)) == ANSWERS
