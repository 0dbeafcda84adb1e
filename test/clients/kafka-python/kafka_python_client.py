"""kafka-python: producing with every codec, consuming with a consumer group, seeking by
time, administration, both SASL mechanisms, and messages that a Go program wrote."""

import io
import json
import ssl

import fastavro
import requests
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError
from kafka.net.sasl.oauth import AbstractTokenProvider

from world import authority, avro_topic, orders, same, secured, stream, token, unique, url

login = dict(
    bootstrap_servers=stream, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
    sasl_plain_username="user", sasl_plain_password="token:" + token,
)


class Bearer(AbstractTokenProvider):
    def token(self):
        return token


def avro(value):
    """Decodes a value in the format of the registry's serializers."""
    same("first byte", value[0], 0)
    response = requests.get(f"{url}/schemas/ids/{int.from_bytes(value[1:5], 'big')}", auth=("user", token))
    schema = fastavro.parse_schema(json.loads(response.json()["schema"]))
    return fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)


def consume(*topics, group, n, **more):
    consumer = KafkaConsumer(
        *topics, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=20000,
        **login, **more,
    )
    got = []
    for record in consumer:
        got.append(record)
        if len(got) == n:
            break
    consumer.commit()
    consumer.close()
    same(f"records of {topics} for {group}", len(got), n)
    return got


admin = KafkaAdminClient(**login)
got = consume(avro_topic, group=unique("avro"), n=3, value_deserializer=avro)
same("orders", sorted((r.value for r in got), key=lambda o: o["id"]), orders)

for codec in (None, "gzip", "snappy", "lz4", "zstd"):
    topic = unique(codec or "none")
    admin.create_topics([NewTopic(name=topic, num_partitions=1, replication_factor=1)])
    producer = KafkaProducer(compression_type=codec, linger_ms=20, **login)
    sent = [
        producer.send(topic, key=b"k", value=b"x" * i, headers=[("h", b"\xff")], timestamp_ms=1000 + i)
        for i in range(50)
    ]
    producer.send(topic, key=b"gone", value=None)
    producer.flush()
    same("offsets", [s.get(10).offset for s in sent], list(range(50)))
    producer.close()
    got = consume(topic, group=topic, n=30) + consume(topic, group=topic, n=21)
    same("values", [r.value for r in got], [b"x" * i for i in range(50)] + [None])
    want = [(1000 + i, [("h", b"\xff")]) for i in range(50)]
    same("timestamps and headers", [(r.timestamp, r.headers) for r in got[:50]], want)

try:
    admin.create_topics([NewTopic(name=topic, num_partitions=1, replication_factor=1)])
    raise AssertionError("a topic was created twice")
except TopicAlreadyExistsError:
    pass

reader = KafkaConsumer(**login)
partition = TopicPartition(topic, 0)
reader.assign([partition])
same("offset at a time", reader.offsets_for_times({partition: 1020})[partition].offset, 20)
ends = (reader.beginning_offsets([partition]), reader.end_offsets([partition]))
same("ends", ends, ({partition: 0}, {partition: 51}))
reader.seek(partition, 45)
same("after seeking", next(reader).offset, 45)
reader.close()

for config in (
    dict(sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Bearer()),
    dict(bootstrap_servers=secured, security_protocol="SASL_SSL", ssl_cafile=authority),
):
    client = KafkaConsumer(**(login | config))
    same("topic", topic in client.topics(), True)
    client.close()
admin.delete_topics([topic])
admin.close()
