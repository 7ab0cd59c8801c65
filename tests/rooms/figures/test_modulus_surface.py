import numpy as np
import pytest
from matplotlib.contour import QuadContourSet

from tests.rooms.figures.conftest import shown

BY_HAND = {
    (1, 1): 0, (1, 0): 0.7071068, (1, -1): 1, (2, 1): 1 / 3, (3, 1): 0.5, (10, 1): 0.8181818, (2, 0): 0.7453560,
}  # fmt: skip


def closed_form(k, t):
    """JTCSE, Eq. 5, and O-40."""
    return np.sqrt(np.maximum(0, 1 + k**2 - 2 * k * t)) / (1 + k)


def test_level_lines_are_where_the_loss_has_their_level():
    """Of the lines and of the edges of colours, horizontal places are ratios and vertical ones cosines."""
    panel = shown("modulus_surface", {"longest": 10, "steps": 101}).picture.axes[0]
    both = [drawn for drawn in panel.collections if isinstance(drawn, QuadContourSet)]
    assert [drawn.filled for drawn in both] == [True, False]
    for drawn in both:
        paths = dict(zip(drawn.levels, drawn.get_paths(), strict=False))
        drawn_levels = {level: closed_form(*path.vertices.T) for level, path in paths.items() if len(path)}
        assert len(drawn_levels) >= 9
        for level, losses in drawn_levels.items():
            assert losses.min() > level - 0.02
            assert losses.max() < level + 0.02 + 0.1 * drawn.filled


def test_the_surface_is_the_closed_form():
    """JTCSE, Eq. 5, and O-40: L_TMC(k, t) = sqrt(1 + k^2 - 2kt) / (1 + k)."""
    points, _, found = shown("modulus_surface", {"longest": 10, "steps": 101})  # steps of .1 and .02
    places = zip(points["k"].round(9), points["t"].round(9), strict=True)
    loss = dict(zip(places, points["loss"], strict=True))
    assert len(loss) == 101**2
    assert min(loss, key=loss.get) == (1, 1)
    assert {place: loss[place] for place in BY_HAND} == pytest.approx(BY_HAND, abs=1e-6)
    form = {(k, t): max(0, 1 + k * k - 2 * k * t) ** 0.5 / (1 + k) for k, t in loss}
    assert loss == pytest.approx(form, abs=1e-7)
    assert {"k, ratio of the moduli", "t, cosine", "0.4"} <= {*found}
