"""The small study that reporting is tested with has figures, too."""

from tests.unit.reporting.conftest import finish_study, finished, small_grid

__all__ = ["finish_study", "finished", "small_grid"]
