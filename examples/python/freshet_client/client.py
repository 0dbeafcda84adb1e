"""The client: connecting, producing, and the calls on subscriptions."""

from __future__ import annotations

import base64
import json
import os
import secrets
from dataclasses import dataclass
from typing import Any, Callable, List, Mapping, Optional
from urllib.parse import quote

from .connection import Connection, FixedToken, Tokens
from .consuming import Message, consume
from .errors import FreshetError, ServerError

MESSAGES = "/admin/rest/topics/v1/"
ADMIN = "/admin/v2/persistent/"
DEFAULT_AUDIENCE = "urn:vendor:messaging:default:default"


@dataclass(frozen=True)
class Produced:
    """A stored message. duplicate is true if the topic already had a message with its idempotency key."""

    message_id: str
    string_id: str
    duplicate: bool


class Client:
    """A client of one server and one of its clusters. Threads can share it.

    Pass an api_key, or the credentials of a service account and the audience of its tokens
    (organization and instance). ca is the PEM text of the server's certificate authority.
    """

    def __init__(self, url: str, *, api_key: str = "", credentials: Optional[Mapping[str, str]] = None,
                 audience: str = DEFAULT_AUDIENCE, organization: str = "", cluster: str = "", ca: str = ""):
        if bool(organization) != bool(cluster):
            raise FreshetError("a cluster needs both organization and cluster")
        self._connection = Connection(url, ca)
        self._prefix = f"/clusters/{quote(organization, safe='')}/{quote(cluster, safe='')}" if cluster else ""
        if api_key:
            self._connection.tokens = FixedToken(api_key)
        elif credentials is not None:
            self._connection.tokens = Tokens(self._connection, credentials, audience)

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Client:
        """Returns a client for the variables that `freshet apikey create --env-file` writes.

        FRESHET_SERVER (http://127.0.0.1:8080), FRESHET_ORGANIZATION and FRESHET_CLUSTER (the
        default cluster), FRESHET_CA_DATA (in base64), and FRESHET_API_KEY or
        FRESHET_CREDENTIALS_FILE (freshet-data/admin.json) with FRESHET_AUDIENCE.
        """
        credentials = None
        if not env.get("FRESHET_API_KEY"):
            name = env.get("FRESHET_CREDENTIALS_FILE", "freshet-data/admin.json")
            try:
                with open(name, encoding="utf-8") as file:
                    credentials = json.load(file)
            except (OSError, ValueError) as e:
                raise FreshetError(
                    f"no FRESHET_API_KEY is set, and the credentials file cannot be read: {e}") from e
        cluster = env.get("FRESHET_CLUSTER", "")
        return cls(
            env.get("FRESHET_SERVER", "http://127.0.0.1:8080"), api_key=env.get("FRESHET_API_KEY", ""),
            credentials=credentials, audience=env.get("FRESHET_AUDIENCE", DEFAULT_AUDIENCE),
            organization=env.get("FRESHET_ORGANIZATION", "") if cluster else "", cluster=cluster,
            ca=base64.b64decode(env.get("FRESHET_CA_DATA", "")).decode())

    def produce(self, topic: str, value: bytes, *, key: Optional[str] = None,
                properties: Optional[Mapping[str, str]] = None, idempotency_key: str = "") -> Produced:
        """Sends one message and returns when the server has stored it.

        To retry after an error without a duplicate, pass an idempotency_key and use it again.
        """
        return self.produce_batch(topic, [value], key=key, properties=properties,
                                  idempotency_keys=[idempotency_key or secrets.token_hex(16)])[0]

    def produce_batch(self, topic: str, values: List[bytes], *, key: Optional[str] = None,
                      properties: Optional[Mapping[str, str]] = None,
                      idempotency_keys: Optional[List[str]] = None) -> List[Produced]:
        """Sends up to 1,000 messages with the same key and properties in one call.

        Raises the error of the first message that was not stored.
        """
        keys = idempotency_keys or [secrets.token_hex(16) for _ in values]
        if len(keys) != len(values):
            raise FreshetError(f"got {len(keys)} idempotency keys for {len(values)} messages")
        metadata = {name: value for name, value in (("key", key), ("properties", properties)) if value is not None}
        messages = [{"payload": base64.b64encode(value).decode(), "idempotencyKey": idempotency_key, **metadata}
                    for value, idempotency_key in zip(values, keys)]
        response = self._call("POST", MESSAGES + _topic(topic) + "/messages", {"messages": messages}, True)
        results = response["results"]
        if len(results) != len(values):
            raise FreshetError(f"server returned {len(results)} results for {len(values)} messages")
        for result in results:
            if result["status"] >= 300:
                raise ServerError(result["status"], result.get("reason", ""))
        return [Produced(r["messageId"], r["messageStringId"], r.get("duplicate", False))
                for r in results]

    def create_subscription(self, topic: str, subscription: str, *, earliest: bool = False) -> bool:
        """Creates a subscription, and its topic if necessary. Returns False if it exists."""
        path = f"{ADMIN}{_topic(topic)}/subscription/{quote(subscription, safe='')}"
        try:
            self._call("PUT", path, "earliest" if earliest else "latest", False)
        except ServerError as e:
            if e.status != 409:
                raise
            return False
        return True

    def receive(self, topic: str, subscription: str, *, max_messages: int = 1, wait: float = 20.0,
                lease: float = 30.0) -> List[Message]:
        """Leases up to max_messages to this caller, for lease seconds; waits for the first one.

        Returns an empty list if no message arrived in time.
        """
        path = f"{MESSAGES}{_topic(topic)}/{quote(subscription, safe='')}"
        response = self._call("POST", path + "/messages", {
            "maxMessages": max_messages, "timeoutMillis": int(wait * 1000),
            "ackTimeoutMillis": int(lease * 1000)}, True)
        return [Message(self._call, path, m, lease) for m in (response or {}).get("messages", [])]

    def consume(self, topic: str, subscription: str, handle: Callable[[Message, Any], Optional[bool]], *,
                lease: float = 30.0) -> None:
        """Calls handle(message, lost) for each message, until it returns False.

        The lease is extended while the handler runs; if that fails, the event lost is set. When
        the handler returns, the message is acknowledged. When it raises an exception, the server
        delivers the message again after a delay that doubles each time, up to a minute.
        """
        consume(self.receive, topic, subscription, handle, lease)

    def _call(self, method: str, path: str, body: Any, idempotent: bool) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        return self._connection.call(
            method, self._prefix + path, json.dumps(body).encode(), headers, idempotent).json()


def _topic(name: str) -> str:
    """Returns the path of a topic, from topic or tenant/namespace/topic."""
    parts = name.split("/")
    if len(parts) == 1:
        parts = ["public", "default", *parts]
    if len(parts) != 3 or not all(parts):
        raise FreshetError(f"{name!r} is not the name of a topic: topic or tenant/namespace/topic")
    return "/".join(quote(part, safe="") for part in parts)
