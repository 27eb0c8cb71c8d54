"""Keys derived from the host key."""

from __future__ import annotations

import pytest

from gateway.errors import ConfigError
from gateway.options import Options
from gateway.storage import host_keys

NEW, OLD = "n" * 32, "o" * 44


def test_host_keys_are_independent_for_each_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    """The derived keys are the same on every machine, also if the host key is a reference."""
    monkeypatch.setenv("TEAM_KEY", f"{NEW}, {OLD}")
    both = host_keys(Options(host_key="env:TEAM_KEY"), "sign-ins")
    old = host_keys(Options(host_key=OLD), "sign-ins")
    other = host_keys(Options(host_key=OLD), "approvals")

    assert (both[1],) == old
    assert 4 == len({*both, *other, OLD.encode()})
    assert {32} == {len(key) for key in (*both, *other)}
    assert "c07616" == both[0].hex()[:6]
    assert () == host_keys(Options(), "sign-ins")


@pytest.mark.parametrize("text", ["SECRET", f"{NEW},SECRET", f"{NEW},", "env:TEAM_KEY_IS_NOT_SET"])
def test_invalid_host_key_error_does_not_contain_the_key(text: str) -> None:
    with pytest.raises(ConfigError, match="host_key") as caught:
        host_keys(Options(host_key=text), "sign-ins")

    assert "SECRET" not in str(caught.value)
    assert "SECRET" not in repr(Options(host_key=text))
