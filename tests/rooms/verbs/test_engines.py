"""One question to every engine that jobs need, and the line of preflight on its answer."""

import pytest

from tests.support import fault_server
from tests.support.api_jobs import CALLS
from tests.support.fault_server import FaultServer
from tests.support.snakemake_plans import merged_config, settings_with
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.preflight import engine_answers

JOBS = [
    *[
        PlannedJob(
            "translate_shard",
            {"corpus": "fr"},
            {},
            [],
            [],
            queued={"api_calls": 1},
            outside="translators.libre",
        )
        for _ in range(8)
    ],
    PlannedJob("write_exemplars", {"pool": "mine"}, {}, [], [], queued={"api_calls": 1}, outside="llms.toy"),
    PlannedJob("count_words", {"corpus": "fr"}, {}, [], []),
]


@pytest.fixture
def config(monkeypatch):
    """A function that makes the configuration of a study with both kinds of engines, each at an address."""
    monkeypatch.setenv("TOY_KEY", "sk-canary")

    def made(translator, model):
        real = merged_config("config/config.yaml")
        trip = real["corpora"]["wiki_spa"]["round_trip"] | {
            "translator": "libre",
            "source": "en",
            "pivot_language": "es",
        }
        libre = {
            "engine": "libretranslate",
            "url": translator,
            "key_variable": None,
            "calls": CALLS,
        }
        toy = {
            "base_url": f"{model}v1", "model": "toy", "model_ids": None, "key_variable": "TOY_KEY", "temperature": None,
            "seed": None, "max_completion_tokens": 64, "response_format": "text", "tokens_parameter": "max_tokens", "calls": CALLS, "price": None,
        }  # fmt: skip
        return settings_with(
            corpora={"fr": {"round_trip": trip, "label": None}},
            exemplars={"mine": real["exemplars"]["wiki1m_300"] | {"llm": "toy"}},
            translators={"libre": libre},
            llms={"toy": toy},
        )

    return made


def test_each_is_asked_once_and_its_answer_is_shown(config):
    proper = fault_server.chat(lambda asked: "It flows.")
    with FaultServer(fault_server.libretranslate) as translator, FaultServer(proper) as model:
        lines = [*engine_answers(config(translator.url, model.url), JOBS)]
        assert len(translator.requests) == len(model.requests) == 1
    toy, (libre, said) = lines
    assert libre
    assert said.startswith("translators.libre: answers, '")
    assert toy == (True, "llms.toy: answers, 'It flows.'")


def test_one_that_does_not_answer_is_a_line_with_a_remedy(config):
    lines = [*engine_answers(config("http://127.0.0.1:9/", "http://127.0.0.1:9/"), JOBS)]
    assert [good for good, _ in lines] == [False, False]
    assert all(
        line.startswith(place)
        for (_, line), place in zip(lines, ("llms.toy", "translators.libre"), strict=True)
    )
