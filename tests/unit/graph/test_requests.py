"""Memory and time that jobs ask a queue for."""

from types import SimpleNamespace

import pytest

from tests.planning import ROOT, merged_config
from workflow_scripts.graph.study import open_study
from workflow_scripts.graph.training import Requests


@pytest.fixture(scope="module")
def study():
    return open_study(merged_config(ROOT, "config/config.yaml"), ROOT)


@pytest.fixture(scope="module")
def requests(study):
    return Requests(study)


def run_on(study, encoder):
    return SimpleNamespace(run=next(name for name, run in study.runs.items() if run.encoder == encoder))


@pytest.mark.parametrize(
    ("encoder", "memory", "minutes"),
    [
        ("bert_base", "8GB", 60),
        ("roberta_large", "8GB", 180),
        ("bert_twin", "8GB", 120),
        ("bert_six", "8GB", 360),
        ("llama2_7b_mntp", "40GB", 3600),
    ],
)
def test_a_job_asks_by_the_size_of_its_encoders(study, requests, encoder, memory, minutes):
    run = run_on(study, encoder)
    assert requests.memory(8, "run")(run) == memory
    assert requests.minutes(60, "run")(run) == minutes
    assert requests.memory(8)(run) == "8GB"


def test_each_try_asks_for_as_much_again_and_teachers_by_their_own_encoder(study, requests):
    run = run_on(study, "roberta_large")
    assert requests.memory(16, "run")(run, attempt=3) == "48GB"
    assert requests.minutes(30, "run")(run, attempt=3) == 270
    assert requests.memory(16, "teacher")(SimpleNamespace(teacher="jtcse_bert")) == "16GB"
    assert requests.memory(20, "extraction")(SimpleNamespace()) == "20GB"
