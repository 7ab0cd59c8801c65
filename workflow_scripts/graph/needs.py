"""Check of keys of services, programs and external data before a run."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.data.hub import Kind
from workflow_scripts.errors import ErrorDetails, one_line_errors, refuse
from workflow_scripts.graph.slices import get_path
from workflow_scripts.graph.source_plans import Source, may_be_had, sources_here
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.apis import ApertiumBlock
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.corpora import Corpus
from workflow_scripts.settings.sources import Pinned
from workflow_scripts.settings.study import Configuration
from workflow_scripts.settings.workplace import Workplace

Needed = tuple[str, str]
"""The block of a job's external need (``JobSpec.outside``), and the job's output in words, as in "corpus x"."""


def made_by(wildcards: Mapping[str, str]) -> str:
    """Return a job's output in words: its first wildcard with the value."""
    return " ".join(next(iter(wildcards.items()), ()))


def added_to(settings: Configuration, corpus: str) -> str | None:
    """Return the dataset whose sentences are added to a corpus; None without one."""
    block = settings.corpora[corpus]
    return block.add_sentences_of if isinstance(block, Corpus) else None


def check_needs(study: Study, jobs: Iterable[Any]) -> None:
    """End the process with a line for each key, dataset or engine that planned jobs of Snakemake lack."""
    asking = (job for job in jobs if job.params.get("outside"))
    needed = [(job.params.outside, made_by(dict(job.wildcards.items()))) for job in asking]
    with one_line_errors():
        refuse(need_errors(study.settings, needed, study.workplace))


def need_errors(
    settings: Configuration, jobs: Iterable[Needed], workplace: Workplace
) -> Iterator[ErrorDetails]:
    """Yield an error for each missing key, engine or dataset, for all jobs that need it.

    Args:
        settings: The complete configuration.
        jobs: Jobs that are planned.
        workplace: Places of their data and answers.
    """
    data_root = workplace.data_root
    asked: dict[tuple[str, str], list[str]] = {}
    needed = [*dict.fromkeys(jobs)]
    split = (path.partition(".") for path, _ in needed)
    added = {added_to(settings, name) for section, _, name in split if section == "corpora"}
    for path, user in needed:
        section, _, name = path.partition(".")
        if section in ("translators", "llms"):
            asked.setdefault((section, name), []).append(user)
        if section == "translators" and isinstance(settings.translators[name], ApertiumBlock):
            if not workplace.offline and not shutil.which("apertium"):
                yield ErrorDetails(
                    path,
                    f"{user} needs apertium, which is not installed",
                    "Install it (Debian: apertium), or choose another translator.",
                )
        elif section == "datasets":
            block = settings.datasets[name]
            # Without an addition, the corpus would be a different one.
            if not block.optional or name in added:
                yield from _source_errors(path, block.sources, data_root, "dataset", block.about.url)
            elif data_root and not data_root.is_dir():
                yield from _unmounted_errors(path, block.sources, data_root)
        elif section == "encoders":
            yield from _source_errors(path, settings.fetched(name).sources, data_root, "model")
    for (section, name), users in asked.items():
        if not workplace.offline:
            yield from _key_errors(settings, users, section, name)


def _key_errors(
    settings: Configuration, users: Sequence[str], section: str, name: str
) -> Iterator[ErrorDetails]:
    block: Settings = get_path(settings, section)[name]
    variable = block.parts().get("key_variable")
    if variable and not os.environ.get(variable, "").strip():
        need = f"{users[0]} needs it" if len(users) == 1 else f"{users[0]} and {len(users) - 1} more need it"
        yield ErrorDetails(
            f"{section}.{name}",
            f"{need}, but environment variable {variable} is not set",
            "Set it, or run with --config offline=true if all answers are stored.",
        )


def _unmounted_errors(path: str, sources: Sequence[Source], data_root: Path) -> Iterator[ErrorDetails]:
    """Yield an error if an optional dataset would become a gap because the folder of local data is missing."""
    here = [*sources_here(sources, data_root)]  # without those on the Hub
    below = any(source.folder == data_root for source in here)
    if below and len(here) == len(sources) and all(source.lacks for source in here):
        yield ErrorDetails(
            path,
            f"{data_root}, the folder of local data, does not exist, so it is unknown whether the files do",
            "Mount its disk, or set data_root or SEMBLANCE_DATA to a folder that exists.",
        )


def _source_errors(
    path: str, sources: Sequence[Source], data_root: Path | None, kind: Kind, url: str = ""
) -> Iterator[ErrorDetails]:
    """Yield an error if no source exists, with the page of the data if it is known."""
    tried = [source.lacks for source in sources_here(sources, data_root)]
    on_hub = [source for source in sources if isinstance(source, Pinned)]
    if "" in tried or (on_hub and may_be_had(on_hub, kind)):  # its job asks the Hub
        return
    from huggingface_hub.constants import ENDPOINT  # slow to import

    none = f"HF_HUB_OFFLINE is set, or no network from this machine to {ENDPOINT}, which does not answer"
    tried += [f"hub:{source.repository}: {none}" for source in on_hub]
    put = f"Run make fetch on a machine that reaches {ENDPOINT}, put" if on_hub else "Put"
    page = f" ({url})" if url.startswith("https:") else ""
    others = "set data_root or SEMBLANCE_DATA, add another source, or set optional: true for a gap."
    advice = f"{put} it there{page}, {others}"
    yield ErrorDetails(path, f"no source found: {'; '.join(tried)}", advice)
