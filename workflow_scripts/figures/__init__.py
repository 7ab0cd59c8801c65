"""Figures, one module each, drawn by one job."""
