"""Environment variables of the gateway, and the paths of its files.

Only this module reads the environment, whenever it needs a value. Options take precedence. Files
without a path are in the cache folder. Libraries read further variables (OpenAI, HTTP proxies).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.errors import ConfigError
from gateway.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Values of environment variables."""

    cache_dir: Path
    """``GATEWAY_CACHE_DIR``, else the user's cache folder."""
    encoder_dir: Path
    """``GATEWAY_ENCODER_DIR``, else ``encoders`` in the cache folder."""
    capture_content: bool
    """True if ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` requests content on
    spans."""
    openai_configured: bool
    """True if ``OPENAI_API_KEY`` or ``OPENAI_BASE_URL`` is set."""
    openai_model: str
    """``GATEWAY_MODEL``: the chat model of the demo."""
    normalizer_url: str
    """``GATEWAY_NORMALIZE_BASE_URL``: address of the model service of `--normalize`; empty uses
    OpenAI's."""
    normalizer_key: str = field(repr=False)
    """``GATEWAY_NORMALIZE_API_KEY``: API key of the model service of `--normalize`."""
    plugins: tuple[str, ...] | None
    """``GATEWAY_PLUGINS``: names of the plugins to load; None loads all installed plugins."""
    fusion: str
    """``SEARCH_FUSION_METHOD``: ranking of searches over HTTP, ``rrf`` or ``legacy``."""


def environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Read the gateway's environment variables; None reads those of the process."""
    values = os.environ if variables is None else variables
    folder = values.get("GATEWAY_CACHE_DIR", "").strip()
    if not folder:
        import platformdirs  # noqa: PLC0415  (only where nobody names a folder)

        folder = platformdirs.user_cache_dir("tool-gateway")
    encoders = values.get("GATEWAY_ENCODER_DIR", "").strip()
    capture = values.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().upper()
    return Environment(
        cache_dir=Path(folder),
        encoder_dir=Path(encoders or f"{folder}/encoders"),
        capture_content=capture in {"TRUE", "SPAN_ONLY", "SPAN_AND_EVENT"},
        openai_configured=bool(values.get("OPENAI_API_KEY") or values.get("OPENAI_BASE_URL")),
        openai_model=values.get("GATEWAY_MODEL", "gpt-5.4-mini"),
        normalizer_url=values.get("GATEWAY_NORMALIZE_BASE_URL", "").strip(),
        normalizer_key=values.get("GATEWAY_NORMALIZE_API_KEY", "").strip(),
        plugins=_parse_plugins(values.get("GATEWAY_PLUGINS", "").strip()),
        fusion=values.get("SEARCH_FUSION_METHOD", "").strip().casefold() or "rrf",
    )


def resolved(options: Options) -> Options:
    """Return *options*, completed by environment variables.

    Raises:
        ConfigError: If *options* has the wrong type.
    """
    if not isinstance(options, Options):
        raise ConfigError(f"options must be an Options(…), got {options!r}")
    variables = environment()
    return replace(
        options,
        capture_content=options.capture_content or variables.capture_content,
        plugins=variables.plugins if options.plugins is None else options.plugins,
    )


def _parse_plugins(text: str) -> tuple[str, ...] | None:
    if text == "none":
        return ()
    return tuple(name.strip() for name in text.split(",") if name.strip()) or None


def vector_store_path(options: Options) -> Path:
    """Return the path of the file of vectors."""
    return options.vector_store_path or environment().cache_dir / "vectors.sqlite3"


def catalog_store_path(options: Options) -> Path:
    """Return the path of the file of tool lists and approvals."""
    return options.catalog_store_path or environment().cache_dir / "catalog.sqlite3"


def settings_dir(application: str) -> Path:
    """Return the folder of the user's settings of *application*."""
    import platformdirs  # noqa: PLC0415  (as for the cache folder)

    return platformdirs.user_config_path(application, appauthor=False, roaming=True)


def ledger_path(options: Options) -> Path:
    """Return the path of the log of calls."""
    return catalog_store_path(options).with_name("usage.sqlite3")


def audit_path(options: Options) -> Path:
    """Return the path of the audit log."""
    return catalog_store_path(options).with_name("audit.sqlite3")


def tokens_path(options: Options) -> Path:
    """Return the folder of sign-in tokens."""
    return catalog_store_path(options).parent / "tokens"


def approval_key_path(options: Options) -> Path:
    """Return the path of the key that signs approvals."""
    return catalog_store_path(options).with_name("approvals.key")


def index_path(options: Options, *, own_store: bool) -> Path | None:
    """Return the folder of saved indexes; None if indexes are not saved.

    Args:
        options: Options of the gateway.
        own_store: True if the host passes its own vector store.
    """
    is_saved = options.index.saved and options.index.rows == "memory"
    if not is_saved or (own_store and options.index_path is None):
        return None
    return options.index_path or environment().cache_dir / "index"


def variables(needed: frozenset[str]) -> dict[str, str]:
    """Return the environment variables in *needed* that are set, keyed by name."""
    return {name: os.environ[name] for name in needed if name in os.environ}


def variable_names(prefix: str) -> frozenset[str]:
    """Return the names of environment variables that begin with *prefix*."""
    return frozenset(name for name in os.environ if name.startswith(prefix))


def complete_telemetry() -> bool:
    """Set missing variables of OpenTelemetry to defaults. Return True if they request an export.

    Traces and metrics are exported to a configured OTLP endpoint over HTTP, the default of the
    specification, but not of the SDK.
    """
    for signal in ("TRACES", "METRICS"):
        names = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
        if any(map(os.environ.get, names)):
            os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "otlp")
    os.environ.setdefault("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if "service.name" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", "tool-gateway")
    exporters = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_CONFIG_FILE")
    return any(map(os.environ.get, exporters))


def proxy_of(scheme: str, host: str) -> str:
    """Return the URL of the proxy for *host* by the environment or the system; empty without one.

    ``ALL_PROXY`` is ignored.
    """
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415  (slow to load)

    proxy = getproxies().get(scheme, "")
    if not proxy or proxy_bypass(host):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"
