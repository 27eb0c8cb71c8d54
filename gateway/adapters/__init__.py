"""Adapters for agent frameworks: one module per framework, each with an optional extra.

Importing this package imports no framework; importing a module imports its framework. Adapters
translate only: `gateway.discovery` decides which tools are offered, found and called.
"""
