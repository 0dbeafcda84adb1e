#!/usr/bin/env python3
"""Consume the messages of a subscription with the Python standard library only.

The loop receives messages, extends their leases while the handler runs,
acknowledges a message when the handler succeeds and returns it (nack) when the
handler fails. Calls are retried after transient errors and access tokens are
renewed. Delivery is at least once: make handlers idempotent.

    FRESHET_SERVER            base URL of the server     (http://127.0.0.1:8080)
    FRESHET_ORGANIZATION, FRESHET_CLUSTER
                              the cluster                (the default cluster)
    FRESHET_CA_DATA           certificate authority of the server, in base64
    FRESHET_API_KEY           an API key; without one:
    FRESHET_CREDENTIALS_FILE  service account file       (freshet-data/admin.json)
    FRESHET_AUDIENCE          audience of the tokens: organization and instance
                              (urn:vendor:messaging:default:default)
    LEASE                     lease in seconds; when a consumer dies, its messages
                              are redelivered after this time (30)

    python3 consume.py TOPIC SUBSCRIPTION [COUNT]

'freshet apikey create --env-file' writes these variables.
"""

import base64
import json
import os
import random
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    """The server returned an error."""

    def __init__(self, status, reason):
        super().__init__(f"{reason} (status {status})")
        self.status = status


class Client:
    """Calls a server as a service account. Safe for use by several threads."""

    def __init__(self, url, credentials, audience, api_key="", cluster="", ca=None):
        self.url, self.credentials, self.audience = url.rstrip("/"), credentials, audience
        self.api_key, self.cluster = api_key, cluster  # cluster is the path of the cluster
        self.tls = ssl.create_default_context(cadata=ca) if ca else None
        self.lock, self.token, self.renew_at = threading.Lock(), "", 0.0

    def bearer(self, refused=None):
        """Returns an access token, and requests a new one shortly before expiry or after a refusal."""
        if self.api_key:
            return self.api_key
        with self.lock:
            if time.time() < self.renew_at and self.token != refused:
                return self.token
            form = urllib.parse.urlencode({
                "grant_type": "client_credentials", "audience": self.audience,
                "client_id": self.credentials["client_id"], "client_secret": self.credentials["client_secret"]})
            response = json.loads(self.send("POST", "/oauth/token", form.encode(), {}))
            life = response["expires_in"]
            self.token, self.renew_at = response["access_token"], time.time() + life - min(60, life / 10)
            return self.token

    def call(self, method, path, body):
        """Makes an idempotent call, with retries. Returns None if the response has no body."""
        token = self.bearer()
        for attempt in range(8):
            try:
                headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
                response = self.send(method, self.cluster + path, json.dumps(body).encode(), headers)
                return json.loads(response) if response else None
            except Refused as e:
                if e.status == 401 and attempt == 0:
                    token = self.bearer(refused=token)
                elif e.status not in (429, 502, 503, 504) or attempt == 7:
                    raise
            except OSError:  # connection failed or was closed
                if attempt == 7:
                    raise
            # Exponential backoff with 50 % jitter, so that callers that failed at the same
            # time do not retry at the same time.
            time.sleep(min(5, 0.1 * 2**attempt) * random.uniform(0.5, 1))

    def send(self, method, path, body, headers):
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.tls) as response:
                return response.read()
        except urllib.error.HTTPError as e:
            with e:
                text = e.read().decode(errors="replace")
            try:
                error = json.loads(text)
                text = error.get("reason") or error.get("error_description") or text
            except (ValueError, AttributeError):
                pass
            raise Refused(e.code, text) from None


class Lease:
    """Extends the lease of a message until the block ends; lost is set if extending fails."""

    def __init__(self, client, path, message_id, seconds):
        self.lost, self.over = threading.Event(), threading.Event()
        body = {"messageId": message_id, "ackTimeoutMillis": int(seconds * 1000)}
        self.thread = threading.Thread(target=self.extend, args=(client, path, body, seconds), daemon=True)

    def extend(self, client, path, body, seconds):
        while not self.over.wait(seconds / 3):
            try:
                client.call("POST", path + "/message/extend", body)
            except (Refused, OSError):
                # Another consumer may receive the message now: stop, or acknowledge if the work is done.
                self.lost.set()
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def consume(client, topic, subscription, handle, lease=30.0):
    """Calls handle(value, message, lost) for each message until it returns False."""
    names = tuple(urllib.parse.quote(p, safe="") for p in (topic, subscription))
    path = "/admin/rest/topics/v1/public/default/%s/%s" % names
    while True:
        # One at a time: the lease of a message that waits here would have to be extended, too.
        response = client.call("POST", path + "/messages", {
            "maxMessages": 1, "timeoutMillis": 20_000, "ackTimeoutMillis": int(lease * 1000)})
        for message in (response or {}).get("messages", []):
            message_id, more = message["messageId"], True
            try:
                with Lease(client, path, message_id, lease) as held:
                    more = handle(base64.b64decode(message["payload"]), message, held.lost)
            except Exception as e:  # the handler failed: redeliver the message after a delay
                print(f"{message['messageStringId']}: {e}", file=sys.stderr)
                try:
                    delay = min(60_000, 1000 * 2 ** message["redeliveryCount"])
                    client.call("POST", path + "/message/nack", {"messageId": message_id, "delayMillis": delay})
                except Refused as refused:
                    if refused.status != 409:  # 409: the lease expired, so the message is redelivered anyway
                        raise
            else:
                client.call("PUT", path + "/messages", [message_id])
            if not more:
                return


def main():
    topic, subscription = sys.argv[1:3]
    left = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    env = os.environ
    credentials, cluster = None, ""
    if "FRESHET_API_KEY" not in env:
        with open(env.get("FRESHET_CREDENTIALS_FILE", "freshet-data/admin.json"), encoding="utf-8") as file:
            credentials = json.load(file)
    if "FRESHET_CLUSTER" in env:
        cluster = "/clusters/" + env["FRESHET_ORGANIZATION"] + "/" + env["FRESHET_CLUSTER"]
    client = Client(
        env.get("FRESHET_SERVER", "http://127.0.0.1:8080"), credentials,
        env.get("FRESHET_AUDIENCE", "urn:vendor:messaging:default:default"), env.get("FRESHET_API_KEY", ""), cluster,
        base64.b64decode(env.get("FRESHET_CA_DATA", "")).decode())

    # The handler of this example: a job is JSON, takes some seconds, and may fail on its
    # first deliveries.
    def handle(value, message, lost):
        nonlocal left
        job = json.loads(value)
        if lost.wait(job.get("seconds", 0)):
            raise RuntimeError("lease lost")
        if message["redeliveryCount"] < job.get("failures", 0):
            raise RuntimeError("job failed")
        print(job["name"], flush=True)
        left -= 1
        return left != 0

    consume(client, topic, subscription, handle, float(os.environ.get("LEASE", "30")))


if __name__ == "__main__":
    main()
