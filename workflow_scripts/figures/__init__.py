"""Figures; those that look alike share a module, drawn by one job."""
