"""Present sources of datasets and encoders: outside data as inputs of the graph.

The job that reads a dataset or fetches an encoder has the name of its source among its settings (``data.sources``).
It runs again when a file appears or changes, or when a source that is listed earlier becomes available. What has been
read stays as it is when its file is not there any more: a disk that is not mounted reruns nothing. The name is the
same before and after the job, so that a finished study stays finished.
"""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from workflow_scripts.apis.ledger import is_offline
from workflow_scripts.data.hub import Kind, answers, listing, snapshot
from workflow_scripts.data.published import SHARDS, WEIGHTS, encoder_folder, files_of
from workflow_scripts.data.sources import ABSENT, NOT_REACHED, NOTHING, Pin, is_here, text_of
from workflow_scripts.errors import MissingError, UnreachableError, one_line_errors, refuse
from workflow_scripts.graph.clone import is_in_job
from workflow_scripts.graph.notes import sha256_now, write_note
from workflow_scripts.graph.slices import as_json, get_path
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.apis import ApertiumBlock
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.corpora import Corpus, Limits, Shape, Thresholds, Translation
from workflow_scripts.settings.extraction import LocalWords, PackagedWords
from workflow_scripts.settings.sources import (
    READERS,
    DatasetBlock,
    FileSource,
    HubEncoder,
    HubFiles,
    HubSource,
    LocalEncoder,
    LocalFiles,
    Packaged,
    PackageEncoder,
    PackageFiles,
    Pinned,
)
from workflow_scripts.settings.study import Configuration

Words = LocalWords | PackagedWords
Source = FileSource | HubSource | LocalEncoder | PackageEncoder | HubEncoder | Words
"""One of the places that a dataset, an encoder or word vectors may be read from."""
S = TypeVar("S", bound=Source)

NOTES = Path(".snakemake/sources")
"""Below the working directory: what the last run was planned with, for its jobs that run elsewhere."""
_planned: dict[Path, str] = {}
"""Note to the name that was computed in this process."""


class Here(NamedTuple):
    """A source on this machine, whether its files are there or not."""

    source: LocalFiles | PackageFiles | LocalEncoder | PackageEncoder | Words
    folder: Path | None
    """That holds the files; None where there is no data root or no such package."""
    label: str
    """What the name of a file begins with."""
    files: Mapping[str, tuple[str, Pin]]
    """Role for the reader to the file below the folder, and its pinned hash if it has one."""
    needed: frozenset[str]
    """Files without which the source is not available."""
    is_open: bool = False
    """Whether all files of the folder belong to it."""

    @property
    def lacks(self) -> str:
        """Why it is not available; empty where all files that are needed are there."""
        if self.folder is None and isinstance(self.source, Packaged):
            return f"Python package {self.source.package} is not installed"
        if self.folder is None:
            return f"no data root is set, below which {' and '.join(sorted(self.needed))} would be"
        missing = next((file for file in sorted(self.needed) if not (self.folder / file).is_file()), None)
        return f"{self.folder / missing} does not exist" if missing else ""

    def made(self, recorded: Collection[str]) -> bool:
        """Whether the files that a record names are of this source."""
        if self.is_open:
            return bool(recorded) and all(file.startswith(self.label) for file in recorded)
        return {*recorded} == {f"{self.label}{file}" for file, _ in self.files.values()}

    def hashes(self) -> dict[str, str]:
        """Hashes of the files; a single pin is taken for one, since the job checks it."""
        folder = self.folder or Path()
        return {
            f"{self.label}{file}": pin if isinstance(pin, str) else sha256_now(folder / file)
            for file, pin in self.files.values()
            if pin or (folder / file).is_file()
        }

    def contents(self) -> tuple[Any, ...]:
        """How the files that would be read are read, and their hashes by role, wherever they are."""
        reading = (getattr(self.source, key, None) for key in ("reader", "options"))
        hashes = self.hashes()
        return *reading, {role: hashes.get(f"{self.label}{file}") for role, (file, _) in self.files.items()}


def source_now(
    study: Study,
    artefact: str,
    sources: Iterable[Source],
    *,
    optional: bool = False,
    kind: Kind = "dataset",
) -> str:
    """The name of what the job of one artefact would read now; within a job, of what it was planned with.

    On a compute node there may be neither data nor network, and Snakemake rebuilds the graph there.

    Args:
        study: Whose results and settings count.
        artefact: File or model folder below the study's results.
        sources: Of a dataset or an encoder, as configured.
        optional: Whether it may be a gap.
        kind: Of its repositories.
    """
    note, made = NOTES / study.folder / f"{artefact}.txt", Path(study.folder, artefact)
    noted = note.read_text("utf-8") if note.is_file() else ""
    if is_in_job() and noted:
        return noted
    sources = list(sources)
    name = planned_source(sources, recorded_files(made), study.data_root, optional=optional, kind=kind)
    if not is_here(name) and not made.exists():  # a job that failed took it away: no gap comes in its place
        name = planned_source(sources, files_in(noted), study.data_root, optional=optional, kind=kind)
    if not is_in_job():
        _planned[note] = name
    return name


def note_planned() -> None:
    """Note what was planned when a run starts that is not a dry run."""
    for note, name in _planned.items():
        write_note(note, name)


def planned_source(
    sources: Iterable[Source],
    recorded: Mapping[str, str],
    data_root: Path | None,
    *,
    optional: bool,
    kind: Kind = "dataset",
) -> str:
    """The name of what would be read now.

    Args:
        sources: Of a dataset or an encoder, as configured.
        recorded: Files that it was read from, if it has been, each with its hash.
        data_root: Folder of local data.
        optional: Whether it is a gap if the Hub, which alone may have it, does not answer or lacks it.
        kind: Of its repositories.
    """
    sources = list(sources)
    here = list(sources_here(sources, data_root))
    read = next((source for source in here if source.made(recorded)), None)
    for source in here:
        if source is read:
            return text_of(recorded if source.lacks else source.hashes())
        if not source.lacks and not (read and not read.lacks and read.contents() == source.contents()):
            return text_of(source.hashes())
    on_hub = [source for source in sources if isinstance(source, Pinned)]
    places = [source.prefix.removesuffix("/") for source in on_hub]
    name = " or ".join(places) or NOTHING  # all of them: which has answered is seen only by the job
    was_read = any(file.startswith(tuple(places)) for file in recorded)
    return f"{_hub_lacks(on_hub, kind)}{name}" if optional and not was_read else name


def _hub_lacks(on_hub: Iterable[Pinned], kind: Kind) -> str:
    """Return what a source string begins with if no repository can be had; empty if one can, or may.

    A repository without a revision is not asked for. One that denies access may be had: its job says why it is not.
    """
    pinned = [(source, source.revision) for source in on_hub if source.revision]
    if not pinned or may_be_had([source for source, _ in pinned], kind, ask=False):
        return ""
    if not answers():
        return NOT_REACHED
    return "" if any(_hub_has(source, revision, kind) for source, revision in pinned) else ABSENT


@cache
def _listing(repository: str, revision: str, kind: Kind) -> set[str] | None:
    """Return the files of a repository; empty if it does not exist, None if that is not known."""
    try:
        return listing(repository, revision, kind)
    except MissingError:
        return set()
    except UnreachableError:
        return None


def _hub_has(source: Pinned, revision: str, kind: Kind) -> bool:
    """Return whether the Hub has the files of a source, or does not say."""
    files = _listing(source.repository, revision, kind)
    if files is None or isinstance(source, HubSource):
        return files != set()
    if isinstance(source, HubFiles):
        return {file.path for file in source.files.values()} <= files
    pins = source.sha256 if isinstance(source, HubEncoder) else None
    return {*pins} <= files if pins else any(Path(file).name in (WEIGHTS, SHARDS) for file in files)


def sources_read(planned: str, sources: Sequence[S]) -> list[S]:
    """The configured sources that ``planned_source`` was built from; all of them if it names none."""
    files, on_hub = files_in(planned), planned.startswith("hub:")
    made = [one for one in sources for here in sources_here([one], None) if here.made(files)]
    return made[:1] or [one for one in sources if on_hub and one.prefix.startswith("hub:")] or list(sources)


def sources_here(sources: Iterable[Source], data_root: Path | None) -> Iterator[Here]:
    """The sources on this machine, in order."""
    for source in sources:
        if isinstance(source, LocalEncoder | PackageEncoder):
            yield _encoder_here(source, data_root)
        elif not isinstance(source, Pinned):
            files = {role: (file.path, file.sha256) for role, file in source.files.items()}
            needed = frozenset(file for file, _ in files.values())
            yield Here(source, source.root(data_root), source.prefix, files, needed)


def _encoder_here(source: LocalEncoder | PackageEncoder, data_root: Path | None) -> Here:
    root, label = source.root(data_root), f"{source.prefix}{source.path}/"
    folder = root / source.path if root else None
    if source.sha256:
        pinned: dict[str, tuple[str, Pin]] = {file: (file, pin) for file, pin in source.sha256.items()}
        return Here(source, folder, label, pinned, frozenset(pinned))
    files = files_of(folder) if folder else []
    weights = [encoder_folder(folder) / name for name in (WEIGHTS, SHARDS)] if folder else []
    needed = next((file for file in files if folder and folder / file in weights), WEIGHTS)
    return Here(
        source, folder, label, {file: (file, None) for file in files}, frozenset({needed}), is_open=True
    )


def may_be_had(on_hub: Iterable[Pinned], kind: Kind, *, ask: bool = True) -> bool:
    """Whether the Hub's client has a copy of one of the repositories, or else the Hub answers if it may be asked."""
    pinned = ((source.repository, source.revision) for source in on_hub)
    copied = any(commit and snapshot(name, commit, kind).is_dir() for name, commit in pinned)
    return copied or (ask and answers())


def recorded_files(artefact: Path) -> dict[str, str]:
    """Sources from outside in the record of what a job made, and their hashes.

    Args:
        artefact: A file or model folder below results.

    Returns:
        Nothing where it was never made, is a gap, or cannot be read.
    """
    if not artefact.exists():
        return {}
    from workflow_scripts.provenance.artefacts import read_record  # slow to import

    try:
        record = read_record(artefact)
    except (OSError, ValueError, KeyError):  # the job that reads the file reports the error
        return {}
    return {one.path: one.sha256 for one in record.sources} if record else {}


def files_in(planned: str) -> dict[str, str]:
    """Files on this machine that a name is of, and their hashes."""
    return dict(file.split(" sha256:") for file in planned.split("; ")) if is_here(planned) else {}


# Settings of the jobs that read sources, translate and write


@dataclass(frozen=True)
class Dataset:
    """A dataset, and what it would be read from now."""

    study: Study
    name: str

    @property
    def _block(self) -> DatasetBlock:
        return self.study.settings.datasets[self.name]

    @cached_property
    def source(self) -> str:
        """The name of what it would be read from."""
        table = f"datasets/{self.name}.parquet"
        return source_now(self.study, table, self._block.sources, optional=self._block.optional)

    @cached_property
    def _sources(self) -> list[FileSource | HubSource]:
        """Its sources now."""
        return sources_read(self.source, self._block.sources)

    @property
    def settings(self) -> str:
        """Settings that decide its rows: without pinned hashes and the contract, which can only refuse some."""
        block = self._block.model_dump(mode="json", exclude={"about", "contract", "sources"})
        read = [source.model_dump(mode="json") for source in self._sources]
        for one in (one for one in read if "files" in one):
            one["files"] = {role: file["path"] for role, file in one["files"].items()}
        return as_json({"dataset": block | {"sources": read}, "source": self.source})

    @property
    def contract(self) -> str:
        """The same with all that refuses rows: a resource, which Snakemake passes on without comparing it."""
        block = self._block.model_dump(mode="json", exclude={"about", "sources"})
        return as_json(block | {"sources": self._sources})

    @property
    def readers(self) -> list[str]:
        """The module that reads its source now, and no other."""
        read = (source.reader for source in self._sources if not isinstance(source, HubSource))
        return sorted({f"data.readers.{READERS[reader].module}" for reader in read})


def encoder_source(study: Study, encoder: str) -> str:
    """Return the source string of a published encoder."""
    block = study.settings.fetched(encoder)
    return source_now(study, f"encoders/{encoder}", block.sources, optional=block.optional, kind="model")


def fetching(study: Study, encoder: str) -> str:
    """Settings that decide a fetched encoder, and the source that it would be copied from now."""
    block, source = study.settings.fetched(encoder), encoder_source(study, encoder)
    decides = block.deciding() | {"sources": sources_read(source, block.sources)}
    return as_json({"encoder": decides, "source": source})


def translation(settings: Configuration, corpus: str) -> str:
    """Settings of the translation of a corpus: what decides the text, not what is made of it, or who is asked."""
    asked = settings.round_trip_behind(corpus).model_dump(include={*Translation.model_fields})
    decides = {name: block.deciding() for name, block in _engine(settings, corpus).items()}
    return as_json({"translation": asked, **decides})


def translation_service(settings: Configuration, corpus: str) -> str:
    """The translator and its settings: a resource, which Snakemake passes on without comparing it."""
    return as_json(_engine(settings, corpus))


def _engine(settings: Configuration, corpus: str) -> dict[str, Settings]:
    """The blocks behind a translation."""
    block = settings.translators[settings.round_trip_behind(corpus).translator]
    limits = settings.round_trip.model_dump(include={*Limits.model_fields})
    return {"translator": block, "limits": Limits(**limits)}


def comparison(settings: Configuration) -> str:
    """Settings that decide the cosines of round trips with their sentences, without the thresholds."""
    compared = settings.round_trip.similarity
    return as_json({"similarity": compared and compared.model_dump(include={"encoder", "max_tokens"})})


def round_trips(settings: Configuration, corpus: str) -> str:
    """Settings of what is made of a translation."""
    trip = settings.round_trip_behind(corpus)
    shape, label = trip.model_dump(include={*Shape.model_fields}), settings.corpora[corpus].label
    compared = settings.round_trip.similarity
    thresholds = compared and compared.model_dump(include={*Thresholds.model_fields})
    rest = {"max_sentences": trip.max_sentences, "label": label}
    return as_json({"shape": shape, "similarity": thresholds, **rest})


def written_pool(settings: Configuration, pool: str) -> str:
    """Settings of a pool that a language model writes."""
    block = settings.written_pool(pool)
    return as_json({"pool": block, "llm": settings.llms[block.llm].deciding()})


# Missing keys, engines and data


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
        refuse(need_findings(study.settings, needed, study.data_root))


def need_findings(settings: Configuration, jobs: Iterable[Needed], data_root: Path | None) -> Iterator[str]:
    """Missing keys, engines and data, once for all jobs that need them.

    Args:
        settings: The whole configuration.
        jobs: Jobs that are to run.
        data_root: Folder of local data.
    """
    asked: dict[tuple[str, str], list[str]] = {}
    needed = [*dict.fromkeys(jobs)]
    split = (place.partition(".") for place, _ in needed)
    added = {added_to(settings, name) for section, _, name in split if section == "corpora"}
    for place, user in needed:
        section, _, name = place.partition(".")
        if section in ("translators", "llms"):
            asked.setdefault((section, name), []).append(user)
        if section == "translators" and isinstance(settings.translators[name], ApertiumBlock):
            if not is_offline() and not shutil.which("apertium"):
                yield (
                    f"{place}: {user} needs apertium, which is not installed. "
                    "Install it (Debian: apertium), or name another translator."
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
        yield from _key_findings(settings, users, section, name)


def _key_findings(settings: Configuration, users: Sequence[str], section: str, name: str) -> Iterator[str]:
    variable = getattr(get_path(settings, section)[name], "key_variable", None)
    if variable and not os.environ.get(variable, "").strip() and not is_offline():
        need = f"{users[0]} needs it" if len(users) == 1 else f"{users[0]} and {len(users) - 1} more need it"
        yield (
            f"{section}.{name}: {need}, and environment variable {variable} is not set. "
            "Set it, or run with --config offline=true if all answers are kept."
        )


def _unmounted_findings(place: str, sources: Sequence[Source], data_root: Path) -> Iterator[str]:
    """A finding if an optional dataset would become a gap because the folder of local data is missing."""
    here = [*sources_here(sources, data_root)]  # without those on the Hub
    below = any(one.folder == data_root for one in here)
    if below and len(here) == len(sources) and all(one.lacks for one in here):
        yield (
            f"{place}: {data_root}, the folder of local data, does not exist, so that nobody can tell whether "
            "the files are a gap. Mount its disk, or correct data_root or SEMBLANCE_DATA."
        )


def _source_findings(
    place: str, sources: Sequence[Source], data_root: Path | None, kind: Kind, url: str = ""
) -> Iterator[str]:
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
    yield f"{place}: no source is there: {'; '.join(tried)}. {advice}"
