"""Entry point of ``python -m gateway``, which runs the command ``gateway``."""

from gateway.cli import main

main()
