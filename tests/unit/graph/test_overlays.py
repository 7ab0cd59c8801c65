"""Configuration files laid over each other: what they make, and lists that are not there to be added to."""

import pytest
import yaml
from snakemake.utils import update_config

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.overlays import merged
from workflow_scripts.graph.study import open_study
from workflow_scripts.graph.yaml_files import configfiles_of

BELOW = {"experiments": ["demo"], "suites": {"sts": {"lee": {"datasets": ["lee"]}}}, "words": {"a": 1}}
DEMO_FILES = [*configfiles_of(ROOT / "Snakefile"), ROOT / DEMO]


@pytest.fixture
def files(tmp_path):
    """Write configurations into files, in order."""

    def write(*contents):
        paths = [tmp_path / f"{number}.yaml" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return paths

    return write


def test_without_additions_files_are_merged_as_snakemake_merges_them():
    assert merged(DEMO_FILES) == merged_config(ROOT, DEMO)


def test_each_file_adds_to_what_those_before_it_make(files):
    first = {"experiments+": ["mine"], "suites": {"sts": {"lee": {"datasets+": ["other"]}}}}
    config = merged(files(BELOW, first, {"experiments+": ["yours", "theirs"]}))
    assert config["experiments"] == ["demo", "mine", "yours", "theirs"]
    assert config["suites"] == {"sts": {"lee": {"datasets": ["lee", "other"]}}}
    assert config["words"] == {"a": 1}


def test_a_list_that_is_replaced_forgets_what_was_added_before(files):
    config = merged(
        files(BELOW, {"experiments+": ["mine"]}, {"experiments": ["new"]}, {"experiments+": ["b"]})
    )
    assert config["experiments"] == ["new", "b"]


def test_the_command_line_adds_last(files):
    config = merged(
        files(BELOW, {"experiments+": ["mine"]}), {"suites": {"sts": {"lee": {"datasets+": ["b"]}}}}
    )
    assert (config["experiments"], config["suites"]["sts"]["lee"]["datasets"]) == (
        ["demo", "mine"],
        ["lee", "b"],
    )


def test_a_list_that_two_keys_share_by_an_anchor_is_added_to_once(files):
    config = merged(files("a: &same [1]\nb: *same\n", {"a+": [2]}))
    assert config == {"a": [1, 2], "b": [1]}


def test_a_study_is_what_it_is_with_its_lists_written_out(files):
    overlays = files({"exemplar_pools+": ["wiki_extract_extractive"]}, {"suites": {"sts": {"lee": {"datasets+": ["lee"]}}}})  # fmt: skip
    given = merged_config(ROOT, DEMO)
    for overlay in overlays:
        update_config(given, yaml.safe_load(overlay.read_text()))
    study = open_study(given, [*DEMO_FILES, *overlays], ROOT)
    written = merged_config(ROOT, DEMO)
    update_config(
        written,
        {"exemplar_pools": [*written["exemplar_pools"], "wiki_extract_extractive"],
         "suites": {"sts": {"lee": {"datasets": ["lee", "lee"]}}}},
    )  # fmt: skip
    assert study.config is given
    assert given == open_study(written, [], ROOT).config


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"experimants+": ["a"]}, "experimants+: no file below has a key experimants. Did you mean experiments?"),
        (
            {"suites": {"sts": {"leee": {"datasets+": ["a"]}}}},
            "suites.sts.leee.datasets+: no file below has a key leee. Did you mean lee?",
        ),
        (
            {"suites": {"sts": {"lee": {"dataset+": ["a"]}}}},
            "suites.sts.lee.dataset+: no file below has a key dataset. Did you mean datasets?",
        ),
        ({"words+": ["a"]}, "words+: words is a mapping below, no list. Write words without the plus."),
        ({"words": {"a+": [2]}}, "words.a+: a is 1 below, no list. Write a without the plus."),
        ({"words": {"a": {"b+": [1]}}}, "words.a.b+: no file below has a key b. Known: none."),
        ({"experiments+": "mine"}, "experiments+: 'mine' is no list. Write [mine]."),
        ({"experiments": ["a"], "experiments+": ["b"]}, "experiments+: experiments is in the same block."),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_added_to_is_one_line_with_its_file_and_key(files, overlay, message):
    below, above = files(BELOW, overlay)
    with pytest.raises(ConfigError) as error:
        merged([below, above])
    assert str(error.value).startswith(f"{above}: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("content", "kind"), [([1, 2], "list"), ([], "list"), (0, "int")])
def test_a_file_without_keys_is_one_line(files, content, kind):
    (file,) = files(content)
    with pytest.raises(ConfigError, match=rf"^{file}: {kind} at the top. Write keys with their values.$"):
        merged([file])


def test_a_file_in_which_nothing_is_said_changes_nothing(files):
    below, above = files(BELOW, None)
    assert merged([below, above]) == merged([below])


def test_all_lists_that_cannot_be_added_to_are_named(files):
    with pytest.raises(ConfigError) as error:
        merged(files(BELOW, {"a+": [1], "b+": [1]}))
    assert len(str(error.value).splitlines()) == 2


def test_no_key_of_the_repository_ends_in_a_plus():
    assert all("+:" not in file.read_text() for file in ROOT.glob("config/*.yaml"))
