#!/usr/bin/env python3
"""Consume jobs with the package freshet_client, which is in the folder of this file.

    python3 consume.py TOPIC SUBSCRIPTION [COUNT]

The variables that 'freshet apikey create --env-file' writes select the server; see
Client.from_environment. LEASE is the lease in seconds (30): when a consumer dies, the server
delivers its messages again after this time.
"""

import json
import logging
import os
import sys

from freshet_client import Client


def main():
    topic, subscription = sys.argv[1:3]
    left = int(sys.argv[3]) if len(sys.argv) > 3 else -1

    # The handler of this example: a job is JSON, takes some seconds, and may fail on its
    # first deliveries.
    def handle(message, lost):
        nonlocal left
        job = json.loads(message.value)
        if lost.wait(job.get("seconds", 0)):
            raise RuntimeError("lease lost")
        if message.redeliveries < job.get("failures", 0):
            raise RuntimeError("job failed")
        print(job["name"], flush=True)
        left -= 1
        return left != 0

    logging.basicConfig()
    Client.from_environment().consume(topic, subscription, handle, lease=float(os.environ.get("LEASE", "30")))


if __name__ == "__main__":
    main()
