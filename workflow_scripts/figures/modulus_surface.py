"""Figure of the modulus loss over the ratio of two moduli and the cosine between them (JTCSE, Fig. 3).

The values are computed by ``losses.modulus``, for two vectors of a plane.
"""

from functools import partial

import numpy as np
import pandas as pd

from workflow_scripts.figures.base import INK, Declaration, Drawn, FigureRequest, new_figure
from workflow_scripts.settings.figures import ModulusSurface

_PANEL_INCHES = 3.6
_LEVELS = np.linspace(0, 1, 11)


@partial(
    Declaration,
    title="Modulus constraint: {title}",
    description="Level lines of the modulus loss: ratio of the moduli to the right, cosine upwards; the minimum "
    "is at 1 and 1.",
    caption=(
        "JTCSE's loss of a pair of vectors, over the ratio of their moduli and the cosine between them "
        "(its Figure 3), computed by the training code. The loss is 0 only if both are 1."
    ),
    settings=ModulusSurface,
)
def modulus_surface(request: FigureRequest[ModulusSurface]) -> Drawn:
    """Draw the surface from above, with a colour and a line for each tenth."""
    points = surface(request.config)
    loss = points.pivot_table(index="t", columns="k", values="loss")
    figure, ((axes,),) = new_figure(_PANEL_INCHES)
    filled = axes.contourf(loss.columns, loss.index, loss, levels=_LEVELS, cmap="cividis_r")
    lines = axes.contour(loss.columns, loss.index, loss, levels=_LEVELS, colors=INK, linewidths=0.5)
    axes.plot(1, 1, "o", color=INK, clip_on=False)
    axes.set(xlabel="k, ratio of the moduli", ylabel="t, cosine")
    figure.colorbar(filled, label="L_TMC").add_lines(lines)
    note = "L_TMC = |h - h+| / (|h| + |h+|) by the training code; k = |h+| / |h|, t = cos(h, h+)."
    return Drawn(points, figure, [note])


def surface(config: ModulusSurface) -> pd.DataFrame:
    """Return L_TMC (column ``loss``) over ratios of moduli ``k`` and cosines ``t``."""
    import torch

    from workflow_scripts.losses.modulus import modulus_distance

    k, t = torch.meshgrid(
        torch.linspace(0, config.longest, config.steps, dtype=torch.float64),
        torch.linspace(-1, 1, config.steps, dtype=torch.float64),
        indexing="ij",
    )
    k, t = k.flatten(), t.flatten()
    left_B2 = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(len(k), 2)
    right_B2 = torch.stack([k * t, k * (1 - t.square()).sqrt()], dim=1)
    return pd.DataFrame({"k": k, "t": t, "loss": modulus_distance(left_B2, right_B2)})
