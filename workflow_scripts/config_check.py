"""The check of the whole configuration before any job: duplicate keys, unknown keys, types, ranges.

The schema in ``config/schemas`` is written from the Slice classes that stand beside the code
(``write_schema``), so that no rule about a setting is written down twice.
"""

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from workflow_scripts.apis.store import is_offline
from workflow_scripts.dag import runs_of
from workflow_scripts.errors import ConfigError

SCHEMA = "schemas/config.schema.json"
GRID_SCHEMA = "schemas/experiment.schema.json"
FORMS_OF_KIND = {"sts": "pairs", "clustering": "labelled", "search": "labelled", "transfer": "labelled"}
"""Kinds of suites whose datasets all have one form."""


def check_references(config: Mapping[str, Any], grids: Mapping[str, Any]) -> None:
    """Check that every name used is defined.

    Raises:
        ConfigError: naming the first that is not, and the nearest that is.
    """
    for name in config["corpora"]:
        _check_corpus(config, name)
    for name, encoder in config["encoders"].items():
        for number, block in enumerate(encoder.get("runs", [])):
            _check_axes(config, block, f"encoders.{name}.runs.{number}")
        if "adapt" in encoder:
            _known(encoder["adapt"]["base"], config["encoders"], f"encoders.{name}.adapt.base")
            _check_sentences(config, encoder["adapt"]["corpus"], f"encoders.{name}.adapt.corpus")
    for name, pool in config["exemplars"].items():
        _check_sentences(config, pool["corpus"], f"exemplars.{name}.corpus")
        _known(pool["encoder"], config["encoders"], f"exemplars.{name}.encoder")
        if pool["generator"] == "llm":
            _known(pool["llm"], config["llms"], f"exemplars.{name}.llm")
    for name in config["exemplar_pools"]:
        _known(name, config["exemplars"], "exemplar_pools")
    for name, method in config["methods"].items():
        if "base" in method:
            _known(method["base"], config["methods"], f"methods.{name}.base")
            if "base" in config["methods"][method["base"]]:
                raise ConfigError(f"methods.{name}.base: {method['base']} has a base itself. Name that one.")
        if method.get("pool"):
            _known(method["pool"], config["exemplars"], f"methods.{name}.pool")
    if config["development"]["dataset"]:
        _known(config["development"]["dataset"], config["datasets"], "development.dataset")
    _check_suites(config)
    _check_extraction(config)
    for name, grid in grids.items():
        _check_grid(config, grid, f"experiments/{name}.yaml")


def form_of(config: Mapping[str, Any], corpus: str) -> str:
    """What a corpus holds: sentences, or triples."""
    block = config["corpora"][corpus]
    if "round_trip" in block:
        return {"pairs": "triples", "corpus": "sentences"}[block["round_trip"]["form"]]
    return str(config["datasets"][block["dataset"]]["form"])


def base_of(config: Mapping[str, Any], corpus: str) -> str:
    """The corpus that is cut from a dataset, behind one that is made from it."""
    block = config["corpora"][corpus]
    return block["round_trip"]["corpus"] if "round_trip" in block else corpus


def _check_corpus(config: Mapping[str, Any], name: str) -> None:
    block, place = config["corpora"][name], f"corpora.{name}"
    if "round_trip" in block:
        trip = block["round_trip"]
        _known(trip["translator"], config["translators"], f"{place}.round_trip.translator")
        _check_sentences(config, trip["corpus"], f"{place}.round_trip.corpus")
        if "round_trip" in config["corpora"][trip["corpus"]]:
            raise ConfigError(
                f"{place}.round_trip.corpus: {trip['corpus']} is a round trip itself. Name its corpus."
            )
        return
    _known(block["dataset"], config["datasets"], f"{place}.dataset")
    if block.get("also"):
        _known(block["also"], config["datasets"], f"{place}.also")
        _check_form(block["also"], config["datasets"][block["also"]]["form"], "sts", place)
    if (form := form_of(config, name)) not in ("sentences", "triples"):
        found = f"{block['dataset']} has the form {form}; corpora are sentences or triples"
        raise ConfigError(f"{place}.dataset: {found}. Name another.")


def _check_sentences(config: Mapping[str, Any], corpus: str, place: str) -> None:
    _known(corpus, config["corpora"], place)
    if (form := form_of(config, corpus)) != "sentences":
        raise ConfigError(f"{place}: {corpus} holds {form}, not sentences. Name another.")


def check_keys(config: Mapping[str, Any], corpora: Iterable[str], pools: Iterable[str], results: str) -> None:
    """Check, before any job, that keys are there for what is still to be asked of translators and language models.

    Raises:
        ConfigError: naming the variable that is not set, and what needs it.
    """
    needs = [
        (
            f"translators.{trip['translator']}",
            config["translators"][trip["translator"]],
            f"corpora/{name}/train",
        )
        for name in corpora
        if (trip := config["corpora"][name].get("round_trip"))
    ]
    needs += [
        (f"llms.{pool['llm']}", config["llms"][pool["llm"]], f"exemplars/{name}")
        for name in pools
        if (pool := config["exemplars"][name])["generator"] == "llm"
    ]
    for place, block, output in needs:
        variable = block.get("key_variable")
        missing = variable and not os.environ.get(variable)
        if missing and not is_offline() and not Path(results, f"{output}.parquet").exists():
            found = (
                f"{results}/{output}.parquet needs {place}, and environment variable {variable} is not set"
            )
            raise ConfigError(f"{found}. Set it, or run with --config offline=true if all answers are kept.")


def datasets_in(suite: Mapping[str, Any]) -> list[str]:
    """Names of the datasets that a suite of any kind reads, each once."""
    measures = [*suite.get("positives", {}).values(), *suite.get("clouds", {}).values()]
    measures += [suite["energy"]] if "energy" in suite else []
    return list(dict.fromkeys([*suite.get("datasets", []), *(measure["dataset"] for measure in measures)]))


def _check_suites(config: Mapping[str, Any]) -> None:
    kinds: dict[str, str] = {}
    for kind, suites in config["suites"].items():
        for name, suite in suites.items():
            place = f"suites.{kind}.{name}"
            if name in kinds:
                found = f"suites.{kinds[name]} has that name too"
                raise ConfigError(f"{place}: {found}. Rename one: tables tell suites apart by name.")
            kinds[name] = kind
            for dataset in datasets_in(suite):
                _known(dataset, config["datasets"], f"{place}.datasets")
                _check_form(dataset, config["datasets"][dataset]["form"], kind, place)
            for task in suite.get("graded", []):
                _known(task, suite["datasets"], f"{place}.graded")
            for tasks in suite.get("lists", []):
                _known(tasks, config["mteb"]["lists"], f"{place}.lists")


def _check_extraction(config: Mapping[str, Any]) -> None:
    extraction = config["extraction"]
    _known(extraction["encoder"], config["encoders"], "extraction.encoder")
    for part in ("wikitext", "averages"):
        place = f"extraction.{part}.dataset"
        _known(extraction[part]["dataset"], config["datasets"], place)
    for kind, suite in extraction["suites"].items():
        if suite:
            _known(suite, config["suites"][kind], f"extraction.suites.{kind}")
    for name, source in extraction["sources"].items():
        if source.get("template"):
            _known(source["template"], extraction["templates"], f"extraction.sources.{name}.template")
    for number, block in enumerate(extraction["blocks"]):
        for axis in ("sources", "weightings", "postprocessings"):
            for name in block[axis]:
                _known(name, extraction[axis], f"extraction.blocks.{number}.{axis}")


def _check_form(dataset: str, form: str, kind: str, place: str) -> None:
    wanted = FORMS_OF_KIND.get(kind, form)
    if form != wanted:
        found = f"{dataset} has the form {form}; {kind} reads {wanted}"
        raise ConfigError(f"{place}.datasets: {found}. Name another.")


def _check_grid(config: Mapping[str, Any], grid: Mapping[str, Any], place: str) -> None:
    for number, block in enumerate(grid["runs"]):
        _check_axes(config, block, f"{place}: runs.{number}")
    for kind, suites in grid["suites"].items():
        _known(kind, config["suites"], f"{place}: suites")
        for suite in suites:
            _known(suite, config["suites"][kind], f"{place}: suites.{kind}")
    asked = [suite for suites in grid["suites"].values() for suite in suites]
    for number, column in enumerate(grid["columns"]):
        if "suite" in column:  # a mean of other columns names none
            _known(column["suite"], asked, f"{place}: columns.{number}.suite")
    for run in grid.get("token_similarity", {}).get("runs", []):
        _known(run, runs_of(grid), f"{place}: token_similarity.runs")
    if grid["baseline"]:
        _known(grid["baseline"], runs_of(grid), f"{place}: baseline")


def _check_axes(config: Mapping[str, Any], block: Mapping[str, Any], place: str) -> None:
    """Check what a block of runs names, and that runs made of runs say whether they have their seeds."""
    tables = {"method": "methods", "encoder": "encoders", "corpus": "corpora", "teacher": "encoders"}
    for axis, table in tables.items():
        values = block.get(axis) or []
        for value in values if isinstance(values, list) else [values]:
            _known(value, config[table], f"{place}.{axis}")
            if axis == "teacher" and len(config["encoders"][value].get("runs", [])) != 1:
                raise ConfigError(
                    f"{place}.teacher: {value} is not one run. Name an encoder with one in `runs`."
                )
            if axis == "encoder" and block.get("of_seeds", False) != (
                "runs" in config["encoders"][value] and not block.get("corpus")
            ):
                raise ConfigError(
                    f"{place}.of_seeds: true for an untrained run of an encoder that consists of runs, left out "
                    f"for others; {value} has of_seeds {block.get('of_seeds', False)}."
                )


def _known(name: str, names: Iterable[str], place: str) -> None:
    known = sorted(names)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        raise ConfigError(
            f"{place}: {name} is not defined. {f'Did you mean {close[0]}?' if close else f'Known: {known}.'}"
        )


def checked(config: Mapping[str, Any], files: Iterable[str | Path], folder: Path) -> None:
    """Check the merged configuration, the files it was read from, and the grids it asks for.

    Args:
        config: The configuration as Snakemake merged it.
        files: YAML files, base ones and overlays, each checked for keys that stand twice.
        folder: The folder ``config``.

    Raises:
        ConfigError: naming the first key that is wrong, what was found and what to do.
    """
    for file in files:
        read_yaml(Path(file))
    check(config, json.loads((folder / SCHEMA).read_text("utf-8")), "")
    schema = json.loads((folder / GRID_SCHEMA).read_text("utf-8"))
    for name in config["experiments"]:
        path = folder / "experiments" / f"{name}.yaml"
        if path.exists():
            check(read_yaml(path), schema, f"experiments/{name}.yaml: ")


def read_yaml(path: Path) -> Any:
    """Read a YAML file whose mappings name no key twice.

    Raises:
        ConfigError: with the line of the mistake.
    """
    try:
        return yaml.load(path.read_text("utf-8"), Loader=_UniqueKeys)  # a subclass of CSafeLoader
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file. Check the path after --configfile.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}:{line}: {error.problem}. Mend the YAML.") from error


class _UniqueKeys(yaml.CSafeLoader):
    """YAML's safe loader, which by itself lets the last of two equal keys win in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _value in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=deep)
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def check(value: Any, schema: Mapping[str, Any], place: str) -> None:
    """Hold ``value`` to a JSON Schema.

    Raises:
        ConfigError: for the mistake that lies deepest, in one line.
    """
    error = best_match(Draft202012Validator(schema).iter_errors(value))
    if error is not None:
        raise ConfigError(place + _one_line(error))


def _one_line(error: ValidationError) -> str:
    path = ".".join(map(str, error.absolute_path)) or "configuration"
    if error.validator == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        unknown = next(key for key in error.instance if key not in known)
        close = difflib.get_close_matches(unknown, known, n=1)
        advice = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(known)}."
        return f"{f'{path}.' if error.absolute_path else ''}{unknown}: unknown key. {advice}"
    if error.validator == "enum":
        close = difflib.get_close_matches(str(error.instance), error.schema["enum"], n=1)
        advice = f" Did you mean {close[0]}?" if close else ""
        return f"{path}: {error.instance!r} is none of {', '.join(map(str, error.schema['enum']))}.{advice}"
    hint = ""
    if isinstance(error.instance, str) and error.validator in ("type", "anyOf"):
        hint = (
            " Write 1.0e-5 for a number: YAML reads 1e-5 as text."
            if _looks_like_number(error.instance)
            else ""
        )
    meaning = f" ({error.schema['description']})" if "description" in error.schema else ""
    return f"{path}: {error.message}{meaning}.{hint}"


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
