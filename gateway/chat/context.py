"""What all calls of one client share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.chat.chains import Chains
from gateway.chat.events import Observer
from gateway.chat.loop import Loop
from gateway.chat.wire import Talk
from gateway.discovery.approval import Approve
from gateway.discovery.tool_list import Discovery
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.sync import SyncGateway


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """The gateway, the discovery, the chains and the callbacks of one client."""

    gateway: Gateway
    discovery: Discovery
    chains: Chains
    observer: Observer | None = None
    approve: Approve | None = None

    @classmethod
    def of(
        cls,
        gateway: Gateway,
        *,
        observer: Observer | None = None,
        approve: Approve | None = None,
    ) -> ClientContext:
        """Make the context of one client.

        Raises:
            ConfigError: If *gateway* is no `Gateway`.
        """
        if not isinstance(gateway, Gateway):
            mend = ": pass its .gateway" if isinstance(gateway, SyncGateway) else ""
            raise ConfigError(f"gateway must be a Gateway, got {type(gateway).__name__}{mend}")
        return cls(
            gateway=gateway,
            discovery=Discovery(gateway),
            chains=Chains(),
            observer=observer,
            approve=approve,
        )

    def loop(self, talk: Talk[Any]) -> Loop[Any]:
        """Begin a call."""
        return Loop(
            self.gateway, self.discovery, talk, observer=self.observer, approve=self.approve
        )
