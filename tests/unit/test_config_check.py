"""References of suites: every dataset and list that one names is there, and of the form its kind reads."""

import pytest

from workflow_scripts.config_check import check_references, datasets_in
from workflow_scripts.errors import ConfigError

DATASETS = {
    "sts12": {"form": "pairs"},
    "agnews": {"form": "labelled"},
    "wiki": {"form": "sentences"},
}


def config(**suites):
    return {
        "corpora": {},
        "encoders": {},
        "methods": {},
        "exemplars": {},
        "exemplar_pools": [],
        "development": {"dataset": None},
        "datasets": DATASETS,
        "mteb": {"lists": {"jtcse_sts22": {}}},
        "suites": suites,
    }


def check(**suites):
    check_references(config(**suites), {})


def test_suites_that_name_what_is_there_pass():
    check(
        sts={"a": {"datasets": ["sts12"]}},
        geometry={"b": {"positives": {"p": {"dataset": "sts12"}}, "clouds": {"c": {"dataset": "wiki"}}}},
        clustering={"c": {"datasets": ["agnews"]}},
        transfer={"d": {"datasets": ["agnews"], "graded": ["agnews"]}},
        cost={"e": {"tokens": 8}},
        attention={"f": {"energy": {"dataset": "wiki"}}},
        mteb={"g": {"lists": ["jtcse_sts22"]}},
    )


@pytest.mark.parametrize(
    ("suites", "message"),
    [
        (
            {"clustering": {"c": {"datasets": ["agnew"]}}},
            r"suites\.clustering\.c\.datasets: agnew is not .* mean agnews\?",
        ),
        (
            {"attention": {"a": {"energy": {"dataset": "wikis"}}}},
            r"suites\.attention\.a\.datasets: wikis is not .* mean wiki\?",
        ),
        (
            {"transfer": {"t": {"datasets": ["agnews"], "graded": ["agnew"]}}},
            r"suites\.transfer\.t\.graded: agnew is not .* mean agnews\?",
        ),
        (
            {"mteb": {"m": {"lists": ["jtcse_sts"]}}},
            r"suites\.mteb\.m\.lists: jtcse_sts is not .* mean jtcse_sts22\?",
        ),
        (
            {"search": {"s": {"datasets": ["sts12"]}}},
            r"suites\.search\.s\.datasets: sts12 has the form pairs; search reads labelled",
        ),
        (
            {"sts": {"one": {"datasets": ["sts12"]}}, "clustering": {"one": {"datasets": ["agnews"]}}},
            r"suites\.clustering\.one: suites\.sts has that name too",
        ),
    ],
)
def test_a_suite_with_a_mistake_is_named_in_one_line(suites, message):
    with pytest.raises(ConfigError, match=message):
        check(**suites)


def test_a_suite_names_each_dataset_once():
    measure = {"dataset": "sts12"}
    assert datasets_in({"positives": {"p": measure}, "clouds": {"c": measure}}) == ["sts12"]
    assert datasets_in({"energy": measure, "maps": {}}) == ["sts12"]
    assert datasets_in({"tokens": 64}) == []
