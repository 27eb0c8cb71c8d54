"""Import and export of manifests: agent cards, skills, bundles and server configurations."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "agent_cards": "MAX_EXAMPLES read_card write_card",
        "client_files": "client_snippets is_this_gateway",
        "exporter": "export_servers export_virtual_server servers_of",
        "files": "MAX_SKILL_BYTES bundle files_of read_bundle read_file read_manifests "
        "write_bundle",
        "skills": "read_skill write_skill",
    },
)
