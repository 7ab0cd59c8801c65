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
from workflow_scripts.data.planned import ON_HUB, Pin, accepted
from workflow_scripts.graph.hashes import sha256_now

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
                optional = dataset.get("optional")
                if not optional:
                    yield from _source(f"datasets.{job.name}", dataset["sources"], data_root, "dataset")
                if not optional or config["broken"] == "stop":
                    remedy = "list both hashes in its sha256"
                    remedy += ", or set broken: gap" if optional else ""
                    yield from _files(
                        f"datasets.{job.name}", dataset["sources"], data_root, "dataset", remedy
                    )
            case "fetch_encoder":
                fetch = config["encoders"][job.name]["fetch"]
                yield from _source(f"encoders.{job.name}", fetch["sources"], data_root, "model")
                yield from _files(
                    f"encoders.{job.name}", fetch["sources"], data_root, "model", "pin this one"
                )


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


def _files(
    place: str, sources: Iterable[Config], data_root: Path | None, kind: Kind, remedy: str
) -> Iterator[str]:
    """A finding for each file of another hash than is pinned, of the source on this machine that would be read."""
    here = (source for source in sources if source["kind"] not in ON_HUB)
    source = next((source for source in here if _lacks(source, data_root, kind) is None), None)
    folder = _folder(source, data_root) if source else None
    if source is None or folder is None:
        return
    for path, pin in _pins(source).items():
        found = sha256_now(folder / path)
        if pin and found not in accepted(pin):
            pinned = " or ".join(accepted(pin))
            yield f"{place}: {path}: sha256 {found}; pinned {pinned}. Get it again, or {remedy}."


def _pins(source: Config) -> Mapping[str, Pin]:
    """Files of a source below its folder, each with its pinned hash."""
    if "files" in source:
        return {file["path"]: file["sha256"] for file in source["files"].values()}
    return {f"{source['path']}/{file}": sha256 for file, sha256 in (source.get("sha256") or {}).items()}


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
    root = _folder(source, data_root)
    if root is None:
        package = source.get("package")
        return f"Python package {package} is not installed" if package else "no data root is set"
    paths = [file["path"] for file in source["files"].values()] if "files" in source else [source["path"]]
    missing = next((root / path for path in paths if not (root / path).exists()), None)
    return f"{missing} does not exist" if missing else None


def _folder(source: Config, data_root: Path | None) -> Path | None:
    """The folder that a source on this machine is below, if there is one."""
    if source["kind"] != "package":
        return data_root
    spec = find_spec(source["package"])
    return Path(spec.origin).parent if spec and spec.origin else None
