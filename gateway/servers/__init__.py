"""Sources of a gateway, and the configuration files that define servers."""

from gateway.servers.servers import Servers as Servers
