"""The study that figures of nothing are asked to draw."""

from tests.rooms.reporting.conftest import finished

__all__ = ["finished"]
