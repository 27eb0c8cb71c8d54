"""The process environment, and the paths that follow from it.

No other module of the package reads it. It is read each time that a value is needed. A path that
the host names in its options wins; the others lie in the cache folder. Variables of the libraries
below (OpenAI's client, an HTTP client before its proxy) are theirs.
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
    """The values of the process environment."""

    cache_dir: Path
    """``GATEWAY_CACHE_DIR``, else the user's cache folder."""
    encoder_dir: Path
    """``GATEWAY_ENCODER_DIR``, else ``encoders`` in the cache folder."""
    capture_content: bool
    """``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` asks for content on spans."""
    openai_configured: bool
    """``OPENAI_API_KEY`` or ``OPENAI_BASE_URL`` is set."""
    openai_model: str
    """``GATEWAY_MODEL``: the chat model of the demo."""
    normalizer_url: str
    """``GATEWAY_NORMALIZE_BASE_URL``: the service that `--normalize` asks; empty is OpenAI's."""
    normalizer_key: str = field(repr=False)
    """``GATEWAY_NORMALIZE_API_KEY``: its key."""
    plugins: tuple[str, ...] | None
    """``GATEWAY_PLUGINS``: the plugins to load, or ``none``; None is all that are installed."""
    fusion: str
    """``SEARCH_FUSION_METHOD``: what ranks searches over HTTP, ``rrf`` or ``legacy``."""


def environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Read the variables of this package, as they are now.

    Args:
        variables: The variables to read; None is the process's own.
    """
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
        plugins=_plugins(values.get("GATEWAY_PLUGINS", "").strip()),
        fusion=values.get("SEARCH_FUSION_METHOD", "").strip().casefold() or "rrf",
    )


def resolved(options: Options) -> Options:
    """Fill in the options that the environment decides.

    Raises:
        ConfigError: *options* is another object.
    """
    if not isinstance(options, Options):
        raise ConfigError(f"options must be an Options(…), got {options!r}")
    variables = environment()
    return replace(
        options,
        capture_content=options.capture_content or variables.capture_content,
        plugins=variables.plugins if options.plugins is None else options.plugins,
    )


def _plugins(text: str) -> tuple[str, ...] | None:
    if text == "none":
        return ()
    return tuple(name.strip() for name in text.split(",") if name.strip()) or None


def vector_store_path(options: Options) -> Path:
    """Return where vectors persist."""
    return options.vector_store_path or environment().cache_dir / "vectors.sqlite3"


def catalog_store_path(options: Options) -> Path:
    """Return where tool lists and approvals persist."""
    return options.catalog_store_path or environment().cache_dir / "catalog.sqlite3"


def settings_dir(application: str) -> Path:
    """Return where *application* keeps this user's settings."""
    import platformdirs  # noqa: PLC0415  (as for the cache folder)

    return platformdirs.user_config_path(application, appauthor=False, roaming=True)


def ledger_path(options: Options) -> Path:
    """Return where calls are noted: beside the catalog."""
    return catalog_store_path(options).with_name("usage.sqlite3")


def audit_path(options: Options) -> Path:
    """Return where the audit log is: beside the catalog."""
    return catalog_store_path(options).with_name("audit.sqlite3")


def tokens_path(options: Options) -> Path:
    """Return the folder in which the tokens of sign-ins persist: beside the catalog."""
    return catalog_store_path(options).parent / "tokens"


def approval_key_path(options: Options) -> Path:
    """Return where the key of approvals persists: beside the catalog."""
    return catalog_store_path(options).with_name("approvals.key")


def index_path(options: Options, *, own_store: bool) -> Path | None:
    """Return where indexes are saved; None if they are not.

    Args:
        options: The options of the host.
        own_store: Whether the host keeps vectors in a store of its own.
    """
    is_saved = options.index.saved and options.index.rows == "memory"
    if not is_saved or (own_store and options.index_path is None):
        return None
    return options.index_path or environment().cache_dir / "index"


def variables(needed: frozenset[str]) -> dict[str, str]:
    """Return those of the *needed* environment variables that are set."""
    return {name: os.environ[name] for name in needed if name in os.environ}


def variable_names(prefix: str) -> frozenset[str]:
    """Return the names of the environment variables that begin with *prefix*."""
    return frozenset(name for name in os.environ if name.startswith(prefix))


def complete_telemetry() -> bool:
    """Set what the OpenTelemetry SDK's variables leave open, as a distribution of it does.

    An endpoint alone asks for traces and metrics, or for those of its own signal. OTLP goes over
    HTTP, which is its default by the specification and not by the SDK.

    Returns:
        Whether the variables ask for an export.
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
    """Return the URL of the proxy that the environment, or the system, puts before *host*.

    Empty if there is none. ``ALL_PROXY`` counts for nothing here.
    """
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415  (slow to load)

    proxy = getproxies().get(scheme, "")
    if not proxy or proxy_bypass(host):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"
