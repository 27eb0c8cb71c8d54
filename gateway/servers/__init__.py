from gateway.servers.servers import Servers as Servers
