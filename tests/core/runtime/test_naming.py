"""Comparison of URIs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.naming import canonical_uri, matches_template, normalize_path

URI = st.from_regex(r"[a-z]{1,3}://[a-z]{0,3}(/[A-Za-z0-9._~é -]{0,4}){0,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        ("note://%73ecret", "note://secret"),
        ("NOTE://Shop/Secret", "note://shop/Secret"),
        ("note://Sh%6fp", "note://shop"),
        ("note://a/%2fb%3A", "note://a/%2Fb%3A"),
        ("note://a/caf%c3%a9%20%ff", "note://a/café %FF"),
        ("note://a/%2573", "note://a/%2573"),
        ("note://a/%E2%80%8B", "note://a/%E2%80%8B"),
        ("note://a/x/../b/./c", "note://a/b/c"),
        ("note://a/x/%2E%2e/b", "note://a/b"),
        ("note://a/b/..", "note://a/"),
        ("file:///../../b", "file:///b"),
        ("note:x/../b", "note:b"),
        ("..", ""),
        ("note://a/b?x=../c#../d", "note://a/b?x=../c#../d"),
        ("note://a/{x}/{y}", "note://a/{x}/{y}"),
        ("shop+NOTE://a", "shop+note://a"),
        ("", ""),
    ],
)
def test_equivalent_uris_have_one_canonical_form(uri: str, canonical: str) -> None:
    """Cases of RFC 3986, 6.2.2."""
    assert canonical == canonical_uri(uri)


@given(uri=URI, data=st.data())
def test_unnecessary_escapes_do_not_change_the_canonical_form(
    uri: str, data: st.DataObject
) -> None:
    start = uri.index("//") + 2
    escaped = uri[:start] + "".join(
        "".join(data.draw(st.sampled_from([f"%{byte:02x}", f"%{byte:02X}"])) for byte in raw)
        if char != "/" and data.draw(st.booleans())
        else char
        for char in uri[start:]
        for raw in [char.encode()]
    )

    assert canonical_uri(uri) == canonical_uri(escaped)
    assert canonical_uri(uri) == canonical_uri(canonical_uri(uri))
    assert matches_template(canonical_uri("X://{a}"), canonical_uri("x" + escaped[start - 3 :]))


def test_normalize_path_keeps_the_case_of_scheme_and_authority() -> None:
    """Patterns of a host must match as they are written."""
    assert "NOTE://Shop/b" == normalize_path("NOTE://Sh%6Fp/a/../b")
