"""What a representation cannot be asked for, found before any job, and again by a job that knows the encoder itself."""

from collections.abc import Iterator, Mapping
from typing import Any

from workflow_scripts.errors import ConfigError
from workflow_scripts.extraction.layers import every_layer, parse_layers


def impossible(settings: Mapping[str, Any], depth: int | None) -> Iterator[str]:
    """What blocks ask of a representation that it does not have, in words.

    Args:
        settings: As ``blocks.job_settings`` has them.
        depth: Layers of the encoder; None while nobody can say, and layers are not looked at.
    """
    for block in settings["blocks"]:
        if settings["representation"]["kind"] != "encoder":
            if block["layers"] != ["static"] or any(block["mixing_weights"]):
                yield "the representation has no layers. Set layers to [static] and mixing_weights to [0]."
        elif depth is not None:
            yield from _of_layers(block["layers"], depth)
        yield from _of_masks(settings, block["weightings"])


def _of_layers(names: list[str], depth: int) -> Iterator[str]:
    for name in every_layer(names, depth):
        try:
            parse_layers(name, depth)
        except ConfigError as error:
            yield str(error)


def _of_masks(settings: Mapping[str, Any], names: list[str]) -> Iterator[str]:
    has_masks = settings["template"] is not None and "[MASK]" in settings["template"]["text"]
    for name in names:
        if settings["weightings"][name]["kind"] == "masks" and not has_masks:
            yield f"the representation's template has no mask. Remove the weighting {name} from its block."
