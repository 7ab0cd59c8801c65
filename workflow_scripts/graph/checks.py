"""The check of a whole study before any job: files, keys, names, and every run, column and resource it asks for.

It is made whenever the graph is built and takes no import of what jobs import. All mistakes are found at once, in
two steps: what the files hold, and, once that is sound, what it means together.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.claim_checks import claim_findings
from workflow_scripts.graph.extraction_checks import block_findings, extraction_findings
from workflow_scripts.graph.findings import advice, refuse
from workflow_scripts.graph.mistakes import mistakes, read
from workflow_scripts.graph.references import encoders_reached, grid_findings, reference_findings
from workflow_scripts.graph.resources import (
    data_root_findings,
    folder_findings,
    published_findings,
    resource_findings,
)
from workflow_scripts.graph.rows import Rows
from workflow_scripts.graph.run_checks import RunChecks
from workflow_scripts.graph.runs import (
    EXTRACTION,
    Run,
    adapting_training,
    is_defined,
    members_of,
    paper_of,
    runs_of,
)
from workflow_scripts.graph.sizes import Sizes
from workflow_scripts.graph.yaml_files import read_yaml
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.settings.mlm import ContinueMlm
from workflow_scripts.settings.study import Grid, Study


def checked(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Check what the configuration and the grids it asks for hold.

    The extraction study has no grid.

    Args:
        config: The configuration, whatever it holds.
        folder: The folder ``config``.

    Returns:
        The grids by name.

    Raises:
        ConfigError: with a line for each mistake: the key, what was found and what to do.
    """
    grids, findings = read_grids(config, folder)
    refuse([*findings, *content_findings(config, grids)])
    read_rates(folder / "rates.yaml")
    return grids


def read_grids(config: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Grids that can be read, and what is wrong with files that cannot."""
    findings: list[str] = []
    grids: dict[str, Any] = {}
    asked = config.get("experiments") if isinstance(config, Mapping) else None
    stems = {file.stem for file in (folder / "experiments").glob("*.yaml")}
    known = sorted({EXTRACTION, *stems})
    rules = rules_in(folder.parent)
    if EXTRACTION in stems:
        findings.append(
            f"experiments/{EXTRACTION}.yaml: that name is the extraction study's. Rename the file."
        )
    for name in asked if isinstance(asked, list) else []:
        if name == EXTRACTION:
            continue
        if name not in known:
            findings.append(
                f"experiments: no file {name}.yaml in config/experiments. {advice(str(name), known)}"
            )
            continue
        if (paper := paper_of(name)) in rules:
            findings.append(
                f"experiments/{name}.yaml: its tables and figures are made by the name {paper}, which is a rule's. "
                "Rename the file."
            )
        try:
            grids[name] = read_yaml(folder / "experiments" / f"{name}.yaml")
        except ConfigError as error:
            findings.append(str(error))
    return grids, findings


def rules_in(root: Path) -> dict[str, str]:
    """Rules of the repository by name, each with its text; those that a loop names are left out."""
    texts = [file.read_text("utf-8") for file in [*root.glob("Snakefile"), *root.glob("rules/*.smk")]]
    parts = [part for text in texts for part in re.split(r"^ *rule\b", text, flags=re.MULTILINE)[1:]]
    return {named[1]: part for part in parts if (named := re.match(r" (\w+):", part))}


def content_findings(config: Mapping[str, Any], grids: Mapping[str, Any]) -> Iterator[str]:
    """Keys, types and ranges in a configuration and its grids, each by itself.

    Args:
        config: The configuration, whatever it holds.
        grids: Its grids by name, whatever they hold.
    """
    yield from mistakes(Study, config, "")
    for name, grid in grids.items():
        yield from mistakes(Grid, grid, f"experiments/{name}.yaml: ")


def _of_grids(config: Mapping[str, Any], grids: Mapping[str, Any]) -> Iterator[str]:
    tables = config["extraction"]["tables"].keys() | config["extraction"]["statistics"].keys()
    for name, grid in grids.items():
        if name in tables:
            yield f"experiments/{name}.yaml: a table of the extraction study has that name. Rename the file."
        yield from grid_findings(config, grid, f"experiments/{name}.yaml")


def _defined_runs(config: Mapping[str, Any], grid: Mapping[str, Any]) -> dict[str, Run]:
    """Runs of a grid whose parts are all defined; none where two have one name."""
    with suppress(ConfigError):
        return {name: run for name, run in runs_of(grid).items() if is_defined(run, config)}
    return {}


def study_findings(
    config: dict[str, Any], grids: Mapping[str, Any], root: Path, data_root: Path | None
) -> Iterator[str]:
    """Everything that is wrong with a study whose files are sound.

    Args:
        config: The configuration, checked against its schema.
        grids: Its grids, likewise.
        root: Folder of the Snakefile.
        data_root: Folder of local data.
    """
    yield from data_root_findings(config, data_root)
    references = [*reference_findings(config), *extraction_findings(config)]
    yield from references
    in_grids = [*_of_grids(config, grids)]
    yield from in_grids
    yield from resource_findings(config, grids, root)
    if not in_grids:  # whose runs and columns printed numbers and claims name
        yield from published_findings(config, grids, root)
        yield from claim_findings(config, grids, root)
    if not references:  # what a run is merged from is all there
        yield from _of_runs(config, grids, root, data_root)


def _of_runs(
    config: dict[str, Any], grids: Mapping[str, Any], root: Path, data_root: Path | None
) -> Iterator[str]:
    sizes = Sizes(config, root, data_root)
    rows = Rows(config, data_root)
    checks = RunChecks(config, sizes, rows)
    encoders = config["encoders"]
    named = {pool["encoder"] for pool in config["exemplars"].values()}
    if EXTRACTION in config["experiments"]:
        encoder = config["extraction"]["encoder"]
        named.add(encoder)
        size = sizes.of(encoder)
        yield from block_findings(config["extraction"], size and size.layers)
        suites = {kind: [suite] for kind, suite in config["extraction"]["suites"].items() if suite}
        yield from checks.length_findings("extraction", suites, [encoder])
    for name, grid in grids.items():
        runs, place = _defined_runs(config, grid), f"experiments/{name}.yaml"
        yield from checks.findings(place, runs)
        yield from checks.size_findings(place, grid, runs)
        for run in runs.values():
            named |= {run.encoder, run.teacher} - {None}
    reached = sorted(encoders_reached(encoders, named))
    yield from folder_findings(config, reached, data_root)
    yield from rows.findings()
    for encoder in reached:
        if "runs" in encoders[encoder]:
            yield from checks.findings(f"encoders.{encoder}.runs", members_of(encoders, encoder, (0,)))
    for encoder in reached:
        if adapt := encoders[encoder].get("adapt"):
            place = f"encoders.{encoder}.adapt."
            block = config["continue_mlm"] | {"training": adapting_training(config, adapt)}
            masked, found = read(ContinueMlm, block, place)
            yield from found
            if masked:
                misfits = masked.training.misfits(adapt["corpus"], rows.most(adapt["corpus"]))
                yield from (f"{place}{line}" for line in misfits)
