"""aiokafka: idempotent producing, consuming with a consumer group, and messages that a
Go program wrote."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from world import avro_topic, same, stream, token, unique

login = dict(
    bootstrap_servers=stream, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
    sasl_plain_username="user", sasl_plain_password="token:" + token,
)


async def read(topic, group, n):
    consumer = AIOKafkaConsumer(topic, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, **login)
    await consumer.start()
    try:
        got = [await asyncio.wait_for(consumer.getone(), 30) for _ in range(n)]
        await consumer.commit()
        return got
    finally:
        await consumer.stop()


async def main():
    admin = AIOKafkaAdminClient(**login)
    await admin.start()
    topic = unique("aio")
    await admin.create_topics([NewTopic(topic, 1, 1)])
    producer = AIOKafkaProducer(enable_idempotence=True, compression_type="gzip", **login)
    await producer.start()
    for i in range(20):
        same("offset", (await producer.send_and_wait(topic, b"%d" % i, key=b"k")).offset, i)
    await producer.stop()
    got = await read(topic, topic, 12) + await read(topic, topic, 8)
    same("values", [r.value for r in got], [b"%d" % i for i in range(20)])
    keys = sorted(r.key for r in await read(avro_topic, unique("avro"), 3))
    same("messages that Go wrote", keys, [b"customer-%d" % i for i in range(3)])
    await admin.delete_topics([topic])
    await admin.close()


asyncio.run(main())
