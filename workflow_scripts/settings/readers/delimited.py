"""Options of reader delimited."""

from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from workflow_scripts.settings.readers import ColumnsConfig


class Config(ColumnsConfig):
    """Cells set off by tabs, commas or spaces: scored pairs, labelled texts or triples."""

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
    quoted: bool = Field(
        default=False,
        description="Whether cells may stand in quotation marks, as in CSV, and then hold separators and line ends.",
    )
    between: str = Field(
        default="",
        description="What separates the texts of a cell that several columns of the form name, as a line end those of "
        "STR's release.",
    )
    strip: bool = Field(default=False, description="Take white space off both ends of each cell.")
    remove: str = Field(
        default="", description="Characters to remove from every cell, where parts are formatted differently."
    )
    label_until: str = Field(default="", description="Keep only the part of a label before this.")
    graded: bool = Field(default=False, description="Whether labels are scores; 5.0 is written as 5.")
    otherwise: str | None = Field(default=None, description="The encoding of a file that is not UTF-8.")

    @property
    def open_ended(self) -> bool:
        """Whether lines may have cells without a name; between commas, and of labels, these are parts of a text."""
        return self.form == "pairs" and self.header is not None and (self.quoted or self.separator == "\t")

    @property
    def shared(self) -> list[str]:
        """Columns of the form that name the same column of the file."""
        named = Counter(self.columns.values())
        return [name for name, column in self.columns.items() if named[column] > 1]

    def conflicts(self) -> Iterator[str]:
        """Columns that are those of no form, that the file does not have, or whose texts cannot be told apart."""
        yield from super().conflicts()
        if self.header is not None and (missing := [*{*self.columns.values()} - {*self.header}]):
            yield f"columns: {missing[0]} is not in header. Name it there."
        if bool(self.shared) != bool(self.between) or len({self.columns[name] for name in self.shared}) > 1:
            found = f"{', '.join(self.shared) or 'no two columns'} name the same column of the file"
            yield f"between: {self.between!r}, and {found}. Set it where one cell holds several texts, and only there."
