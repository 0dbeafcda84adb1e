"""Reads several topics with one consumer of each client, and writes the records to files. The Go tests
check that every record belongs to the partition that the client reports (package origins)."""

import asyncio
import os
import sys
import threading

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer
from kafka import KafkaConsumer

topics = os.environ["FRESHET_ORIGIN_TOPICS"].split(",")
records = int(os.environ["FRESHET_ORIGIN_RECORDS"])
stream, password = os.environ["FRESHET_STREAM"], "token:" + os.environ["FRESHET_TOKEN"]
login = dict(
    bootstrap_servers=stream, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
    sasl_plain_username="user", sasl_plain_password=password, auto_offset_reset="earliest", enable_auto_commit=False,
)
idle = 15  # timeout in seconds for the next record


def limits(response, partition):
    return dict(fetch_max_bytes=response, max_partition_fetch_bytes=partition)


configurations = {"default": {}, "small": limits(300_000, 100_000), "medium": limits(10_000_000, 250_000)}


class Output:
    def __init__(self, name):
        self.file, self.left = open(os.path.join(os.environ["FRESHET_ORIGIN_OUTPUT"], name), "wb"), records

    def write(self, topic, partition, offset, value):
        self.file.write(b"%s %d %d %d\n%s\n" % (topic.encode(), partition, offset, len(value), value))
        self.left -= 1

    def close(self):
        self.file.close()
        if self.left:
            raise RuntimeError(f"{self.file.name}: {self.left} records are missing")


def librdkafka(out, group, more):
    config = {k.replace("_", "."): v for k, v in more.items()}
    if more:  # librdkafka raises the response limit to the message limit
        config["message.max.bytes"] = more["fetch_max_bytes"]
    consumer = Consumer(config | {
        "bootstrap.servers": stream, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
        "sasl.username": "user", "sasl.password": password,
        "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })
    consumer.subscribe(topics)
    while out.left:
        messages = consumer.consume(min(out.left, 500), idle)
        for m in messages:
            if m.error() is None:
                out.write(m.topic(), m.partition(), m.offset(), m.value())
        if not messages:
            break
    consumer.close()


def kafka_python(out, group, more):
    # Its CRC check is written in Python and takes most of the time, so only one consumer runs it.
    limited = dict(more, consumer_timeout_ms=idle * 1000, check_crcs=not more)
    consumer = KafkaConsumer(*topics, group_id=group, **login, **limited)
    for r in consumer:
        out.write(r.topic, r.partition, r.offset, r.value)
        if not out.left:
            break
    consumer.close()


def aiokafka(out, group, more):
    async def read():
        consumer = AIOKafkaConsumer(*topics, group_id=group, **login, **more)
        await consumer.start()
        try:
            while out.left:
                found = await consumer.getmany(timeout_ms=idle * 1000, max_records=out.left)
                for r in (r for batch in found.values() for r in batch):
                    out.write(r.topic, r.partition, r.offset, r.value)
                if not found:
                    break
        finally:
            await consumer.stop()

    asyncio.run(read())


def run(client, read):
    for name, more in configurations.items():
        out = Output(f"{client}-{name}")
        try:
            read(out, f"{topics[0]}-{client}-{name}", more)
        finally:
            out.close()


failed = []
threading.excepthook = lambda args: failed.append(args.exc_value)
threads = [threading.Thread(target=run, args=each) for each in (
    ("confluent-kafka", librdkafka), ("kafka-python", kafka_python), ("aiokafka", aiokafka),
)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if failed:
    sys.exit("\n".join(map(repr, failed)))
