from gateway.sharding.gateway_part import GatewayPart as GatewayPart
from gateway.sharding.http_part import HttpPart as HttpPart
from gateway.sharding.sharded_search import ShardedSearch as ShardedSearch
