"""Combinations of layers by names that work for encoders of any depth, and checks that an encoder has them.

    static        the table of input embeddings, before positions and normalisation: the paper's layer -1
    0, 1, 2, ...  hidden states; 0 is the output of the embedding layer
    last          the last layer
    1+last        the mean of several layers; the paper's "first + last" (Equation 3)

Stankevicius and Lukosevicius 2025, section 3.1. The mean and the sum of layers differ by a constant factor, which
affects neither cosine similarity nor k-means; with means, all combinations have vectors of similar length.
"""

from collections.abc import Iterable, Iterator

from workflow_scripts.errors import ConfigError, ErrorDetails
from workflow_scripts.settings.extraction import EncoderRepresentation, JobSettings, MaskAverage

STATIC = -1
"""The paper's number for the table of input embeddings."""


def parse_layers(name: str, depth: int) -> tuple[int, ...]:
    """Return the numbers of the layers that ``name`` averages.

    Args:
        name: Name in the form of the module's docstring.
        depth: Number of layers of the encoder.

    Raises:
        ConfigError: if a part is not a layer of the encoder, or occurs twice.
    """
    named = {"static": STATIC, "last": depth} | {str(layer): layer for layer in range(depth + 1)}
    parts = name.split("+")
    if unknown := [part for part in parts if part not in named]:
        known = f"static, 0 to {depth}, last"
        raise ConfigError(
            f"layers {name}: '{unknown[0]}' is not a layer of the encoder. Choose from {known}."
        )
    layers = tuple(named[part] for part in parts)
    if len(set(layers)) < len(layers):
        raise ConfigError(f"layers {name}: one layer occurs twice. Remove one.")
    return layers


def every_layer(names: Iterable[str], depth: int) -> list[str]:
    """Return ``names`` with ``each`` replaced by all hidden states, 0 to ``depth``."""
    spelled = [[*map(str, range(depth + 1))] if name == "each" else [name] for name in names]
    return list(dict.fromkeys(name for part in spelled for name in part))


def layer_errors(settings: JobSettings, depth: int | None) -> Iterator[ErrorDetails]:
    """Yield an error for each layer or mask in blocks that the representation lacks.

    The graph checks before any job, and the job again with the encoder.

    Args:
        settings: Settings of a job.
        depth: Number of layers of the encoder; None if unknown, which skips the check of layers.
    """
    has_masks = settings.template is not None and settings.template.masks > 0
    for block in settings.blocks:
        if not isinstance(settings.representation, EncoderRepresentation):
            if block.layers != ["static"] or any(block.mixing_weights):
                remedy = "Set layers to [static] and mixing_weights to [0]."
                yield ErrorDetails("layers", "the representation has no layers", remedy)
        elif depth is not None:
            for name in every_layer(block.layers, depth):
                try:
                    parse_layers(name, depth)
                except ConfigError as error:
                    yield ErrorDetails("layers", str(error))
        for name in block.weightings:
            if isinstance(settings.weightings[name], MaskAverage) and not has_masks:
                problem = "the representation's template has no mask"
                yield ErrorDetails("weightings", problem, f"Remove {name} from this block.")
