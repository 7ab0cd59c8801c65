"""write_exemplars and pick_exemplars as their rules start them, on the words of real text and MiniLM's tokeniser."""

import json
import shutil

import pytest

from benchmarks.material import minilm, wikipedia_sentences
from tests.support import api_jobs, fault_server
from tests.support.api_jobs import CALLS, finish, one_line
from tests.support.fault_server import FaultServer, fault
from workflow_scripts.columns import DROPPED, EXEMPLARS, SENTENCES, USAGE, WORD_COUNTS
from workflow_scripts.data.word_lists import spoken, top_words
from workflow_scripts.data.words import word_counts
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.provenance.artefacts import (
    job_record,
    read_record,
    read_table,
    verify_checksum,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.corpora import Words

KEY = "sk-canary-04d6e2a9c1"
POOL = {
    "corpus": "toy", "encoder": "toy", "word_list_size": 300, "sentences": 64, "min_uses_per_word": 2,
    "max_tokens": 32, "listed_share": 0.5,
}  # fmt: skip
LLM_POOL = POOL | {
    "generator": "llm", "llm": "toy", "prompt": "toy", "words_per_call": 50, "sentences_per_call": 5, "max_calls": 120,
    "seed": 0, "label": None,
}  # fmt: skip
PROMPT = (ROOT / "resources/prompts/three_r_exemplars.txt").read_text()


def structured(asked):
    """Five sentences as JSON, of a server that is asked for it."""
    assert asked["response_format"]["type"] == "json_schema"
    return json.dumps({"sentences": fault_server.five_sentences(asked)})


class Workshop(api_jobs.Workshop):
    """A folder with words, text and a tokeniser, in which both jobs are started."""

    def __init__(self, folder):
        super().__init__(folder, "TOY_KEY", KEY)

    def write(self, server, form="text", **pool):
        block = {
            "base_url": f"{server.url}v1", "model": "deepseek-chat", "model_ids": ["deepseek-chat"], "key_variable": "TOY_KEY",
            "temperature": 1.0, "seed": None, "max_completion_tokens": 512, "response_format": form, "tokens_parameter": "max_tokens", "calls": CALLS,
            "price": {"input_usd_per_million": 0.27, "output_usd_per_million": 1.1, "as_of": "2025-02-09"},
        }  # fmt: skip
        deciding = ("model", "model_ids", "temperature", "seed", "max_completion_tokens", "response_format")
        settings = {"pool": LLM_POOL | pool, "llm": {name: block[name] for name in deciding}}
        files = {"words": "words.parquet", "prompt": "prompt.txt", "usage": "usage.parquet"}
        return self._job("write_exemplars", settings, service={"llm": block}, **files)

    def pick(self, **pool):
        settings = {"pool": POOL | {"generator": "extractive", "max_candidates": 5000} | pool}
        return finish(self._job("pick_exemplars", settings, words="words.parquet", sentences="train.parquet"))

    def _job(self, rule, settings, **files):
        files |= {"encoder": "encoder/record.json", "exemplars": "pool.parquet", "dropped": "dropped.parquet"}
        return self.start(rule, settings, pool="toy", **files)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder, texts = tmp_path_factory.mktemp("exemplars"), wikipedia_sentences(4000)
    record = job_record("count_words", settings={}, inputs={}, outputs=[])
    Workshop(folder).write_sentences("train.parquet", texts)
    write_table(folder / "words.parquet", word_counts(texts, Words(peak_window=20)), record)
    with writing_model_folder(folder / "encoder", record) as encoder:
        for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
            shutil.copy(minilm() / name, encoder / name)
    (folder / "prompt.txt").write_text(PROMPT)
    return folder


@pytest.fixture
def shop(filled, tmp_path):
    """A folder of its own for every test; filling one takes seconds."""
    shutil.copytree(filled, tmp_path / "shop")
    return Workshop(tmp_path / "shop")


def assert_covers(folder, word_list_size, share=0.5):
    """O-68, looked at from outside."""
    pool = read_table(folder / "pool.parquet", EXEMPLARS)
    sentences = pool["sentence"].to_pylist()
    assert len(sentences) == len(set(sentences)) == 64
    tokenizer = load_tokenizer(folder / "encoder")
    assert max(len(ids) for ids in tokenizer(sentences)["input_ids"]) <= 32
    counts = read_table(folder / "words.parquet", WORD_COUNTS)
    listed = {*map(spoken, top_words(counts, word_list_size))} - {""}
    used = [spoken(word) for sentence in sentences for word in sentence.split()]
    assert len(listed) > 0.9 * word_list_size
    assert all(used.count(word) >= 2 for word in listed)
    assert all(sum(spoken(w) in listed for w in s.split()) >= share * len(s.split()) for s in sentences)
    return pool


def test_a_model_writes_a_pool_that_covers_its_list(shop):
    with FaultServer(fault_server.chat(fault_server.numbered)) as server:
        code, printed = finish(shop.write(server))
        assert code == 0, printed
    calls = len(server.requests)
    assert 13 <= calls < 120
    pool = assert_covers(shop.folder, 300)
    assert set(pool["source"].to_pylist()) == {"deepseek-chat"}
    assert read_table(shop.folder / "dropped.parquet", DROPPED).schema == DROPPED
    (usage,) = read_table(shop.folder / "usage.parquet", USAGE).to_pylist()
    assert usage["calls"] == calls
    assert usage["cost_usd"] == pytest.approx((100 * calls * 0.27 + 50 * calls * 1.1) / 1e6)
    assert [*map(str, read_record(shop.folder / "pool.parquet").labels)] == []
    tables = ("pool.parquet", "dropped.parquet", "usage.parquet")
    first = {name: verify_checksum(shop.folder / name) for name in tables}
    assert shop.holds(KEY) == []
    shop.workplace["offline"] = True
    del shop.environment["TOY_KEY"]
    assert finish(shop.write(server))[0] == 0
    assert {name: verify_checksum(shop.folder / name) for name in first} == first
    (shop.folder / "prompt.txt").write_text(f"Be brief. {PROMPT}")
    assert "answers.sqlite, and the study is offline" in one_line(*finish(shop.write(server)))


def test_a_server_that_refuses_json_is_asked_for_text(shop):
    """JSON is asked for and a server that refuses it is asked for text."""
    with FaultServer(fault_server.chat(structured)) as server:
        code, printed = finish(shop.write(server, "json_schema"))
        assert code == 0, printed
    asked = read_record(shop.folder / "pool.parquet").inputs["model"].path
    assert asked == "llm:deepseek-chat asked for JSON"
    first = read_table(shop.folder / "pool.parquet", EXEMPLARS)
    (shop.folder / "answers/answers.sqlite").unlink()
    refusal = fault(400, '{"error": {"message": "This response_format type is unavailable now"}}')
    with FaultServer(fault_server.chat(fault_server.numbered), [refusal]) as server:
        code, printed = finish(shop.write(server, "json_schema"))
        assert code == 0, printed
        assert [request.get("response_format") is None for request in server.requests[:3]] == [
            False,
            True,
            True,
        ]
    asked = read_record(shop.folder / "pool.parquet").inputs["model"].path
    assert asked == "llm:deepseek-chat asked for text, since the server refuses JSON by a schema"
    assert read_table(shop.folder / "pool.parquet", EXEMPLARS).equals(first)


def test_a_server_that_refuses_all_is_asked_for_json_again(shop):
    refusal = fault(400, '{"error": {"message": "Unsupported parameter: max_tokens"}}')
    with FaultServer(fault_server.chat(structured), [refusal] * 20) as server:
        assert "Unsupported parameter: max_tokens" in one_line(*finish(shop.write(server, "json_schema")))
        server.script.clear()
        code, printed = finish(shop.write(server, "json_schema"))
        assert code == 0, printed
    asked = read_record(shop.folder / "pool.parquet").inputs["model"].path
    assert asked == "llm:deepseek-chat asked for JSON"


def test_a_model_that_is_not_up_to_it_ends_with_its_answer(shop):
    same = "\n".join(["The old town is on the river."] * 5)
    for said, found in (
        ("The old town.", "rejected, not a list of 5 sentences: 'The old town.'"),
        (same, "5 answers without a usable sentence; refused: {'repeated': 24"),
    ):
        with FaultServer(fault_server.chat(lambda asked, said=said: said)) as server:
            message = one_line(*finish(shop.write(server, max_calls=8)))
            assert len(server.requests) == 5
        assert found in message
        assert "'The old town" in message
        (shop.folder / "answers/answers.sqlite").unlink()


def test_a_prompt_is_read_without_marks_of_its_encoding(shop):
    prompt = shop.folder / "prompt.txt"
    prompt.write_bytes(PROMPT.encode("utf-8-sig"))
    with FaultServer(fault_server.chat()) as server:
        finish(shop.write(server))
        assert server.requests[0]["messages"][0]["content"].startswith("Please")
        prompt.write_bytes("Caf\u00e9. ".encode("latin-1") + PROMPT.encode())
        assert "prompt.txt:1: byte 0xe9 is not UTF-8. Convert the file to UTF-8." in one_line(
            *finish(shop.write(server))
        )


def test_a_corpus_gives_a_pool_of_its_own_sentences_that_says_so(shop):
    code, printed = shop.pick(word_list_size=103)
    assert code == 0, printed
    pool = assert_covers(shop.folder, 103)
    texts = read_table(shop.folder / "train.parquet", SENTENCES)["sentence"].to_pylist()
    assert [texts[place] for place in pool["place"].to_pylist()] == pool["sentence"].to_pylist()
    assert [*map(str, read_record(shop.folder / "pool.parquet").labels)] == [
        "sentences of the corpus toy stand in for exemplars of a language model"
    ]
    found = one_line(*shop.pick(word_list_size=300))
    assert "usable sentences, 64 of 64 sentences use" in found
    assert found.endswith(". Choose a larger corpus, or reduce word_list_size.")
    few = one_line(*shop.pick(word_list_size=300, max_candidates=64))
    assert few.endswith(". Increase max_candidates, or reduce word_list_size.")
