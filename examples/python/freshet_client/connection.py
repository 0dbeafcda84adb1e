"""HTTP calls with retries, and access tokens."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Mapping, Optional, Union

from .errors import FreshetError, ServerError, Unavailable

ATTEMPTS = 8
TIMEOUT = 60.0  # seconds for one attempt
MAX_RESPONSE = 64 << 20
MAX_RETRY_AFTER = 30.0
AMBIGUOUS = (502, 503, 504)  # the server may have handled the call


class Response:
    """The response to a successful call."""

    def __init__(self, headers: Mapping[str, str], body: bytes):
        self.headers, self.body = headers, body

    def json(self) -> Any:
        """Returns the decoded body, or None if there is none."""
        if not self.body:
            return None
        try:
            return json.loads(self.body)
        except ValueError as e:
            raise FreshetError(f"server response is not the expected JSON: {e}") from e


class Tokens:
    """Requests access tokens with the credentials of a service account, and renews them.

    lock protects token and renew_at; it is held during a request, so that threads share one.
    """

    def __init__(self, connection: Connection, credentials: Mapping[str, str], audience: str):
        self.connection, self.audience = connection, audience
        try:
            self.client_id, self.secret = credentials["client_id"], credentials["client_secret"]
        except KeyError as e:
            raise FreshetError(f"credentials have no {e}") from e
        self.lock, self.token, self.renew_at = threading.Lock(), "", 0.0

    def bearer(self, rejected: Optional[str] = None) -> str:
        """Returns a token, and requests a new one shortly before expiry or after a rejection."""
        with self.lock:
            if time.monotonic() < self.renew_at and self.token != rejected:
                return self.token
            form = urllib.parse.urlencode({
                "grant_type": "client_credentials", "audience": self.audience,
                "client_id": self.client_id, "client_secret": self.secret})
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            grant = self.connection.retry(
                lambda: self.connection.send("POST", "/oauth/token", form.encode(), headers), True).json()
            life = float(grant["expires_in"])
            self.token, self.renew_at = grant["access_token"], time.monotonic() + life - min(60.0, life / 10)
            return self.token


class FixedToken:
    """An API key."""

    def __init__(self, value: str):
        self.value = value.strip()

    def bearer(self, rejected: Optional[str] = None) -> str:
        return self.value


class Connection:
    """Calls one server. Threads can share it."""

    def __init__(self, url: str, ca: Optional[str] = None):
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise FreshetError(f"{url!r} is not the URL of a server: it must start with http:// or https://")
        self.url = url.rstrip("/")
        self.tokens: Union[Tokens, FixedToken] = FixedToken("")
        # Redirects are not followed: they would send the token to another server.
        self.opener = urllib.request.build_opener(
            NoRedirects, urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=ca or None)))

    def call(self, method: str, path: str, body: Optional[bytes] = None,
             headers: Optional[Mapping[str, str]] = None, idempotent: bool = False) -> Response:
        """Makes a call, with retries. Only an idempotent call is repeated if the server may have handled it."""
        def attempt() -> Response:
            token = self.tokens.bearer()
            try:
                return self.send(method, path, body, {**(headers or {}), **authorization(token)})
            except ServerError as e:
                if e.status != 401:
                    raise
                renewed = self.tokens.bearer(rejected=token)
                if renewed == token:
                    raise
                return self.send(method, path, body, {**(headers or {}), **authorization(renewed)})

        return self.retry(attempt, idempotent or method == "GET")

    def retry(self, attempt: Any, idempotent: bool) -> Response:
        """Repeats attempt after transient errors, with exponential backoff and 50 % jitter."""
        number = 0
        while True:
            number += 1
            wait = min(5.0, 0.1 * 2 ** (number - 1)) * random.uniform(0.5, 1)
            try:
                return attempt()
            except ServerError as e:
                transient = e.status == 429 or (idempotent and e.status in AMBIGUOUS)
                if not transient or number == ATTEMPTS or e.retry_after > MAX_RETRY_AFTER:
                    raise
                wait = max(wait, e.retry_after)
            except (OSError, http.client.HTTPException) as e:
                cause = e.reason if isinstance(e, urllib.error.URLError) else e
                not_sent = isinstance(cause, ConnectionRefusedError)
                if not (idempotent or not_sent) or number == ATTEMPTS or isinstance(cause, ssl.SSLError):
                    raise Unavailable(f"server does not respond: {cause}") from e
            time.sleep(wait)

    def send(self, method: str, path: str, body: Optional[bytes], headers: Mapping[str, str]) -> Response:
        """Makes one attempt."""
        request = urllib.request.Request(self.url + path, body, dict(headers), method=method)
        try:
            with self.opener.open(request, timeout=TIMEOUT) as response:
                text = response.read(MAX_RESPONSE + 1)
                if len(text) > MAX_RESPONSE:
                    raise FreshetError(f"server response has more than {MAX_RESPONSE} bytes")
                return Response(response.headers, text)
        except urllib.error.HTTPError as e:
            with e:
                raise ServerError.from_response(e.code, e.headers, e.read(1 << 20)) from None


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error."""

    def redirect_request(self, *_: Any) -> None:
        return None


def authorization(token: str) -> Mapping[str, str]:
    return {"Authorization": "Bearer " + token} if token else {}
