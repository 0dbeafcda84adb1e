#!/usr/bin/env python3
"""Consume messages of a subscription, with nothing but the standard library.

The loop receives messages, extends their leases while it works on them,
acknowledges what succeeded and gives back what failed. Calls that failed for a
passing reason are repeated, access tokens are renewed. Every message comes at least
once: what is done with it should bear being done twice.

    FRESHET_URL               where the server is        (http://127.0.0.1:8080)
    FRESHET_CREDENTIALS_FILE  a service account's        (freshet-data/admin.json)
    FRESHET_AUDIENCE          what tokens are for: organization and instance
                              (urn:vendor:messaging:default:default)
    LEASE                     seconds; who dies gives its messages back after them (30)

    python3 consume.py TOPIC SUBSCRIPTION [COUNT]
"""

import base64
import json
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    """The server's answer was an error."""

    def __init__(self, status, reason):
        super().__init__(f"{reason} (status {status})")
        self.status = status


class Client:
    """Calls a server as a service account. It may be used by several threads."""

    def __init__(self, url, credentials, audience):
        self.url, self.credentials, self.audience = url.rstrip("/"), credentials, audience
        self.lock, self.token, self.renew_at = threading.Lock(), "", 0.0

    def bearer(self, refused=None):
        """An access token: the one there is until it is nearly over or was refused."""
        with self.lock:
            if time.time() < self.renew_at and self.token != refused:
                return self.token
            form = urllib.parse.urlencode({
                "grant_type": "client_credentials", "audience": self.audience,
                "client_id": self.credentials["client_id"], "client_secret": self.credentials["client_secret"]})
            answer = json.loads(self.send("POST", "/oauth/token", form.encode(), {}))
            life = answer["expires_in"]
            self.token, self.renew_at = answer["access_token"], time.time() + life - min(60, life / 10)
            return self.token

    def call(self, method, path, body):
        """Makes a call that bears being made twice. The answer is None where there is none."""
        token = self.bearer()
        for attempt in range(8):
            try:
                headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
                answer = self.send(method, path, json.dumps(body).encode(), headers)
                return json.loads(answer) if answer else None
            except Refused as e:
                if e.status == 401 and attempt == 0:
                    token = self.bearer(refused=token)
                elif e.status not in (429, 502, 503, 504) or attempt == 7:
                    raise
            except OSError:  # no connection, or it broke
                if attempt == 7:
                    raise
            # Longer every time, and half of it by chance, so that callers who
            # failed together do not come back together.
            time.sleep(min(5, 0.1 * 2**attempt) * random.uniform(0.5, 1))

    def send(self, method, path, body, headers):
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.read()
        except urllib.error.HTTPError as e:
            with e:
                text = e.read().decode(errors="replace")
            try:
                answer = json.loads(text)
                text = answer.get("reason") or answer.get("error_description") or text
            except (ValueError, AttributeError):
                pass
            raise Refused(e.code, text) from None


class Lease:
    """Keeps a message while it is worked on; lost is set when that did not succeed."""

    def __init__(self, client, path, message_id, seconds):
        self.lost, self.over = threading.Event(), threading.Event()
        body = {"messageId": message_id, "ackTimeoutMillis": int(seconds * 1000)}
        self.thread = threading.Thread(target=self.keep, args=(client, path, body, seconds), daemon=True)

    def keep(self, client, path, body, seconds):
        while not self.over.wait(seconds / 3):
            try:
                client.call("POST", path + "/message/extend", body)
            except (Refused, OSError):
                self.lost.set()  # somebody else may have it: stop, or acknowledge it if the work is done
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def consume(client, topic, subscription, handle, lease=30.0):
    """Calls handle(value, message, lost) for each message until it returns False."""
    path = "/admin/rest/topics/v1/public/default/%s/%s" % tuple(urllib.parse.quote(p, safe="") for p in (topic, subscription))
    while True:
        # One at a time: a message that waits here would need its lease extended, too.
        answer = client.call("POST", path + "/messages", {
            "maxMessages": 1, "timeoutMillis": 20_000, "ackTimeoutMillis": int(lease * 1000)})
        for message in (answer or {}).get("messages", []):
            message_id, go_on = message["messageId"], True
            try:
                with Lease(client, path, message_id, lease) as held:
                    go_on = handle(base64.b64decode(message["payload"]), message, held.lost)
            except Exception as e:  # the handler's: the message comes again, a little later
                print(f"{message['messageStringId']}: {e}", file=sys.stderr)
                try:
                    delay = min(60_000, 1000 * 2 ** message["redeliveryCount"])
                    client.call("POST", path + "/message/nack", {"messageId": message_id, "delayMillis": delay})
                except Refused as refused:
                    if refused.status != 409:  # the lease had ended: it comes again anyway
                        raise
            else:
                client.call("PUT", path + "/messages", [message_id])
            if not go_on:
                return


def main():
    topic, subscription = sys.argv[1:3]
    left = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    with open(os.environ.get("FRESHET_CREDENTIALS_FILE", "freshet-data/admin.json"), encoding="utf-8") as file:
        credentials = json.load(file)
    client = Client(
        os.environ.get("FRESHET_URL", "http://127.0.0.1:8080"), credentials,
        os.environ.get("FRESHET_AUDIENCE", "urn:vendor:messaging:default:default"))

    # The work of this example: a job is JSON, takes some seconds, and may fail the
    # first time.
    def handle(value, message, lost):
        nonlocal left
        job = json.loads(value)
        if lost.wait(job.get("seconds", 0)):
            raise RuntimeError("somebody else has it")
        if message["redeliveryCount"] < job.get("failures", 0):
            raise RuntimeError("it did not succeed")
        print(job["name"], flush=True)
        left -= 1
        return left != 0

    consume(client, topic, subscription, handle, float(os.environ.get("LEASE", "30")))


if __name__ == "__main__":
    main()
