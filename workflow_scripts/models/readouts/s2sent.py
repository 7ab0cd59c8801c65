"""S2Sent: nested selection of an encoder's last blocks and of frequencies over them.

Zang et al. 2025, https://arxiv.org/abs/2508.18164; the computation is in ``models.portable.s2sent``. Text and
official code disagree in nine places; each is a setting, and ``readings`` in config/methods.yaml name the
combinations. Defaults follow the text, but divide the frequency squeeze by N L: then one frequency is the
average that Equation 6 says it is, and a gate does not depend on how long a sentence is. Neither reading
of the text lets an embedding depend on its batch; the code's ``dct: grid`` and ``gate: batch`` do, and what is
made with them carries a label.

Frequencies of the block axis that N blocks cannot carry (a >= N: 3 and 4 of the three blocks and sixteen
frequencies of Figure 6) are taken on six cells, into which the code pools any number of blocks. ASSUME: a
repeated block is meant to have no frequency that it lacks; in Equation 10 as printed, a = 2 of a single block
is minus its average. With three blocks this makes a = 4 half of what Equation 10 has, which is minus a = 2, and
a = 3 is nothing in both. ``dct: printed`` is Equation 10 over N L, ``sum`` Equation 10 itself; below a = N all
three are the same up to N L.

Equation 4 with one branch is the identity: a softmax over one number is 1. The paper's rows "S2Sent (1D SS)"
cannot come from it; ``form: average`` runs them as a control, and ``gate: batch`` as the code does.
"""

from typing import Any

from transformers import PretrainedConfig

from workflow_scripts.models.portable.s2sent import Core
from workflow_scripts.models.readouts import PortableReadout, draw_linear_layers
from workflow_scripts.settings.readouts.s2sent import Config


class S2Sent(PortableReadout):
    """The readout and its portable form."""

    def portable_class(self) -> Any:
        """Its module of sentence-transformers."""
        from workflow_scripts.models.portable import s2sent_module

        return s2sent_module.S2Sent


def build(config: Config, backbone_config: PretrainedConfig) -> PortableReadout:
    """Make the selector, its weights drawn afresh as in the official code (``draw_linear_layers``)."""
    settings = {"width": backbone_config.hidden_size} | config.model_dump(exclude={"kind"})
    core = Core(**settings)
    draw_linear_layers(core)
    readout = S2Sent(core, settings, reads="padded" if config.reads_padding else "all")
    readout.reads_rows_apart = not config.batch_norm and config.gate != "batch"
    return readout
