"""Files of the configuration: how they are laid over each other, and how their mistakes are told."""

import re

import pytest
import yaml
from pydantic import Field
from snakemake.utils import update_config

from tests.support.snakemake_plans import DEMO, ROOT, merged_config
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.configuration import as_in_a_file, base_files, load_config
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.study import Configuration
from workflow_scripts.settings.wording import read
from workflow_scripts.verbs.schema import schema_of

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


def test_files_are_merged_as_snakemake_merges_them():
    """Without additions, files are merged as Snakemake merges them."""
    theirs = {}
    for file in (*base_files(ROOT), ROOT / DEMO):
        update_config(theirs, yaml.safe_load(file.read_text()))
    assert merged_config(DEMO) == theirs


def test_each_file_adds_to_those_before_it(load):
    """Each file adds to what those before it make and the command line last."""
    first = {"mine+": ["a"], "suites": {"sts": {"toy": {"datasets+": ["other"]}}}}
    config = load(
        BELOW, first, {"mine+": ["b", "c"]}, given={"suites": {"sts": {"toy": {"datasets+": ["d"]}}}}
    )
    assert config["mine"] == ["demo", "a", "b", "c"]
    assert config["suites"]["sts"]["toy"] == {"datasets": ["lee", "other", "d"]}
    assert config["odd"] == {"a": 1}


def test_a_list_that_is_replaced_forgets_what_was_added_before(load):
    assert load(BELOW, {"mine+": ["a"]}, {"mine": ["new"]}, {"mine+": ["b"]})["mine"] == ["new", "b"]


def test_a_study_of_another_name_inherits_no_texts_and_claims():
    """A study of another name has none of the texts and claims of the study below it."""

    def described(**given):
        config = load_config(ROOT, [ROOT / DEMO], given)
        return [bool(config["report"]["page"][key]) for key in ("can_show", "cannot_show")], config["claims"]

    assert described(offline=True) == ([True, True], merged_config(DEMO)["claims"])
    assert described(name="mine") == ([False, False], {"papers": [], "scale": "demo"})
    own = {"page": {"can_show": "That it runs."}}
    assert described(name="mine", report=own, claims={"papers": ["jtcse"]}) == (
        [True, False],
        {"papers": ["jtcse"], "scale": "demo"},
    )


def test_equal_numbers_have_one_form_and_quotes_stay_text(load):
    """Equal numbers have one form and text in quotes stays text."""
    config = load(
        "a: [1e-4, 1.0e4, 2.0, -3E2, .5, '1e-4', 1e-4x]\n", given=as_in_a_file({"b": "{c: 1e-4}", "d": 2.0})
    )
    assert repr(config["a"]) == "[0.0001, 10000, 2, -300, 0.5, '1e-4', '1e-4x']"
    assert repr((config["b"], config["d"])) == "({'c': 0.0001}, 2)"


BOMB = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n" + "".join(
    f"a{n}: &a{n} [{', '.join(10 * [f'*a{n - 1}'])}]\n" for n in range(1, 9)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 30))


FILES = {
    "no such list": ([BELOW, {"mien+": ["a"]}], ["1.yaml:1: mien+: no earlier file contains this list. Did you mean mine?"]),
    "no such list inside": (
        [BELOW, {"suites": {"sts": {"toi": {"datasets+": ["a"]}}}}],
        ["1.yaml:4: suites.sts.toi.datasets+: no earlier file contains this list. Did you mean suites.sts.toy.datasets?"],
    ),
    "a block": ([BELOW, {"odd+": ["a"]}], ["1.yaml:1: odd+: no earlier file contains this list."]),
    "a number": ([BELOW, {"odd": {"a+": [2]}}], ["1.yaml:2: odd.a+: no earlier file contains this list."]),
    "inside a number": ([BELOW, {"odd": {"a": {"b+": [1]}}}], ["1.yaml:3: odd.a.b+: no earlier file contains this list."]),
    "text": ([BELOW, {"mine+": "a"}], ["1.yaml:1: mine+: 'a' is not a list. Write [a]."]),
    "all of a file": ([BELOW, {"a+": [1], "b+": [1]}], ["1.yaml:1: a+: ", "1.yaml:3: b+: "]),
    "all files": (["a: [", "a: 1\na: 2\n"], ["0.yaml:2: ", "1.yaml:2: key 'a' occurs twice. Fix the YAML."]),
    "a list at the top": ([[1, 2]], ["0.yaml: list at the top. Write keys"]),
    "a number at the top": ([3], ["0.yaml: int at the top. Write keys"]),
    "comments alone": (["# later\n"], ["0.yaml: empty. Write keys"]),
    "no bracket": (["a: 1\nb: [1, 2\nc: 3\n"], ["0.yaml:3: did not find expected ',' or ']'. Fix the YAML."]),
    "braces without quotes": (
        ["a: 1\nb: {encoder: {{encoder}}}\n"],
        ["0.yaml:2: a list or a mapping is used as a key; put text with braces or brackets into quotes. Fix the YAML."],
    ),
    "a list for a key": (["a: 1\n? [x, y]\n: 2\n"], ["0.yaml:2: a list or a mapping is used as a key; put text"]),
    "a tag of Python": (
        ["a: !!python/object:os.system x\n"],
        ["0.yaml:1: could not determine a constructor for the tag"],
    ),
    "a block with a plus": (
        [BELOW, "a: 1\nodd+: {a: 2}\n"],
        ["1.yaml:2: odd+: a mapping, which is always merged key by key. Write odd."],
    ),
    "a block that contains itself": (["a: 1\nb: &b {c: *b}\n"], ["0.yaml:2: a block contains itself. Fix the YAML."]),
    "a list that contains itself": (["a: &a [*a]\n"], ["0.yaml:1: a block contains itself. Fix the YAML."]),
    "a block that is merged into itself": (["a: &a {<<: *a}\n"], ["0.yaml:1: a block contains itself."]),
    "aliases of aliases": ([BOMB], ["0.yaml:5: aliases stand for more than 100,000 values. Fix the YAML."]),
    "merges of merges": ([MERGES], ["0.yaml:16: aliases stand for more than 100,000 values. Fix the YAML."]),
    "levels without end": ([f"a: {400 * '['}{400 * ']'}"], ["0.yaml:1: more than 30 levels of blocks. Fix the YAML."]),
    "a tab": (["a:\n\t- 1\n"], ["0.yaml:2: found character that cannot start any token. Fix the YAML."]),
}  # fmt: skip


@pytest.mark.parametrize(("contents", "lines"), FILES.values(), ids=FILES)
def test_a_mistake_of_a_file_is_one_line_that_names_it(load, tmp_path, contents, lines):
    with pytest.raises(ConfigError) as error:
        load(*contents)
    found = str(error.value).splitlines()
    assert len(found) == len(lines)
    assert all(line.startswith(f"{tmp_path}/{start}") for line, start in zip(found, lines, strict=True))


def test_the_schema_for_editors_has_every_key_and_every_range():
    schema = schema_of("configuration")
    assert {key.removesuffix("+") for key in schema["properties"]} == {*merged_config(DEMO)}
    assert schema["$defs"]["Training"]["properties"]["batch_size"]["exclusiveMinimum"] == 1


# What classes of settings say


HUB_ENCODER = {"kind": "hub", "repository": "team/model"}


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ({"fetch": {"sources": [HUB_ENCODER], "licence": "MIT"}}, []),
        ({"sources": [HUB_ENCODER]}, ["encoders.mine: is not a block with fetch or adapt or runs; found {'sources': [{'kind': 'hub', 'repository': 'team/model'}]}."]),
        (5, ["encoders.mine: is not a block with fetch or adapt or runs; found 5."]),
        ({"runs": [{"method": "simcse", "encoder": "a", "corpus": "b"}], "lable": "x"}, ["encoders.mine.label: missing. Add it", "encoders.mine.lable: unknown key. Did you mean label"]),
        ({"fetch": {"sources": [{"kind": "hub"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0.repository: missing."]),
        ({"fetch": {"sources": [{"kind": "hubb"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0.kind: must be one of 'local'"]),
        ({"fetch": {"sources": [{"repository": "a"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0.kind: missing."]),
        ({"fetch": {"sources": [HUB_ENCODER | {"path": "a"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0.path: not a key of a block with `kind: hub`. Choose from: kind, repository"]),
    ],
)  # fmt: skip
def test_a_block_is_told_what_its_nearest_form_lacks(block, found):
    """A block of several forms is told what its nearest form lacks."""
    config = merged_config(DEMO)
    config["encoders"]["mine"] = block
    lines = [*map(str, read(Configuration, config)[1])]
    assert len(lines) == len(found)
    assert all(line.startswith(start) for line, start in zip(lines, found, strict=True))


def lines_of(folder, *contents, given=None):
    """The lines with which a study ends whose files after the demo's have these contents; ``…/`` is the folder."""
    paths = [folder / f"{number}.yaml" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    files = [ROOT / DEMO, *paths]
    with pytest.raises(SystemExit) as ended:
        open_study(load_config(ROOT, files, given), ROOT, files, given)
    return str(ended.value.code).removeprefix("ConfigError: ").replace(f"{folder}/", "").splitlines()


TRIP = "{corpus: wiki1m, translator: google, source: en, pivot_language: fr, max_sentences: 1, training_text: pairs, unchanged: keep}"
TWO_FORMS = f"""corpora:
  a: {{dataset: wiki1m, dev_sentences: 0, max_sentences: 1}}
  b: {{round_trip: {TRIP}, label: null}}
"""
RENAME = "whose keys stay. Give the block another name: a file cannot remove keys of an earlier one."


def test_another_form_of_a_block_is_one_error_with_both_places(tmp_path):
    """A file that gives a block another form is named, and the earlier file whose keys do not fit then."""
    overlay = f"corpora:\n  b: {{dataset: wiki1m}}\n  a:\n    round_trip: {TRIP}\n"
    assert lines_of(tmp_path, TWO_FORMS, overlay) == [
        "1.yaml:2: corpora.b.dataset: not a key of a block with `round_trip`. Choose from: label, round_trip.",
        f"1.yaml:4: corpora.a.round_trip: another form of the block than in 0.yaml:2, {RENAME}",
    ]
    one_file = f"corpora:\n  mine:\n    dataset: wiki1m\n    round_trip: {TRIP}\n"
    assert lines_of(tmp_path, one_file) == [
        "0.yaml:3: corpora.mine.dataset: not a key of a block with `round_trip`. Choose from: label, round_trip."
    ]


def test_another_value_that_tells_the_form_is_one_error(tmp_path):
    """A method with another module, by a file or the command line, is an error of that place."""
    wanted = re.escape("methods.diffcse.module: another form of the block than in PLACE, " + RENAME)
    wanted = wanted.replace("PLACE", r"\S*/config/methods\.yaml:\d+")
    changed = {"methods": {"diffcse": {"module": "simcse"}}}
    by_place = {
        "0.yaml:2: ": lines_of(tmp_path, "methods:\n  diffcse: {module: simcse}\n"),
        "--config: ": lines_of(tmp_path, given=changed),
    }
    for place, (line,) in by_place.items():
        assert re.fullmatch(place + wanted, line)


def test_keys_that_both_forms_have_are_not_blamed(tmp_path):
    """A value that only the later form refuses is no error of the earlier file, which was right."""
    path = "methods.simcse_s2sent.readout"
    first, *lines = lines_of(tmp_path, "methods:\n  simcse_s2sent: {readout: {kind: layer_attention}}\n")
    assert first == f"0.yaml:2: {path}.weights: missing. Add it, or check the block's name."
    assert len(lines) == 1
    assert lines[0].startswith(f"0.yaml:2: {path}.kind: another form of the block than in ")


def test_an_error_in_a_block_of_several_names_is_told_once(tmp_path):
    """Methods have several forms, each decided by a key of its own block."""
    overlay = "methods:\n  simcse: &shared {temperature: 5}\n  diffcse: *shared\n  sscl: *shared\n"
    (line,) = lines_of(tmp_path, overlay)
    assert line.startswith("0.yaml:2: methods.simcse.temperature: must be less than or equal to 1; found 5")


def test_errors_come_in_the_order_of_files_and_lines(tmp_path):
    """Errors of one round come in the order in which the files are read, then by line; the command line is last."""
    first = (
        "mteb: {lists: 3}\nsuites:\n  sts: 5\ntraining:\n  batch_siz: 1\n  max_steps: many\n  batch_size: 0\n"
    )
    second = "\n" * 9 + "encoders: {bert_base: 4}\ncache: 1\n"
    lines = lines_of(tmp_path, first, second, given={"training": {"seeds": 0}, "experiments": ["demmo"]})
    places = [":".join(line.split(":")[:2]) for line in lines]
    assert places == [
        *("0.yaml:1", "0.yaml:3", "0.yaml:5", "0.yaml:6", "0.yaml:7", "1.yaml:10", "1.yaml:11"),
        *("--config: experiments", "--config: training.seeds"),
    ]


class Small(Settings):
    """A number below 4."""

    number: int = Field(lt=4)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"number": 4}, "here.number: must be less than 4; found 4."),
        ({}, "here.number: Field required; found {}."),
        ({"number": 2, "other": 1}, "here.other: Extra inputs are not permitted; found 1."),
        (
            {f"key{number}": number for number in range(1000)},
            "here.number: Field required; found {'key0': 0, ",
        ),
    ],
)
def test_a_wrong_setting_of_a_job_is_named(section, message):
    """A wrong setting of a job is named with the beginning of what was found."""
    with pytest.raises(ConfigError) as told:
        Small.parse(section, "here")
    assert str(told.value).startswith(message)
    assert len(str(told.value)) < 200
