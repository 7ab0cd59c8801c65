"""What jobs need that a machine may lack: keys of APIs, engines, data and encoders.

Only jobs that are to run are asked, so that a table whose inputs are there needs no key. The Hub is asked once for all
of them, and only where they cannot do without it.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.apis.ledger import is_offline
from workflow_scripts.data.hub import Kind, answers, snapshot
from workflow_scripts.data.planned import ON_HUB

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


def needed(rule: str, wildcards: Any) -> Needed:
    """A job as ``need_findings`` reads it."""
    return Needed(rule, getattr(wildcards, NAMED_BY[rule]) if rule in NAMED_BY else "")


def need_findings(config: Config, jobs: Iterable[Needed], data_root: Path | None) -> Iterator[str]:
    """What is missing, once for all jobs that need it.

    Args:
        config: The whole configuration.
        jobs: Jobs that are to run.
        data_root: Folder of local data.
    """
    for job in dict.fromkeys(jobs):
        match job.rule:
            case "translate_shard":
                translator = config["corpora"][job.name]["round_trip"]["translator"]
                block = config["translators"][translator]
                yield from _key(f"corpus {job.name}", f"translators.{translator}", block)
                if "llm" in block:
                    yield from _key(
                        f"corpus {job.name}", f"llms.{block['llm']}", config["llms"][block["llm"]]
                    )
                if block["engine"] == "apertium" and not is_offline() and not shutil.which("apertium"):
                    found = (
                        f"translators.{translator}: corpus {job.name} needs apertium, which is not installed"
                    )
                    yield f"{found}. Install it (Debian: apertium), or name another translator."
            case "write_exemplars":
                name = config["exemplars"][job.name]["llm"]
                yield from _key(f"pool {job.name}", f"llms.{name}", config["llms"][name])
            case "read_dataset":
                dataset = config["datasets"][job.name]
                if not dataset.get("optional"):
                    yield from _source(f"datasets.{job.name}", dataset["sources"], data_root, "dataset")
            case "fetch_encoder":
                fetch = config["encoders"][job.name]["fetch"]
                yield from _source(f"encoders.{job.name}", fetch["sources"], data_root, "model")


def _key(what: str, place: str, block: Config) -> Iterator[str]:
    variable = block.get("key_variable")
    if variable and not os.environ.get(variable, "").strip() and not is_offline():
        found = f"{place}: {what} needs it, and environment variable {variable} is not set"
        yield f"{found}. Set it, or run with --config offline=true if all answers are kept."


def _source(place: str, sources: Iterable[Config], data_root: Path | None, kind: Kind) -> Iterator[str]:
    """A finding where no source can be there."""
    sources = sorted(sources, key=lambda source: source["kind"] in ON_HUB)
    tried = []
    for source in sources:
        if (lack := _lacks(source, data_root, kind)) is None:
            return
        tried.append(lack)
    on_hub = any(source["kind"] in ON_HUB for source in sources)
    first = f"Run make fetch on a machine that reaches {hub()[0]}, put" if on_hub else "Put"
    advice = f"{first} it there, set data_root or SEMBLANCE_DATA, or name another source."
    yield f"{place}: no source is there: {'; '.join(tried)}. {advice}"


def hub() -> tuple[str, str]:
    """The address of the Hub, and why it gives nothing here where it does not answer."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE  # slow to import

    if HF_HUB_OFFLINE:
        return ENDPOINT, "HF_HUB_OFFLINE is set, so that the Hub is not asked"
    return ENDPOINT, f"no network from this machine to {ENDPOINT}, which does not answer"


def _lacks(source: Config, data_root: Path | None, kind: Kind) -> str | None:
    """Why a source is not there; None where it is, or may be: what a Hub that answers has, its job asks."""
    if source["kind"] in ON_HUB:
        kept = source.get("revision") and snapshot(source["repository"], source["revision"], kind).is_dir()
        return None if kept or answers() else f"hub:{source['repository']}: {hub()[1]}"
    if source["kind"] == "package":
        spec = find_spec(source["package"])
        if spec is None or spec.origin is None:
            return f"Python package {source['package']} is not installed"
        root = Path(spec.origin).parent
    elif data_root is None:
        return "no data root is set"
    else:
        root = data_root
    paths = [file["path"] for file in source["files"].values()] if "files" in source else [source["path"]]
    missing = next((root / path for path in paths if not (root / path).exists()), None)
    return f"{missing} does not exist" if missing else None
