"""confluent-kafka with its serializers: Avro, JSON Schema and Protobuf with the cluster's
own registry, consumer groups of both protocols, administration, both SASL mechanisms, and
messages that a Go program wrote."""

import os
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType,
)
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from world import authority, avro_topic, orders, same, secured, stream, token, unique, url

login = {
    "bootstrap.servers": stream, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
    "sasl.username": "public/default", "sasl.password": "token:" + token,
}
admin = AdminClient(login)
registry = SchemaRegistryClient({"url": url, "basic.auth.user.info": "user:" + token})


def create(prefix, partitions=1, **config):
    name = unique(prefix)
    settings = {k.replace("_", "."): v for k, v in config.items()}
    for done in admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values():
        done.result(10)
    return name


def send(topic, *values, **config):
    producer = Producer(login | {"enable.idempotence": True} | config)
    failed = []
    for value in values:
        producer.produce(topic, key=b"k", value=value, on_delivery=lambda e, m: e and failed.append(e))
    same("left in the queue", producer.flush(20), 0)
    same("failed deliveries", failed, [])


def read(topic, n, group, **config):
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(login | settings | config)
    consumer.subscribe([topic])
    messages, end = [], time.monotonic() + 40
    while len(messages) < n and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            messages.append(message)
    consumer.commit(asynchronous=False)
    consumer.close()
    same(f"messages of {topic} for {group}", len(messages), n)
    return messages


def test_go_wrote_avro():
    group = unique("avro")
    decode = AvroDeserializer(registry)
    got = [decode(m.value(), SerializationContext(avro_topic, MessageField.VALUE)) for m in read(avro_topic, 3, group)]
    same("orders", sorted(got, key=lambda o: o["id"]), orders)
    done = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    same("committed", sum(o.offset for o in done[group].result(10).topic_partitions), 3)


def protobuf_order():
    """Returns the class of a message, as the protobuf compiler would generate it."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_INT64, label=1)
    message.field.add(name="note", number=2, type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_serializers():
    avro = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}'
    json = (
        '{"title":"Order","type":"object",'
        '"properties":{"id":{"type":"integer"},"note":{"type":"string"}},"required":["id"]}'
    )
    order = {"id": 7, "note": "<&> €"}
    Order = protobuf_order()
    for name, to, back, value in (
        ("avro", AvroSerializer(registry, avro), AvroDeserializer(registry), order),
        ("json", JSONSerializer(json, registry), JSONDeserializer(None, schema_registry_client=registry), order),
        (
            "protobuf", ProtobufSerializer(Order, registry),
            ProtobufDeserializer(Order, schema_registry_client=registry), Order(id=7, note="x"),
        ),
    ):
        topic = create(name, kop_stream_value_schema_validation="true")
        context = SerializationContext(topic, MessageField.VALUE)
        send(topic, to(value, context))
        same(name, back(read(topic, 1, topic)[0].value(), context), value)
        try:
            send(topic, b"plain")
            raise RuntimeError(f"{name}: a value without a schema was accepted")
        except AssertionError as e:
            assert "INVALID_RECORD" in str(e), e


def test_codecs_and_groups():
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = create(codec)
        values = [b"x" * i for i in range(100)]
        send(topic, *values, **{"compression.type": codec, "linger.ms": 50})
        same(codec, [m.value() for m in read(topic, 60, topic)], values[:60])
        rest = read(topic, 40, topic, **{"group.protocol": "consumer"})
        same(codec + ", the rest with the other group protocol", [m.value() for m in rest], values[60:])


def test_admin():
    topic = create("admin", 2)
    same("listed", topic in admin.list_topics(timeout=10).topics, True)
    for done in admin.create_partitions([NewPartitions(topic, 3)]).values():
        done.result(10)
    same("partitions", len(admin.list_topics(topic, timeout=10).topics[topic].partitions), 3)
    entry = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for done in admin.incremental_alter_configs([change]).values():
        done.result(10)
    for done in admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values():
        same("retention.ms", done.result(10)["retention.ms"].value, "60000")
    send(topic, b"a")
    ends = admin.list_offsets({TopicPartition(topic, i): OffsetSpec.latest() for i in range(3)})
    same("records", sum(done.result(10).offset for done in ends.values()), 1)
    same("cluster", [n.id for n in admin.describe_cluster().result(10).nodes], [1])
    for done in admin.delete_topics([topic]).values():
        done.result(10)


def test_login():
    def connect(**config):
        client = AdminClient(login | config)
        client.poll(0.5)
        return len(client.list_topics(timeout=10).topics)

    assert connect(**{"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (token, time.time() + 600)}) > 0
    assert connect(**{  # the client requests tokens itself
        "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": url + "/oauth/token",
        "sasl.oauthbearer.client.id": os.environ["FRESHET_CLIENT_ID"],
        "sasl.oauthbearer.client.secret": os.environ["FRESHET_CLIENT_SECRET"],
        "sasl.oauthbearer.scope": "urn:vendor:messaging:default:default",
    }) > 0
    assert connect(**{"bootstrap.servers": secured, "security.protocol": "SASL_SSL", "ssl.ca.location": authority}) > 0
    try:
        Consumer(login | {"group.id": "x", "sasl.password": "wrong"}).list_topics(timeout=2)
        raise RuntimeError("a wrong password was accepted")
    except KafkaException:
        pass


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
