"""What jobs need that a machine may lack: keys of APIs, engines, data and encoders.

Only jobs that are to run are asked, so that a table whose inputs are there needs no key. The Hub is asked once for all
of them, and only where they cannot do without it.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.apis.ledger import is_offline
from workflow_scripts.data.hub import Kind, answers
from workflow_scripts.data.planned import ON_HUB, accepted
from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph.findings import refuse
from workflow_scripts.graph.notes import sha256_now
from workflow_scripts.graph.outside import is_kept, sources_here
from workflow_scripts.graph.study import Study, data_root_of

Config = Mapping[str, Any]


class Needed(NamedTuple):
    """The part of a job that says what it needs: its rule, and what it makes."""

    rule: str
    name: str


NAMED_BY = {
    "translate_shard": "corpus",
    "write_exemplars": "pool",
    "read_dataset": "dataset",
    "fetch_encoder": "encoder",
}
"""Rules whose jobs need something, and the wildcard that says what."""


def check_needs(study: Study, jobs: Iterable[Any]) -> None:
    """Check that keys, data and engines are there for the jobs that are to run, which are Snakemake's.

    Ends the process with a line for each that is not.
    """
    asking = (job for job in jobs if job.rule.name in NAMED_BY)
    needed = [Needed(job.rule.name, getattr(job.wildcards, NAMED_BY[job.rule.name])) for job in asking]
    with one_line_errors():
        refuse(need_findings(study.config, needed, data_root_of(study.config)))


def need_findings(config: Config, jobs: Iterable[Needed], data_root: Path | None) -> Iterator[str]:
    """What is missing, once for all jobs that need it.

    Args:
        config: The whole configuration.
        jobs: Jobs that are to run.
        data_root: Folder of local data.
    """
    for rule, name in dict.fromkeys(jobs):
        match rule:
            case "translate_shard":
                translator = config["corpora"][name]["round_trip"]["translator"]
                block = config["translators"][translator]
                yield from _key(config, f"corpus {name}", "translators", translator)
                yield from _key(config, f"corpus {name}", "llms", block.get("llm"))
                if block["engine"] == "apertium" and not is_offline() and not shutil.which("apertium"):
                    found = f"translators.{translator}: corpus {name} needs apertium, which is not installed"
                    yield f"{found}. Install it (Debian: apertium), or name another translator."
            case "write_exemplars":
                yield from _key(config, f"pool {name}", "llms", config["exemplars"][name]["llm"])
            case "read_dataset":
                dataset = config["datasets"][name]
                optional = dataset.get("optional")
                if not optional:
                    yield from _source(f"datasets.{name}", dataset["sources"], data_root, "dataset")
                if not optional or config["broken"] == "stop":
                    or_gap = ", or set broken: gap" if optional else ""
                    remedy = f"list both hashes in its sha256{or_gap}"
                    yield from _files(f"datasets.{name}", dataset["sources"], data_root, remedy)
            case "fetch_encoder":
                sources = config["encoders"][name]["fetch"]["sources"]
                yield from _source(f"encoders.{name}", sources, data_root, "model")
                yield from _files(f"encoders.{name}", sources, data_root, "pin this one")


def _key(config: Config, what: str, section: str, name: str | None) -> Iterator[str]:
    variable = config[section][name].get("key_variable") if name else None
    if variable and not os.environ.get(variable, "").strip() and not is_offline():
        found = f"{section}.{name}: {what} needs it, and environment variable {variable} is not set"
        yield f"{found}. Set it, or run with --config offline=true if all answers are kept."


def _source(place: str, sources: Sequence[Config], data_root: Path | None, kind: Kind) -> Iterator[str]:
    """A finding where no source can be there."""
    tried = [one.lacks for one in sources_here(sources, data_root)]
    if "" in tried:
        return
    on_hub = [source for source in sources if source["kind"] in ON_HUB]
    if on_hub and (
        any(is_kept(source, kind) for source in on_hub) or answers()
    ):  # whose job asks what it has
        return
    tried += [f"hub:{source['repository']}: {hub()[1]}" for source in on_hub]
    first = f"Run make fetch on a machine that reaches {hub()[0]}, put" if on_hub else "Put"
    advice = f"{first} it there, set data_root or SEMBLANCE_DATA, or name another source."
    yield f"{place}: no source is there: {'; '.join(tried)}. {advice}"


def _files(place: str, sources: Iterable[Config], data_root: Path | None, remedy: str) -> Iterator[str]:
    """A finding for each file of another hash than is pinned, of the source on this machine that would be read."""
    read = next((one for one in sources_here(sources, data_root) if one.available), None)
    if read is None or read.folder is None:
        return
    for file, pin in read.pins.items():
        found = sha256_now(read.folder / file)
        if pin and found not in accepted(pin):
            pinned = " or ".join(accepted(pin))
            yield f"{place}: {file}: sha256 {found}; pinned {pinned}. Get it again, or {remedy}."


def hub() -> tuple[str, str]:
    """The address of the Hub, and why it gives nothing here where it does not answer."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE  # slow to import

    if HF_HUB_OFFLINE:
        return ENDPOINT, "HF_HUB_OFFLINE is set, so that the Hub is not asked"
    return ENDPOINT, f"no network from this machine to {ENDPOINT}, which does not answer"
