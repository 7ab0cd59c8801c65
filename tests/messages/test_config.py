"""What a wrong setting is told."""

import pytest
from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError


class Small(Settings):
    """A number below 4."""

    number: int = Field(lt=4)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"number": 4}, "here.number: Input should be less than 4; found 4."),
        ({}, "here.number: Field required; found {}."),
        ({"number": 2, "other": 1}, "here.other: Extra inputs are not permitted; found 1."),
        (
            {f"key{number}": number for number in range(1000)},
            "here.number: Field required; found {'key0': 0, ",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_the_beginning_of_what_was_found(section, message):
    with pytest.raises(ConfigError) as told:
        Small.parse(section, "here")
    assert str(told.value).startswith(message) and len(str(told.value)) < 200
