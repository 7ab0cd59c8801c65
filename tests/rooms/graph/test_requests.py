"""Memory and time that jobs ask for, at the papers' scale."""

import pytest

from tests.support.snakemake_plans import ROOT, study_in
from workflow_scripts.graph.resources import resources_of

HUGE = "llama2_7b_mntp"


@pytest.fixture(scope="module")
def papers():
    return study_in(ROOT, [])


def memory_and_time(study, encoder, attempt=1, gigabytes=8, hours=1):
    functions = resources_of(study, gigabytes, hours=hours, encoders=lambda _: [encoder])
    return tuple(functions[name](None, attempt) for name in ("mem", "runtime"))


@pytest.mark.parametrize(
    ("encoder", "attempt", "memory", "minutes"),
    [
        ("bert_base", 1, "8GB", 60),
        ("roberta_large", 3, "24GB", 540),
        ("bert_twin", 1, "8GB", 120),
        ("bert_six", 1, "8GB", 360),
        (HUGE, 1, "40GB", 3600),
    ],
)
def test_a_job_asks_by_size_and_each_try_for_more(papers, encoder, attempt, memory, minutes):
    """A job asks by the size of its encoders and each try for as much again."""
    assert memory_and_time(papers, encoder, attempt) == (memory, minutes)
