"""Settings of datasets, readers, encoders, and of the sources of data, encoders and word vectors."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from workflow_scripts.errors import ErrorDetails, advice, unknown
from workflow_scripts.settings.base import OPERATIONAL, Settings
from workflow_scripts.settings.names import Substitution
from workflow_scripts.settings.wording import read

Below = Annotated[
    str,
    Field(
        pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$",
        description="relative path, below the data root (SEMBLANCE_DATA or data_root) or the package, such as "
        "models/mine",
    ),
]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Repository = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]


class Local(Settings):
    """A source below the data root."""

    kind: Literal["local"]

    @property
    def prefix(self) -> str:
        """Return the prefix of its files' names in records."""
        return "local:"

    def root(self, data_root: Path | None) -> Path | None:
        """Return the folder of its relative paths; None if no data root is set."""
        return data_root


class Packaged(Settings):
    """A source in an installed Python package."""

    kind: Literal["package"]
    package: str = Field(pattern=r"^\w[\w-]*$", description="Import name, without dots.")

    @property
    def prefix(self) -> str:
        """Return the prefix of its files' names in records."""
        return f"package:{self.package}/"

    def root(self, _data_root: Path | None) -> Path | None:
        """Return the folder of the package; None if it is not installed."""
        spec = find_spec(self.package)
        return Path(spec.origin).parent if spec and spec.origin else None


class Pinned(Settings):
    """A repository of the Hugging Face Hub at one commit."""

    repository: Repository
    revision: Commit | None = Field(
        default=None,
        description="Commit; without one, the job stops and prints the newest commit to add here.",
    )

    @property
    def prefix(self) -> str:
        """Return the prefix of its files' names in records."""
        return f"hub:{self.repository}@{self.revision}/"

    def pinned_at(self, revision: str) -> str:
        """Return the line of YAML that pins this source to a commit."""
        return f"revision: {revision}"


class File(Settings):
    """A file, and its hash if one is known."""

    path: Below
    sha256: Sha256 | list[Sha256] | None = Field(
        description="sha256, or a list of accepted ones; null: unknown, only the contract is checked."
    )


class _Files(Settings):
    files: dict[str, File] = Field(min_length=1, description="Files by the reader's roles.")
    reader: str = Field(pattern="^[a-z0-9_]+$", description="Function in workflow_scripts/data/readers.")
    options: dict[str, JsonValue] = Field(default={}, description="Keyword arguments of the reader.")


class LocalFiles(_Files, Local):
    """Files below the data root."""


class PackageFiles(_Files, Packaged):
    """Files in an installed Python package."""


class HubFiles(_Files, Pinned):
    """Files of a dataset of the Hugging Face Hub at one commit."""

    kind: Literal["hub_files"]


FileSource = LocalFiles | PackageFiles | HubFiles


class HubSource(Pinned):
    """A dataset of the Hugging Face Hub at one commit."""

    kind: Literal["hub"]
    revision: Commit = Field(description="Commit; a branch would move.")
    name: str | None = Field(
        default=None, description="Configuration of the dataset on the Hub, if it has several."
    )
    splits: list[str] = Field(min_length=1, description="Splits to read, in this order.")
    split_names: dict[str, str] = Field(
        default={}, description="Values of the column split, by the Hub's name of a split."
    )
    filter: dict[str, str] = Field(
        default={}, description="Filter: for each column of the Hub's table, the value of the rows to keep."
    )
    columns: dict[str, str] = Field(description="Columns of the Hub's table by column of the form.")
    constants: dict[str, str] = Field(default={}, description="Constant values by column of the form.")


class Contract(Settings):
    """Requirements that a dataset must meet to be accepted under its name."""

    rows: int | None = Field(default=None, ge=0, description="Exact number of rows.")
    min_rows: int = Field(default=1, ge=0, description="Minimum number of rows.")
    groups: dict[str, int] = Field(
        default={}, description="Exact rows per subset (pairs, if the source has them) or split (labelled)."
    )
    labels: int | None = Field(default=None, ge=2, description="Exact number of classes.")
    score_range: tuple[float, float] | None = Field(
        default=None, description="Minimum and maximum possible score."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require an ascending range of scores, and at least ``min_rows`` rows."""
        if self.score_range and self.score_range[0] >= self.score_range[1]:
            low, high = self.score_range
            yield ErrorDetails(
                "score_range", f"from {low:g} to {high:g}", "Write the minimum first, then the maximum."
            )
        if self.rows is not None and self.rows < self.min_rows:
            yield ErrorDetails(
                "rows", f"{self.rows}, but min_rows is {self.min_rows}", "Remove `min_rows`: `rows` is exact."
            )


class Dataset(Settings):
    """Settings that determine a dataset's rows: a block of ``datasets`` without ``about``."""

    form: Literal["sentences", "pairs", "labelled", "triples"]
    sources: list[Annotated[FileSource | HubSource, Field(discriminator="kind")]] = Field(min_length=1)
    contract: Contract
    optional: bool = Field(
        default=False,
        description="Whether missing data is a gap in tables instead of an error, also for runs trained on it.",
    )


class About(Settings):
    """Facts about a dataset for its users; only model cards read them, so their change reruns no number."""

    origin: str = Field(min_length=1, description="Publication, and the part of it from which the rows come.")
    url: str = Field(
        pattern=r"^(https://\S+|not stated)$", description="Page from which the data can be obtained."
    )
    language: str = Field(pattern="^[a-z]{2,3}$", description="ISO 639 code.")
    licence: str = Field(
        min_length=1, description="Licence or terms of use, or the statement that none is given."
    )
    citation: str = Field(min_length=1, description="Reference that users of the data cite.")


class DatasetBlock(Dataset):
    """One block of ``datasets`` in the configuration."""

    about: About


# Readers of datasets

PARTS = ("train", "dev", "test", "all")
"""Roles of the parts of a task; ``all`` is the only part of a task without splits."""

_REQUIRED = {
    "pairs": {"sentence1", "sentence2", "score"},
    "labelled": {"text1", "label"},
    "triples": {"anchor", "positive"},
}
_OTHER = {"pairs": {"subset"}, "labelled": {"text2", "split"}, "triples": {"negative"}}


class ReaderConfig(Settings):
    """Options of a reader: every field is a key of ``options`` of a source."""

    module: ClassVar[str] = "rows"
    """Module of ``data/readers`` with the function that reads."""
    forms: ClassVar[tuple[str, ...]]
    """Forms of the rows that the reader can return."""
    roles: ClassVar[tuple[str, ...]] = ()
    """Roles of files; empty if all names are accepted."""
    all_roles: ClassVar[bool] = True
    """Whether each role must have a file."""

    @property
    def returns(self) -> tuple[str, ...]:
        """Return the forms of the rows that these options can give."""
        return self.forms


def _is_encoding(name: str) -> bool:
    """Return whether Python can encode and decode text in an encoding of this name."""
    try:
        return "a\tb\n".encode(name).decode(name) == "a\tb\n"
    except (LookupError, UnicodeError):
        return False


class Delimited(ReaderConfig):
    """Cells separated by tabs, commas or spaces: scored pairs, labelled texts or triples."""

    forms: ClassVar[tuple[str, ...]] = tuple(_REQUIRED)
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    columns: dict[str, str] = Field(
        description="Columns of the file by column of the form. A column `split` takes precedence over the role "
        "of the file."
    )
    header: list[str] | None = Field(
        default=None,
        description="Column names, for a file without a header line. Lines of pairs may have more cells, as in "
        "STS-B's release; these are ignored.",
    )
    separator: str = Field(
        default="\t",
        min_length=1,
        max_length=1,
        description="Character between cells. With spaces, the last column of header contains the rest of the "
        "line.",
    )
    quoted: bool | None = Field(
        default=None,
        description="Whether cells may be in quotation marks, as in CSV, and then contain separators and line "
        "ends. If omitted, quotation marks are text, and a line that has enough cells only with them "
        "is refused.",
    )
    sentence_separator: str = Field(
        default="",
        description="Separator of two sentences in one cell, such as a line end in STR's release; sentence1 and "
        "sentence2 then have the same column.",
    )
    strip: bool = Field(
        default=False, description="Whether white space is removed from both ends of each cell."
    )
    remove_characters: str = Field(
        default="",
        description="Characters to remove from every cell, such as those that only some parts have.",
    )
    label_until: str = Field(
        default="", description="Text at which a label is cut; only the part before it is kept."
    )
    graded: bool = Field(default=False, description="Whether labels are scores; 5.0 is then written as 5.")
    fallback_encoding: str | None = Field(default=None, description="Encoding of files that are not UTF-8.")

    @property
    def form(self) -> str | None:
        """Return the form of rows with these columns; None if they fit no form."""
        given = self.columns.keys()
        return next(
            (form for form in self.forms if _REQUIRED[form] <= given <= _REQUIRED[form] | _OTHER[form]), None
        )

    @property
    def open_ended(self) -> bool:
        """Return whether lines may have more cells than ``header``.

        In comma-separated files and files of labels, an extra cell is an error: it is part of a text.
        """
        return (
            self.form == "pairs"
            and self.header is not None
            and (self.quoted is True or self.separator == "\t")
        )

    @property
    def returns(self) -> tuple[str, ...]:
        """Return the form of these columns, if they fit one."""
        return (self.form,) if self.form else ()

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error for columns that fit no form or are not in the file, and for options that disagree."""
        if not self.form:
            forms = (f"{', '.join(sorted(_REQUIRED[form]))} for {form}" for form in self.forms)
            yield ErrorDetails(
                "columns", f"{', '.join(self.columns)} fit no form", f"Write {'; or '.join(forms)}."
            )
        if self.header is not None and (missing := sorted({*self.columns.values()} - {*self.header})):
            yield ErrorDetails(
                "columns", f"{missing[0]} is not in header", f"Choose from: {', '.join(self.header)}."
            )
        if twice := [name for name in self.columns.values() if (self.header or []).count(name) > 1]:
            yield ErrorDetails("header", f"{twice[0]} occurs twice", "Use each name once.")
        if self.fallback_encoding is not None and not _is_encoding(self.fallback_encoding):
            yield ErrorDetails(
                "fallback_encoding",
                f"{self.fallback_encoding} is not an encoding of Python",
                "Set it to a name that Python has, such as cp1252 or latin-1.",
            )
        first, second = map(self.columns.get, ("sentence1", "sentence2"))
        if bool(self.sentence_separator) != (first is not None and first == second):
            yield ErrorDetails(
                "sentence_separator",
                "needed if sentence1 and sentence2 have the same column, and only then",
                "Remove `sentence_separator`, or let both have the column with the two sentences."
                if self.sentence_separator
                else "Set it to the text between the two sentences, or use two columns.",
            )


class Lines(ReaderConfig):
    """One sentence per line, plain text or gzip; each line is a document."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("text",)

    cleaning: Literal["none", "sentences"] = Field(
        default="sentences",
        description="none keeps all lines unchanged; sentences normalises white space and drops lines that are "
        "blank, repeated, too short or too long.",
    )
    min_words: int = Field(
        default=1, description="Minimum number of words; shorter lines are dropped if lines are cleaned."
    )
    max_words: int = Field(
        default=1000, description="Maximum number of words; longer lines are dropped if lines are cleaned."
    )


class ClassFiles(ReaderConfig):
    """One file per class, one text per line: MR, CR, SUBJ and MPQA as distributed with SentEval."""

    forms: ClassVar[tuple[str, ...]] = ("labelled",)


class Lee(ReaderConfig):
    """Lee and Pincombe's 50 news documents with the mean human rating of each of 1,225 pairs."""

    forms: ClassVar[tuple[str, ...]] = ("pairs",)
    roles: ClassVar[tuple[str, ...]] = ("documents", "ratings")


class WikipediaXml(ReaderConfig):
    """Sentences of a MediaWiki XML dump, without markup."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("dump",)

    min_words: int = Field(description="Minimum number of words; shorter sentences are dropped.")
    max_words: int = Field(description="Maximum number of words; longer sentences are dropped.")


class WikitextReader(ReaderConfig):
    """Releases of Wikitext: paragraphs are split into sentences, headings are dropped, each paragraph is a document."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)

    unknown: str | None = Field(description="Replacement for <unk>; null keeps it.")
    min_characters: int = Field(
        description="Minimum number of characters; shorter sentences are dropped. The extraction study uses 10."
    )


READERS: dict[str, type[ReaderConfig]] = {
    "class_files": ClassFiles,
    "delimited": Delimited,
    "lee": Lee,
    "lines": Lines,
    "wikipedia_xml": WikipediaXml,
    "wikitext": WikitextReader,
}
"""Classes of readers' options by the name of the reader, a function in ``data/readers``."""


def reader_errors(source: FileSource, form: str) -> Iterator[ErrorDetails]:
    """Yield an error for an unknown reader, and for roles, options or a form that the reader does not have."""
    name, files = source.reader, source.files
    if name not in READERS:
        yield from unknown(name, READERS, "reader")
        return
    takes = READERS[name]
    for role in files:
        if takes.roles and role not in takes.roles:
            yield ErrorDetails("files", f"{role} is not a role of {name}", advice(role, takes.roles))
    for role in takes.roles:
        if takes.all_roles and role not in files:
            yield ErrorDetails(
                "files", f"{name} needs a file of role {role}", f"Add `{role}: {{path: ..., sha256: ...}}`."
            )
    settings, errors = read(takes, source.options)
    yield from (error.under("options") for error in errors)
    forms = settings.returns if settings else takes.forms
    if form not in forms:
        problem = f"{name} reads {' or '.join(forms)}, not {form}"
        yield ErrorDetails(
            "reader",
            problem,
            f"Set form to {forms[0]}, or choose a reader of {form}." if forms else "Choose another reader.",
        )


# Encoders


class _Source(Settings):
    sha256: dict[str, Sha256] | None = Field(
        default=None,
        description="sha256 of each file to copy, by file name; null copies every file that a loader reads.",
    )


class EncoderFolder(_Source):
    """A folder of an encoder on this machine."""

    path: Below


class LocalEncoder(EncoderFolder, Local):
    """A folder of an encoder below the data root."""


class PackageEncoder(EncoderFolder, Packaged):
    """A folder of an encoder in an installed Python package."""


class HubEncoder(_Source, Pinned):
    """A repository of the Hugging Face Hub at one commit."""

    kind: Literal["hub"]

    def pinned_at(self, revision: str) -> str:
        """Return the line of YAML that pins this source to a commit: the complete source."""
        return f"- {{kind: hub, repository: {self.repository}, revision: {revision}}}"


EncoderSource = Annotated[LocalEncoder | PackageEncoder | HubEncoder, Field(discriminator="kind")]


class Fetch(Settings):
    """Settings that determine which encoder is fetched."""

    sources: list[EncoderSource] = Field(min_length=1)
    label: Substitution = None


class EncoderBlock(Fetch):
    """A block of ``encoders`` for a published encoder, which is fetched."""

    licence: str = Field(json_schema_extra=OPERATIONAL)
    hub: Repository | None = Field(
        default=None,
        description="Its repository on the Hub, for model cards, if no source names one.",
        json_schema_extra=OPERATIONAL,
    )
    size: Literal["base", "large", "huge"] = Field(
        default="base",
        description="Size, which decides what its jobs request: base: up to BERT-base; large: BERT-large; huge: "
        "billions of parameters.",
        json_schema_extra=OPERATIONAL,
    )
    optional: bool = Field(
        default=False,
        description="Whether runs that need it become gaps in tables, instead of an error, if no source has it "
        "or none has a revision.",
        json_schema_extra=OPERATIONAL,
    )


class Sizes(Settings):
    """Sizes of an encoder with random initial weights."""

    layers: int = Field(gt=0)
    width: int = Field(gt=0, description="Width of the hidden states, a multiple of the heads.")
    heads: int = Field(gt=0, description="Number of attention heads.")
    feed_forward: int = Field(gt=0, description="Width of the feed-forward part of a layer.")

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a width that is a multiple of the heads."""
        if self.width % self.heads:
            yield ErrorDetails(
                "width",
                f"{self.width} is not a multiple of the {self.heads} heads",
                f"Set it to {max(1, round(self.width / self.heads)) * self.heads}, for example.",
            )
