"""Signals of the strategy `auto`. Their weighted sum ranks the candidates."""
