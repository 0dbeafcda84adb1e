"""Received messages, their leases, and the loop that handles them."""

from __future__ import annotations

import base64
import logging
import threading
from typing import Any, Callable, Dict, List, Optional

from .errors import FreshetError, ServerError

log = logging.getLogger("freshet_client")


class Message:
    """A message that is leased to this caller. Acknowledge it, or return it with nack."""

    def __init__(self, call: Callable[..., Any], path: str, received: Dict[str, Any], lease: float):
        self._call, self._path, self._lease = call, path, lease
        self.value: bytes = base64.b64decode(received["payload"])
        self.message_id: str = received["messageId"]
        self.string_id: str = received["messageStringId"]
        self.redeliveries: int = received["redeliveryCount"]
        self.key: Optional[str] = received.get("key")
        self.properties: Dict[str, str] = received.get("properties", {})

    def ack(self) -> None:
        """Acknowledges the message. The server accepts this also after the lease has ended."""
        self._call("PUT", self._path + "/messages", [self.message_id], True)

    def nack(self, delay: float = 0.0) -> None:
        """Returns the message: the server delivers it again after delay seconds."""
        body = {"messageId": self.message_id, "delayMillis": int(delay * 1000)}
        try:
            self._call("POST", self._path + "/message/nack", body, True)
        except ServerError as e:
            if e.status != 409:  # 409: the lease has ended, so the server delivers the message again anyway
                raise

    def extend(self) -> None:
        """Starts the lease again. A ServerError with status 409 means that it had ended."""
        body = {"messageId": self.message_id, "ackTimeoutMillis": int(self._lease * 1000)}
        self._call("POST", self._path + "/message/extend", body, True)

    def held(self) -> Lease:
        """Returns a context manager that extends the lease until its block ends."""
        return Lease(self, self._lease)


class Lease:
    """Extends the lease of a message until the block ends; lost is set if that fails."""

    def __init__(self, message: Message, seconds: float):
        self.lost, self._over = threading.Event(), threading.Event()
        self._message, self._seconds = message, seconds
        self._thread = threading.Thread(target=self._extend, daemon=True)

    def _extend(self) -> None:
        while not self._over.wait(self._seconds / 3):
            try:
                self._message.extend()
            except FreshetError:
                # Another consumer may receive the message now: stop, or acknowledge if the work is done.
                self.lost.set()
                return

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def consume(receive: Callable[..., List[Message]], topic: str, subscription: str,
            handle: Callable[[Message, threading.Event], Optional[bool]], lease: float) -> None:
    """Is Client.consume."""
    while True:
        # One at a time: the lease of a message that waits here would have to be extended, too.
        for message in receive(topic, subscription, max_messages=1, lease=lease):
            try:
                with message.held() as held:
                    more = handle(message, held.lost)
            except Exception as e:  # pylint: disable=broad-except # the handler failed
                log.warning("message %s is returned: %s", message.string_id, e)
                message.nack(min(60.0, 2.0 ** message.redeliveries))
                continue
            message.ack()
            if more is False:
                return
