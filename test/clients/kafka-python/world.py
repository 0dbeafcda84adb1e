"""The addresses of the server, and helpers."""

import os
import uuid

stream = os.environ["FRESHET_STREAM"]
secured = os.environ["FRESHET_STREAM_TLS"]
authority = os.environ["FRESHET_CA"]
url = os.environ["FRESHET_SERVER"]
token = os.environ["FRESHET_TOKEN"]
avro_topic = os.environ["FRESHET_AVRO_TOPIC"]  # three orders, written by a Go program
orders = [{"id": i, "note": f"order {i}"} for i in range(3)]


def unique(prefix):
    return f"python-{prefix}-{uuid.uuid4().hex[:8]}"


def same(what, got, want):
    assert got == want, f"{what}: got {got!r}, want {want!r}"
