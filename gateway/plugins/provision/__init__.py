"""Discovery of MCP servers in registries, and their installation with consent."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "candidates": "ServerCandidate available_servers bundled_servers rank_servers",
        "discover": "LIMIT overview_for_model",
        "install": "run_command",
        "plan": "Plan Programs make_plan server_name",
        "policy": "PolicyCheck Question by_policy check_plan refuse_all",
        "provisioner": "Provisioner",
        "registry": "fetch origin parse_entries",
        "registry_schema": "BUNDLED Input OFFICIAL Package RegistryEntry Remote",
        "steps": "Audit",
    },
)
