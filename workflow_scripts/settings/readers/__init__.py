"""What readers of datasets take, a module a reader, imported by the name in the configuration."""

from typing import ClassVar

from workflow_scripts.config import Settings

PARTS = ("train", "dev", "test", "all")
"""Roles of the parts of a task; ``all`` is the one part of a task without splits."""


class ReaderConfig(Settings):
    """Options of a reader: every field is a key of ``options`` of a source."""

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
