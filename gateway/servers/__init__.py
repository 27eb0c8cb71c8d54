"""Connected servers and their configuration files."""

from gateway.servers.servers import Servers as Servers
