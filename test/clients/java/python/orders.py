"""Two members of a consumer group read orders in Avro and share the partitions:
orders.py BOOTSTRAP REGISTRY-URL TOKEN TOPIC COUNT. Prints the sorted ids of the orders."""

import sys
import time

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

bootstrap, registry, token, topic, count = sys.argv[1:]
login = {
    "bootstrap.servers": bootstrap,
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "public/default",
    "sasl.password": "token:" + token,
    "group.id": "warehouse",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
deserializer = AvroDeserializer(SchemaRegistryClient({"url": registry, "basic.auth.user.info": "user:" + token}))
members = [Consumer(login), Consumer(login)]
for member in members:
    member.subscribe([topic])

end = time.monotonic() + 60
orders, shared = [], False
while len(orders) < int(count) or not shared:
    if time.monotonic() > end:
        sys.exit(f"got {len(orders)} orders, want {count}; partitions {[len(m.assignment()) for m in members]}")
    for member in members:
        message = member.poll(0.05)
        if message is None:
            continue
        if message.error():
            sys.exit(str(message.error()))
        order = deserializer(message.value(), SerializationContext(topic, MessageField.VALUE))
        assert order["customer"] == message.key().decode(), (order, message.key())
        orders.append(order["id"])
        member.commit(message)
    shared = shared or all(len(m.assignment()) > 0 for m in members)
for member in members:
    member.close()
print(*sorted(set(orders)))
