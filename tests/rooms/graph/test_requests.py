"""Memory and time that jobs ask a queue for."""

from types import SimpleNamespace

import pytest

from tests.planning import ROOT, study_in
from workflow_scripts.graph.training import Requests


@pytest.fixture(scope="module")
def study():
    return study_in(ROOT, [])


@pytest.mark.parametrize(
    ("encoder", "attempt", "memory", "minutes"),
    [
        ("bert_base", 1, "8GB", 60),
        ("roberta_large", 1, "8GB", 180),
        ("roberta_large", 3, "24GB", 540),
        ("bert_twin", 1, "8GB", 120),
        ("bert_six", 1, "8GB", 360),
        ("llama2_7b_mntp", 1, "40GB", 3600),
    ],
)
def test_a_job_asks_by_the_size_of_its_encoders_and_each_try_for_as_much_again(
    study, encoder, attempt, memory, minutes
):
    run = SimpleNamespace(run=next(name for name, run in study.runs.items() if run.encoder == encoder))
    assert Requests(study).memory(8, "run")(run, attempt) == memory
    assert Requests(study).minutes(60, "run")(run, attempt) == minutes


def test_teachers_and_the_extraction_study_ask_by_their_own_encoder(study):
    assert Requests(study).memory(16, "teacher")(SimpleNamespace(teacher="jtcse_bert")) == "16GB"
    assert Requests(study).memory(20, "extraction")(SimpleNamespace()) == "20GB"
    assert Requests(study).memory(8)(SimpleNamespace()) == "8GB"
