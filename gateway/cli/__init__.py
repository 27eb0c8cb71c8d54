"""The `gateway` command."""

from gateway.cli.app import main

__all__ = ["main"]

from gateway.cli.exit_codes import EXIT_CODES as EXIT_CODES
from gateway.cli.exit_codes import INTERRUPTED as INTERRUPTED
from gateway.cli.exit_codes import NEEDS_PERSON as NEEDS_PERSON
from gateway.cli.exit_codes import NOTHING as NOTHING
from gateway.cli.exit_codes import OK as OK
from gateway.cli.exit_codes import RETRY_LATER as RETRY_LATER
from gateway.cli.exit_codes import UNAVAILABLE as UNAVAILABLE
from gateway.cli.exit_codes import UNKNOWN as UNKNOWN
from gateway.cli.exit_codes import USAGE as USAGE
