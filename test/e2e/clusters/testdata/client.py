"""A client without DNS: produce, consume, and the calls of a registry client."""

import json
import os
import urllib.parse
import urllib.request


def call(method, url, body=None, kind="application/json"):
    request = urllib.request.Request(url, body, method=method)
    request.add_header("Authorization", "Bearer " + os.environ["TOKEN"])
    request.add_header("Content-Type", kind)
    with urllib.request.urlopen(request, timeout=20) as response:
        return response.read()


messages, admin, registry = (os.environ[name] for name in ("MESSAGES", "ADMIN", "REGISTRY"))

call("PUT", admin + "/persistent/public/default/python/subscription/me")
call("POST", messages + "/public/default/python/message", b"hello", "application/octet-stream")
got = call("POST", messages + "/public/default/python/me/message")
assert got == b"hello", f"got {got!r}, want the message"

subject = urllib.parse.quote("persistent://public/default/python", safe="")
kind = "application/vnd.schemaregistry.v1+json"
made = json.loads(call("POST", f"{registry}/subjects/{subject}/versions", json.dumps({"schema": '"long"'}).encode(), kind))
got = json.loads(call("GET", f"{registry}/schemas/ids/{made['id']}"))
assert got["schema"] == '"long"', f"got {got}, want the schema"
got = json.loads(call("GET", f"{registry}/subjects/{subject}/versions"))
assert got == [1], f"got versions {got}, want [1]"
