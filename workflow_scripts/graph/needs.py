"""Keys of services, programs and data from outside that jobs need: what is missing is reported before a run."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.data.hub import Kind
from workflow_scripts.errors import Finding, one_line_errors, refuse
from workflow_scripts.graph.slices import get_path
from workflow_scripts.graph.source_plans import Source, may_be_had, sources_here
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.apis import ApertiumBlock
from workflow_scripts.settings.corpora import Corpus
from workflow_scripts.settings.sources import Pinned
from workflow_scripts.settings.study import Configuration
from workflow_scripts.settings.workplace import Workplace

Needed = tuple[str, str]
"""A block that names what a job needs from outside (``JobSpec.outside``), and what the job makes, as in "corpus x"."""


def made_by(wildcards: Mapping[str, str]) -> str:
    """Return what a job makes in words: its first wildcard with the value."""
    return " ".join(next(iter(wildcards.items()), ()))


def added_to(settings: Configuration, corpus: str) -> str | None:
    """Return the dataset whose sentences are added to a corpus, if there is one."""
    block = settings.corpora[corpus]
    return block.also if isinstance(block, Corpus) else None


def check_needs(study: Study, jobs: Iterable[Any]) -> None:
    """Check that keys, data and engines are there for the jobs that are to run, which are Snakemake's.

    Ends the process with a line for each that is not.
    """
    asking = (job for job in jobs if job.params.get("outside"))
    needed = [(job.params.outside, made_by(dict(job.wildcards.items()))) for job in asking]
    with one_line_errors():
        refuse(need_findings(study.settings, needed, study.workplace))


def need_findings(settings: Configuration, jobs: Iterable[Needed], workplace: Workplace) -> Iterator[Finding]:
    """Missing keys, engines and data, once for all jobs that need them.

    Args:
        settings: The whole configuration.
        jobs: Jobs that are to run.
        workplace: Where they will look for data and answers.
    """
    data_root = workplace.data_root
    asked: dict[tuple[str, str], list[str]] = {}
    needed = [*dict.fromkeys(jobs)]
    split = (place.partition(".") for place, _ in needed)
    added = {added_to(settings, name) for section, _, name in split if section == "corpora"}
    for place, user in needed:
        section, _, name = place.partition(".")
        if section in ("translators", "llms"):
            asked.setdefault((section, name), []).append(user)
        if section == "translators" and isinstance(settings.translators[name], ApertiumBlock):
            if not workplace.offline and not shutil.which("apertium"):
                yield Finding(
                    place,
                    f"{user} needs apertium, which is not installed",
                    "Install it (Debian: apertium), or name another translator.",
                )
        elif section == "datasets":
            block = settings.datasets[name]
            if not block.optional or name in added:  # without an addition, a corpus would be another one
                yield from _source_findings(place, block.sources, data_root, "dataset", block.about.url)
            elif data_root and not data_root.is_dir():
                yield from _unmounted_findings(place, block.sources, data_root)
        elif section == "encoders":
            yield from _source_findings(place, settings.fetched(name).sources, data_root, "model")
    for (section, name), users in asked.items():
        if not workplace.offline:
            yield from _key_findings(settings, users, section, name)


def _key_findings(
    settings: Configuration, users: Sequence[str], section: str, name: str
) -> Iterator[Finding]:
    variable = getattr(get_path(settings, section)[name], "key_variable", None)
    if variable and not os.environ.get(variable, "").strip():
        need = f"{users[0]} needs it" if len(users) == 1 else f"{users[0]} and {len(users) - 1} more need it"
        yield Finding(
            f"{section}.{name}",
            f"{need}, and environment variable {variable} is not set",
            "Set it, or run with --config offline=true if all answers are kept.",
        )


def _unmounted_findings(place: str, sources: Sequence[Source], data_root: Path) -> Iterator[Finding]:
    """A finding if an optional dataset would become a gap because the folder of local data is missing."""
    here = [*sources_here(sources, data_root)]  # without those on the Hub
    below = any(one.folder == data_root for one in here)
    if below and len(here) == len(sources) and all(one.lacks for one in here):
        yield Finding(
            place,
            f"{data_root}, the folder of local data, does not exist, so that nobody can tell whether the "
            "files are a gap",
            "Mount its disk, or correct data_root or SEMBLANCE_DATA.",
        )


def _source_findings(
    place: str, sources: Sequence[Source], data_root: Path | None, kind: Kind, url: str = ""
) -> Iterator[Finding]:
    """A finding where no source can be there; with the page where the data can be had, if one is known."""
    tried = [one.lacks for one in sources_here(sources, data_root)]
    on_hub = [source for source in sources if isinstance(source, Pinned)]
    if "" in tried or (on_hub and may_be_had(on_hub, kind)):  # its job asks what the Hub has
        return
    from huggingface_hub.constants import ENDPOINT  # slow to import

    none = f"HF_HUB_OFFLINE is set, or no network from this machine to {ENDPOINT}, which does not answer"
    tried += [f"hub:{source.repository}: {none}" for source in on_hub]
    put = f"Run make fetch on a machine that reaches {ENDPOINT}, put" if on_hub else "Put"
    page = f" ({url})" if url.startswith("https:") else ""
    others = "set data_root or SEMBLANCE_DATA, name another source, or set optional: true for a gap."
    advice = f"{put} it there{page}, {others}"
    yield Finding(place, f"no source is there: {'; '.join(tried)}", advice)
