"""Signals of `auto`. Their weighted sum ranks the candidates."""
