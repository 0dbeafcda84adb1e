"""The errors of the client."""

from __future__ import annotations

import json
from typing import Mapping


class FreshetError(Exception):
    """The base class of all errors of this package."""


class Unavailable(FreshetError):
    """The server did not respond, even after retries."""


class ServerError(FreshetError):
    """The server returned an error.

    status is the HTTP status, reason the server's text, request_id identifies the call in
    the server's log, and retry_after is the number of seconds that the server asks to wait.
    """

    def __init__(self, status: int, reason: str, request_id: str = "", retry_after: float = 0.0):
        super().__init__(f"{reason} (status {status}{', request id ' + request_id if request_id else ''})")
        self.status, self.reason, self.request_id, self.retry_after = status, reason, request_id, retry_after

    @classmethod
    def from_response(cls, status: int, headers: Mapping[str, str], body: bytes) -> ServerError:
        """Reads the reason from an error response, which a proxy may have sent."""
        text = body.decode(errors="replace").strip()
        try:
            error = json.loads(text)
            text = error.get("reason") or error.get("error_description") or error.get("message") or text
        except (ValueError, AttributeError):
            text = text[:1024]
        wait = headers.get("Retry-After", "")
        return cls(status, text or f"server responded {status}", headers.get("X-Request-Id", ""),
                   float(wait) if wait.isdigit() else 0.0)
