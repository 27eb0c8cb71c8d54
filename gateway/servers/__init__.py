"""The sources of a gateway (servers and Python functions), and the configuration files that define
servers.
"""

from gateway.servers.servers import Servers as Servers
