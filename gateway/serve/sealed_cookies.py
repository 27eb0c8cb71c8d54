"""Cookies that hold something between two steps of a browser, which only the host can read.

With a key of the host any replica can read what another one has set; without one they are for this
process alone.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from gateway.options import Options
from gateway.storage.host_key import decrypt, encrypt, host_keys


class SealedCookie:
    """One such cookie; it is Lax, since another site sends the browser back.

    Args:
        name: Its name; the prefix ``__Host-`` keeps sites beside ours from setting it.
        options: Have the key of the host, if there is one.
        life_s: How long it lasts.
    """

    def __init__(self, name: str, options: Options, life_s: float) -> None:
        self._base_name, self._life_s = name, int(life_s)
        self._keys = host_keys(options, "cookies") or (secrets.token_bytes(32),)

    def set(self, response: Response, content: object, *, secure: bool) -> None:
        """Let *response* set it to *content*, which is JSON."""
        text = json.dumps(content, ensure_ascii=False)
        name = self._name(secure=secure)
        # Without the prefix, where a site beside ours could put it, it cannot be decrypted.
        value = encrypt(self._keys, text, place=name).hex()
        response.set_cookie(name, value, self._life_s, secure=secure, httponly=True, samesite="lax")

    def get(self, request: Request, *, secure: bool) -> Any:
        """Return what *request* brings in it; None without it, or if it is not ours."""
        name = self._name(secure=secure)
        try:
            sealed = bytes.fromhex(request.cookies.get(name, ""))
        except ValueError:
            return None
        text = decrypt(self._keys, sealed, place=name)
        return json.loads(text) if text else None

    def delete(self, response: Response, *, secure: bool) -> None:
        """Let *response* delete it."""
        name = self._name(secure=secure)
        response.delete_cookie(name, secure=secure, httponly=True, samesite="lax")

    def _name(self, *, secure: bool) -> str:
        return f"__Host-{self._base_name}" if secure else self._base_name
