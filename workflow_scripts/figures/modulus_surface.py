"""The modulus loss over the ratio of two moduli and the cosine between them (JTCSE, Fig. 3).

What is drawn is what ``losses.modulus`` computes for two vectors of a plane, so the figure shows the code's function.
"""

import numpy as np
import pyarrow as pa
import torch
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from workflow_scripts.figures.base import FigureKind, Request
from workflow_scripts.figures.style import INK, colour_bar
from workflow_scripts.losses.modulus import modulus_distance
from workflow_scripts.settings.figures import ModulusSurface

COLUMNS = pa.schema([("k", pa.float64()), ("t", pa.float64()), ("loss", pa.float64())])
"""L_TMC at a ratio of moduli k and a cosine t, ratio by ratio."""
HOW_DRAWN = "L_TMC = |h - h+| / (|h| + |h+|) by the code that trains; k = |h+| / |h|, t = cos(h, h+)."

_PANEL_INCHES = 3.6
_LEVELS = np.linspace(0, 1, 11)
_COLOURS = ListedColormap(colormaps["cividis_r"](np.linspace(0, 1, len(_LEVELS) - 1)))
_LINES = ["#111112"] * 4 + ["#f8f8f9"] * 5  # dark on light, then light on dark, whatever the paper


def points(request: Request[ModulusSurface]) -> pa.Table:
    """The loss at every point of a grid; k from 0, t from -1 to 1."""
    config = request.config
    k, t = torch.meshgrid(
        torch.linspace(0, config.longest, config.steps, dtype=torch.float64),
        torch.linspace(-1, 1, config.steps, dtype=torch.float64),
        indexing="ij",
    )
    k, t = k.flatten(), t.flatten()
    left_B2 = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(len(k), 2)
    right_B2 = torch.stack([k * t, k * (1 - t.square()).sqrt()], dim=1)
    loss = modulus_distance(left_B2, right_B2)
    return pa.table([k.numpy(), t.numpy(), loss.numpy()], schema=COLUMNS)


def draw(points: pa.Table, request: Request[ModulusSurface]) -> Figure:
    """Draw the surface from above, a colour and a line for each tenth."""
    k, t = (np.unique(points[name].to_numpy()) for name in "kt")
    loss = points["loss"].to_numpy().reshape(len(k), len(t)).T
    figure = request.new_figure(_PANEL_INCHES, [HOW_DRAWN])
    axes = figure.subplots()
    filled = axes.contourf(k, t, loss, levels=_LEVELS, cmap=_COLOURS)
    lines = axes.contour(k, t, loss, levels=_LEVELS[1:-1], colors=_LINES, linewidths=0.5)
    axes.clabel(lines, _LEVELS[2:-1].tolist(), fontsize=6.5, fmt="%.1f")
    axes.plot(1, 1, "o", ms=5, color=INK, clip_on=False)
    axes.set_xlabel("k, ratio of the moduli")
    axes.set_ylabel("t, cosine")
    colour_bar(figure, filled, "L_TMC", ax=axes, aspect=30, pad=0.02)
    return figure


KINDS = {
    "modulus_surface": FigureKind(
        columns=COLUMNS,
        title="Modulus constraint: {title}",
        description=(
            "Level lines of the modulus loss: ratio of the moduli to the right, cosine upwards; least at 1 and 1."
        ),
        points=points,
        draw=draw,
    )
}
