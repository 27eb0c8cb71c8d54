"""Ranking policies compatible with registries."""
