"""A job's key changes with whatever can change its result, and with nothing else."""

import pytest

from workflow_scripts.provenance.key import job_key

JOB = {
    "wildcards": {"run": "plain", "seed": "1"},
    "settings": {"method": {"temperature": 0.05, "layers": [1, 2]}, "training": {"steps": 3}},
    "inputs": {"encoder": {"a": "1" * 64, "b": "2" * 64}, "corpus": "3" * 64},
    "code_hashes": {"workflow_scripts/jobs/train_encoder.py": "4" * 64},
    "packages": {"torch": "2.0"},
}


def key(rule="train_encoder", **changes):
    return job_key(rule, **JOB | changes)


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "continue_mlm"},
        {"wildcards": {"run": "plain", "seed": "2"}},
        {"settings": {"method": {"temperature": 0.06, "layers": [1, 2]}, "training": {"steps": 3}}},
        {"settings": {"method": {"temperature": 3, "layers": [1, 2]}, "training": {"steps": 0.05}}},
        {"settings": {"method": {"temperature": 0.05, "layers": [2, 1]}, "training": {"steps": 3}}},
        {"inputs": JOB["inputs"] | {"corpus": "5" * 64}},
        {"inputs": JOB["inputs"] | {"encoder": {"b": "2" * 64, "a": "1" * 64}}},
        {"inputs": JOB["inputs"] | {"words": "6" * 64}},
        {"code_hashes": {"workflow_scripts/jobs/train_encoder.py": "5" * 64}},
        {"packages": {"torch": "2.1"}},
    ],
)
def test_whatever_decides_the_result_changes_the_key(change):
    assert key(**change) != key()


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"training": {"steps": 3.0}, "method": {"layers": [1.0, 2], "temperature": 0.05}}},
        {"inputs": {"corpus": "3" * 64, "encoder": {"a": "1" * 64, "b": "2" * 64}}},
        {"wildcards": {"seed": "1", "run": "plain"}},
    ],
)
def test_another_spelling_of_the_same_job_has_the_same_key(change):
    assert key(**change) == key()
