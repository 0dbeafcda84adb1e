"""A small client of the Freshet message API, with the standard library only.

A Client calls one server and one of its clusters. It retries calls after transient errors,
renews access tokens, and sends each message with an idempotency key, so that a retry does not
store the message twice. Delivery is at least once: make handlers idempotent.

    from freshet_client import Client

    client = Client.from_environment()
    client.create_subscription("orders", "billing")
    client.produce("orders", b"one order", key="customer-7")
    client.consume("orders", "billing", lambda message, lost: print(message.value))

Names of topics are ``topic`` (in public/default) or ``tenant/namespace/topic``.
"""

from .client import Client, Produced
from .consuming import Lease, Message
from .errors import FreshetError, ServerError, Unavailable

__all__ = ["Client", "FreshetError", "Lease", "Message", "Produced", "ServerError", "Unavailable"]
