"""Configuration files laid over each other: what they make, and lists that are not there to be added to."""

import pytest
import yaml
from snakemake.utils import update_config

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.configuration import as_in_a_file, base_files, load_config

BELOW = {"mine": ["demo"], "suites": {"sts": {"toy": {"datasets": ["lee"]}}}, "odd": {"a": 1}}


@pytest.fixture
def load(tmp_path):
    """The configuration that files with some contents make."""

    def load(*contents, given=None):
        paths = [tmp_path / f"{number}.yaml" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return load_config(ROOT, paths, given)

    return load


def test_without_additions_files_are_merged_as_snakemake_merges_them():
    theirs = {}
    for file in (*base_files(ROOT), ROOT / DEMO):
        update_config(theirs, yaml.safe_load(file.read_text()))
    assert merged_config(ROOT, DEMO) == theirs


def test_each_file_adds_to_what_those_before_it_make_and_the_command_line_last(load):
    first = {"mine+": ["a"], "suites": {"sts": {"toy": {"datasets+": ["other"]}}}}
    config = load(
        BELOW, first, {"mine+": ["b", "c"]}, given={"suites": {"sts": {"toy": {"datasets+": ["d"]}}}}
    )
    assert config["mine"] == ["demo", "a", "b", "c"]
    assert config["suites"]["sts"]["toy"] == {"datasets": ["lee", "other", "d"]}
    assert config["odd"] == {"a": 1}


def test_a_list_that_is_replaced_forgets_what_was_added_before(load):
    assert load(BELOW, {"mine+": ["a"]}, {"mine": ["new"]}, {"mine+": ["b"]})["mine"] == ["new", "b"]


def test_equal_numbers_have_one_form_and_text_in_quotes_stays_text(load):
    config = load(
        "a: [1e-4, 1.0e4, 2.0, -3E2, .5, '1e-4', 1e-4x]\n", given=as_in_a_file({"b": "{c: 1e-4}", "d": 2.0})
    )
    assert repr(config["a"]) == "[0.0001, 10000, 2, -300, 0.5, '1e-4', '1e-4x']"
    assert repr((config["b"], config["d"])) == "({'c': 0.0001}, 2)"


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"mien+": ["a"]}, "mien+: no file below has such a list. Did you mean mine?"),
        ({"suites": {"sts": {"toi": {"datasets+": ["a"]}}}},
         "suites.sts.toi.datasets+: no file below has such a list. Did you mean suites.sts.toy.datasets?"),
        ({"odd+": ["a"]}, "odd+: no file below has such a list."),
        ({"odd": {"a+": [2]}}, "odd.a+: no file below has such a list."),
        ({"odd": {"a": {"b+": [1]}}}, "odd.a.b+: no file below has such a list."),
        ({"mine+": "a"}, "mine+: 'a' is no list. Write [a]."),
        ({"mine": ["a"], "mine+": ["b"]}, "mine+: mine is in the same block."),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_added_to_is_one_line_with_its_file_and_key(load, tmp_path, overlay, message):
    with pytest.raises(ConfigError) as error:
        load(BELOW, overlay)
    assert str(error.value).startswith(f"{tmp_path}/1.yaml: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "found"), [([1, 2], "list at the top"), (3, "int at the top"), ("# later\n", "nothing in it")]
)
def test_a_file_without_keys_is_one_line(load, tmp_path, content, found):
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/0.yaml: {found}. Write keys"):
        load(content)


def test_all_mistakes_of_a_file_and_all_files_that_cannot_be_read_are_named(load):
    for contents in ([BELOW, {"a+": [1], "b+": [1]}], ["a: [", "a: 1\na: 2\n"]):
        with pytest.raises(ConfigError) as error:
            load(*contents)
        assert len(str(error.value).splitlines()) == 2
