"""Settings of readouts, a module a kind, imported by the name in the configuration.

As with methods, a registry that imports them all would make every readout part of every job's code.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, SerializeAsAny

from workflow_scripts.config import Settings, named_class
from workflow_scripts.settings.start import Start


class ReadoutConfig(Settings):
    """Settings of a readout: every field but ``kind`` is a key of ``readout`` in a block of config/methods.yaml.

    ``kind`` is the file's name, as a ``Literal``. The settings are all that a model folder keeps of them, so that
    they and the encoder's configuration must be enough to make the readout anew.
    """

    kind: str

    @classmethod
    def class_of(cls, section: Any) -> type[Self]:
        """The class of the kind that ``section`` names."""
        return cls if cls is not ReadoutConfig else named_class(__name__, "kind", section, cls)

    @property
    def has_head(self) -> bool:
        """Whether SimCSE's MLP head is trained on its vector."""
        return False

    @property
    def reads_pooler(self) -> bool:
        """Whether an encoder that is not trained is read through the pooler that it has."""
        return False

    @property
    def needs_frozen(self) -> bool:
        """Whether it reads an encoder's own weights alone, which no run has trained."""
        return False

    @property
    def mask_setting(self) -> str | None:
        """The setting by which it reads [MASK], for which sentences need a prompt; None if it does not."""
        return None

    @property
    def is_independent(self) -> bool:
        """Whether a vector, and what is drawn for it in training, does not depend on the others of its batch."""
        return True

    @property
    def labels(self) -> Sequence[str]:
        """What a reader of any number made with it must know, such as that vectors depend on their batch."""
        return ()

    def misfits(self, start: Start) -> Iterator[str]:
        """What an encoder lacks for it, a line each that begins with ``readout.`` and the setting."""
        return iter(())


AnyReadout = Annotated[SerializeAsAny[ReadoutConfig], BeforeValidator(ReadoutConfig.strictly)]
"""A field that holds the settings of a readout of any kind."""
