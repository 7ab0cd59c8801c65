"""What a wrong setting is told."""

import pytest
from pydantic import field_validator

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError


class Even(Settings):
    """A number that two divides."""

    number: int

    @field_validator("number")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("no multiple of 2")
        return value


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"number": 3}, "here.number: no multiple of 2; found 3."),
        ({}, "here.number: Field required; found {}."),
        ({"number": 2, "other": 1}, "here.other: Extra inputs are not permitted; found 1."),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_found(section, message):
    with pytest.raises(ConfigError) as told:
        Even.parse(section, "here")
    assert str(told.value) == message


def test_of_a_whole_file_only_the_beginning_is_shown():
    with pytest.raises(ConfigError) as told:
        Even.parse({f"key{number}": number for number in range(1000)}, "here")
    assert "found {'key0': 0, " in str(told.value) and len(str(told.value)) < 200
