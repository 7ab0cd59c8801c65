"""Blocks of ``datasets`` and ``encoders``, readers, and the places that data, encoders and vectors are read from."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from workflow_scripts.errors import Finding, advice, unknown
from workflow_scripts.settings.base import OPERATIONAL, Settings
from workflow_scripts.settings.names import Substitution
from workflow_scripts.settings.wording import read

Below = Annotated[
    str,
    Field(
        pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$",
        description="relative, below the data root (SEMBLANCE_DATA or data_root) or the package, as models/mine",
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
        """Prefix of its files' names in records."""
        return "local:"

    def root(self, data_root: Path | None) -> Path | None:
        """The folder below which its paths are; None if it is not there."""
        return data_root


class Packaged(Settings):
    """A source in an installed Python package."""

    kind: Literal["package"]
    package: str = Field(pattern=r"^\w[\w-]*$", description="Import name, without dots.")

    @property
    def prefix(self) -> str:
        """Prefix of its files' names in records."""
        return f"package:{self.package}/"

    def root(self, _data_root: Path | None) -> Path | None:
        """The folder of the package; None if it is not installed."""
        spec = find_spec(self.package)
        return Path(spec.origin).parent if spec and spec.origin else None


class Pinned(Settings):
    """A repository of the Hugging Face Hub at one commit."""

    repository: Repository
    revision: Commit | None = Field(
        default=None,
        description="Commit; without one, the job stops and prints the line with the newest commit.",
    )

    @property
    def prefix(self) -> str:
        """Prefix of its files' names in records."""
        return f"hub:{self.repository}@{self.revision}/"

    def pinned_at(self, revision: str) -> str:
        """Return the line of YAML that pins this source to a commit."""
        return f"revision: {revision}"


class File(Settings):
    """A file with a pinned hash, or one that only its user can obtain."""

    path: Below
    sha256: Sha256 | list[Sha256] | None = Field(
        description="Several of copies that are read alike; null where the file was not at hand when this was written: "
        "only the contract checks it."
    )


class _Files(Settings):
    files: dict[str, File] = Field(min_length=1, description="Files by role, as the reader names them.")
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
    name: str | None = Field(default=None, description="Configuration of the dataset, where it has several.")
    splits: list[str] = Field(min_length=1, description="Splits to read, one after the other.")
    split_names: dict[str, str] = Field(default={}, description="Hub's split to ours, for the column split.")
    where: dict[str, str] = Field(
        default={}, description="Keep only rows with this value in a column of the Hub's table."
    )
    columns: dict[str, str] = Field(description="Column of the form to column of the Hub's table.")
    constants: dict[str, str] = Field(default={}, description="Columns of the form with a constant value.")


class Contract(Settings):
    """Requirements that a dataset must meet to be accepted under its name."""

    rows: int | None = Field(default=None, ge=0, description="Exact number of rows.")
    min_rows: int = Field(default=1, ge=0, description="Least number of rows.")
    groups: dict[str, int] = Field(
        default={}, description="Exact rows per subset (pairs, if the source has them) or split (labelled)."
    )
    labels: int | None = Field(default=None, ge=2, description="Exact number of classes.")
    score_range: tuple[float, float] | None = Field(
        default=None, description="Lowest and highest possible score."
    )

    def conflicts(self) -> Iterator[Finding]:
        """A range has a lower and an upper end, and both numbers of rows can hold."""
        if self.score_range and self.score_range[0] >= self.score_range[1]:
            low, high = self.score_range
            yield Finding(
                "score_range", f"from {low:g} to {high:g}", "Write the lowest score first, then a higher one."
            )
        if self.rows is not None and self.rows < self.min_rows:
            yield Finding("rows", f"{self.rows}, but min_rows is {self.min_rows}", "Correct one.")


class Dataset(Settings):
    """Settings that decide a dataset's rows: a block of ``datasets`` without its descriptions for people."""

    form: Literal["sentences", "pairs", "labelled", "triples"]
    sources: list[Annotated[FileSource | HubSource, Field(discriminator="kind")]] = Field(min_length=1)
    contract: Contract
    optional: bool = Field(
        default=False,
        description="Whether missing data is a gap in tables, also of runs trained on it, instead of an error.",
    )


class About(Settings):
    """Facts about a dataset for its users. Only model cards read them: no change of them reruns a number."""

    origin: str = Field(min_length=1, description="Which part of which publication the rows are.")
    url: str = Field(pattern=r"^(https://\S+|not stated)$", description="Page where the data can be had.")
    language: str = Field(pattern="^[a-z]{2,3}$", description="ISO 639 code.")
    licence: str = Field(min_length=1, description="Licence or terms of use, or where none is stated.")
    citation: str = Field(min_length=1, description="What users of the data cite.")


class DatasetBlock(Dataset):
    """One block of ``datasets`` in the configuration."""

    about: About


# Readers of datasets

PARTS = ("train", "dev", "test", "all")
"""Roles of the parts of a task; ``all`` is the one part of a task without splits."""

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
    """Forms of the rows that it returns."""
    roles: ClassVar[tuple[str, ...]] = ()
    """Roles of files; none if any name will do."""
    all_roles: ClassVar[bool] = True
    """Whether each role must have a file."""

    @property
    def returns(self) -> tuple[str, ...]:
        """The forms of the rows that these options give."""
        return self.forms


def _is_encoding(name: str) -> bool:
    """True if Python can decode text of this encoding."""
    try:
        return "a\tb\n".encode(name).decode(name) == "a\tb\n"
    except (LookupError, UnicodeError):
        return False


class Delimited(ReaderConfig):
    """Cells set off by tabs, commas or spaces: scored pairs, labelled texts or triples."""

    forms: ClassVar[tuple[str, ...]] = tuple(_REQUIRED)
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    columns: dict[str, str] = Field(
        description="Column of the form to column of the file. A split of its own goes before the role of the file."
    )
    header: list[str] | None = Field(
        default=None,
        description="Names of the columns of a file that does not begin with them. Lines of pairs may have more cells, "
        "as some of STS-B's release do; those without a name are not read.",
    )
    separator: str = Field(
        default="\t",
        min_length=1,
        max_length=1,
        description="Character between cells. After spaces, the last column of header holds the rest of its line.",
    )
    quoted: bool | None = Field(
        default=None,
        description="Whether cells may stand in quotation marks, as in CSV, and then hold separators and line ends. "
        "Left out, quotation marks are text, and a line that has as many cells with marks around them is refused.",
    )
    between: str = Field(
        default="",
        description="What separates the two sentences of one cell, such as a line end in STR's release; both then "
        "name the same column.",
    )
    strip: bool = Field(default=False, description="Take white space off both ends of each cell.")
    remove: str = Field(
        default="", description="Characters to remove from every cell, where parts are formatted differently."
    )
    label_until: str = Field(default="", description="Keep only the part of a label before this.")
    graded: bool = Field(default=False, description="Whether labels are scores; 5.0 is written as 5.")
    otherwise: str | None = Field(default=None, description="The encoding of a file that is not UTF-8.")

    @property
    def form(self) -> str | None:
        """The form of rows with these columns; None if they fit no form."""
        given = self.columns.keys()
        return next(
            (form for form in self.forms if _REQUIRED[form] <= given <= _REQUIRED[form] | _OTHER[form]), None
        )

    @property
    def open_ended(self) -> bool:
        """Whether lines may have cells without a name; between commas, and of labels, these are parts of a text."""
        return (
            self.form == "pairs"
            and self.header is not None
            and (self.quoted is True or self.separator == "\t")
        )

    @property
    def returns(self) -> tuple[str, ...]:
        """The one form of these columns."""
        return (self.form,) if self.form else ()

    def conflicts(self) -> Iterator[Finding]:
        """Columns that are those of no form, or that the file does not have."""
        if not self.form:
            forms = (f"{', '.join(sorted(_REQUIRED[form]))} for {form}" for form in self.forms)
            yield Finding(
                "columns", f"{', '.join(self.columns)} are of no form", f"Name {'; or '.join(forms)}."
            )
        if self.header is not None and (missing := sorted({*self.columns.values()} - {*self.header})):
            yield Finding("columns", f"{missing[0]} is not in header", "Name it there.")
        if twice := [name for name in self.columns.values() if (self.header or []).count(name) > 1]:
            yield Finding("header", f"{twice[0]} is there twice", "Give each column another name.")
        if self.otherwise is not None and not _is_encoding(self.otherwise):
            yield Finding(
                "otherwise",
                f"{self.otherwise} is not an encoding of Python",
                "Name one, such as cp1252 or latin-1.",
            )
        first, second = map(self.columns.get, ("sentence1", "sentence2"))
        if bool(self.between) != (first is not None and first == second):
            yield Finding(
                "between",
                "set where sentence1 and sentence2 name the same column, and only there",
                "Correct it.",
            )


class Lines(ReaderConfig):
    """One sentence per line, plain text or gzip; every line is a document of its own."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("text",)

    cleaning: Literal["none", "sentences"] = Field(
        default="sentences",
        description="none keeps every line as it is; sentences normalises white space, and drops blank lines, "
        "repeated ones, and those that are too short or too long.",
    )
    min_words: int = Field(default=1, description="Shorter lines are dropped, where lines are cleaned.")
    max_words: int = Field(default=1000, description="Longer lines are dropped, where lines are cleaned.")


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

    min_words: int = Field(description="Shorter sentences are dropped.")
    max_words: int = Field(description="Longer sentences are dropped.")


class Wikitext(ReaderConfig):
    """Releases of Wikitext: paragraphs are split into sentences, headings are dropped, each paragraph is a document."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)

    unknown: str | None = Field(description="Replacement for <unk>; null leaves it as it is.")
    min_characters: int = Field(description="Shorter sentences are dropped; the extraction study uses 10.")


READERS: dict[str, type[ReaderConfig]] = {
    "class_files": ClassFiles,
    "delimited": Delimited,
    "lee": Lee,
    "lines": Lines,
    "wikipedia_xml": WikipediaXml,
    "wikitext": Wikitext,
}
"""Readers, which are functions of these names in ``data/readers``, with the classes of their options."""


def reader_findings(source: FileSource, form: str) -> Iterator[Finding]:
    """Yield what is wrong with the reader, the roles and the options of a source of rows of some form."""
    name, files = source.reader, source.files
    if name not in READERS:
        yield from unknown(name, READERS, "reader")
        return
    takes = READERS[name]
    for role in files if takes.roles else ():
        if role not in takes.roles:
            yield Finding("files", f"{role} is not a role of a file of {name}", advice(role, takes.roles))
    for role in takes.roles if takes.all_roles else ():
        if role not in files:
            yield Finding("files", f"{name} needs a file of role {role}", "Name it there.")
    settings, wrong = read(takes, source.options)
    yield from (finding.under("options") for finding in wrong)
    forms = settings.returns if settings else takes.forms
    if form not in forms:
        found = f"{name} reads {' or '.join(forms)}, not {form}"
        yield Finding("reader", found, "Name another, or correct form.")


# Encoders


class _Source(Settings):
    sha256: dict[str, Sha256] | None = Field(
        default=None,
        description="Hash of each file to take, by its name; null takes every file that a loader reads.",
    )


class EncoderFolder(_Source):
    """A folder on this machine."""

    path: Below


class LocalEncoder(EncoderFolder, Local):
    """A folder below the data root."""


class PackageEncoder(EncoderFolder, Packaged):
    """A folder in an installed Python package."""


class HubEncoder(_Source, Pinned):
    """A repository of the Hugging Face Hub at one commit."""

    kind: Literal["hub"]

    def pinned_at(self, revision: str) -> str:
        """Return the line of YAML that pins this source to a commit: the whole source."""
        return f"- {{kind: hub, repository: {self.repository}, revision: {revision}}}"


EncoderSource = Annotated[LocalEncoder | PackageEncoder | HubEncoder, Field(discriminator="kind")]


class Fetch(Settings):
    """Settings that decide which encoder is fetched."""

    sources: list[EncoderSource] = Field(min_length=1)
    label: Substitution = None


class EncoderBlock(Fetch):
    """A block of ``encoders`` that is fetched, not trained here."""

    licence: str = Field(json_schema_extra=OPERATIONAL)
    hub: Repository | None = Field(
        default=None,
        description="Its repository on the Hub, for model cards, if no source names one.",
        json_schema_extra=OPERATIONAL,
    )
    size: Literal["base", "large", "huge"] = Field(
        default="base",
        description="As BERT-base or smaller, as BERT-large, or billions of parameters: what its jobs ask a queue for.",
        json_schema_extra=OPERATIONAL,
    )
    optional: bool = Field(
        default=False,
        description="Whether runs that need it are gaps in tables, instead of an error, if no source has it or none "
        "has a revision.",
        json_schema_extra=OPERATIONAL,
    )


class Sizes(Settings):
    """Sizes of an encoder that starts from random weights."""

    layers: int = Field(gt=0)
    width: int = Field(gt=0, description="Of the hidden states; a multiple of the heads.")
    heads: int = Field(gt=0, description="Of attention, each of width divided by their number.")
    feed_forward: int = Field(gt=0, description="Width within a layer's feed-forward part.")

    def conflicts(self) -> Iterator[Finding]:
        """The heads share the width."""
        if self.width % self.heads:
            yield Finding(
                "width", f"{self.width} is not a multiple of the {self.heads} heads", "Make it one."
            )
