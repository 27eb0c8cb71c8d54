"""Edges that nobody wrote, read out of names, descriptions and arguments."""
