"""Adapters for agent frameworks: one module per framework, each with an optional extra.

`gateway.discovery` decides which tools are offered, found and called. Adapters only translate.
"""
