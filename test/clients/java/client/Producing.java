import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.record.TimestampType;

/** Producers. */
final class Producing {
    private Producing() {}

    static void steps() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Scenario.step("produce/" + codec, () -> codec(codec));
        }
        Scenario.step("produce/acks", Producing::acks);
        Scenario.step("produce/offsets-in-order", Producing::offsets);
        Scenario.step("produce/headers-nulls-and-empty", Producing::forms);
        Scenario.step("produce/timestamps", Producing::timestamps);
        Scenario.step("produce/append-time", Producing::appendTime);
        Scenario.step("produce/too-large", Producing::tooLarge);
        Scenario.step("produce/large", Producing::large);
        Scenario.step("produce/no-such-partition", Producing::noPartition);
        Scenario.step("produce/auto-creation", Producing::autoCreation);
        Scenario.step("produce/invalid-topic", Producing::invalidTopic);
        Scenario.step("produce/close-flushes", Producing::close);
        Scenario.step("produce/partitions-grow", Producing::grow);
        Scenario.step("produce/transactions-are-refused", Producing::transactions);
        Scenario.step("produce/deleted-topic-recreated", Producing::recreated);
    }

    /** An idempotent producer (the default) writes many batches, which are read back in order. */
    private static void codec(String codec) throws Exception {
        String topic = Scenario.topic(2);
        int n = 2_000;
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("compression.type", codec, "linger.ms", 5)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, i % 2, ("key " + i).getBytes(), ("value " + i + " of many").getBytes())));
            }
            for (int i = 0; i < n; i++) {
                RecordMetadata m = sent.get(i).get(Scenario.SECONDS, TimeUnit.SECONDS);
                Scenario.equal("offset", m.offset(), (long) i / 2);
                Scenario.equal("partition", m.partition(), i % 2);
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            consumer.assign(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1)));
            for (ConsumerRecord<byte[], byte[]> r : Scenario.take(consumer, n)) {
                long i = r.offset() * 2 + r.partition();
                Scenario.equal("key", new String(r.key()), "key " + i);
                Scenario.equal("value", new String(r.value()), "value " + i + " of many");
            }
        }
    }

    private static void acks() throws Exception {
        String topic = Scenario.topic(1);
        for (String acks : List.of("all", "1", "0")) {
            try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("acks", acks, "enable.idempotence", "false")) {
                RecordMetadata m = Scenario.send(producer, new ProducerRecord<>(topic, acks.getBytes()));
                Scenario.equal("has an offset", m.hasOffset(), !acks.equals("0"));
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Scenario.take(consumer, 3);
        }
    }

    private static void offsets() throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("batch.size", 0)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 300; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, new byte[10])));
            }
            for (int i = 0; i < 300; i++) {
                Scenario.equal("offset", sent.get(i).get(Scenario.SECONDS, TimeUnit.SECONDS).offset(), (long) i);
            }
        }
    }

    private static void forms() throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer()) {
            ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(topic, 0, (byte[]) null, (byte[]) null);
            r.headers().add("twice", "1".getBytes()).add("twice", "2".getBytes()).add("null", null).add("binary", new byte[] {0, -1, 5}).add("", new byte[0]);
            Scenario.send(producer, r);
            Scenario.send(producer, new ProducerRecord<>(topic, 0, new byte[0], new byte[0]));
            Scenario.send(producer, new ProducerRecord<>(topic, 0, new byte[] {0, 1, -1}, "äöü".getBytes(StandardCharsets.UTF_8)));
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            List<ConsumerRecord<byte[], byte[]>> got = Scenario.take(consumer, 3);
            Scenario.equal("key", got.get(0).key(), null);
            Scenario.equal("value", got.get(0).value(), null);
            Scenario.equal("headers", got.get(0).headers().toArray().length, 5);
            Scenario.equal("last of two", got.get(0).headers().lastHeader("twice").value(), "2".getBytes());
            Scenario.equal("null header", got.get(0).headers().lastHeader("null").value(), null);
            Scenario.equal("binary header", got.get(0).headers().lastHeader("binary").value(), new byte[] {0, -1, 5});
            Scenario.equal("empty key", got.get(1).key(), new byte[0]);
            Scenario.equal("empty value", got.get(1).value(), new byte[0]);
            Scenario.equal("binary key", got.get(2).key(), new byte[] {0, 1, -1});
        }
    }

    private static void timestamps() throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer()) {
            RecordMetadata m = Scenario.send(producer, new ProducerRecord<>(topic, 0, 123456L, null, new byte[1]));
            Scenario.equal("timestamp", m.timestamp(), 123456L);
            long before = System.currentTimeMillis();
            m = Scenario.send(producer, new ProducerRecord<>(topic, new byte[1]));
            Scenario.check("now", m.timestamp() >= before && m.timestamp() <= System.currentTimeMillis());
            Scenario.equal("serialized size", m.serializedValueSize(), 1);
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            ConsumerRecord<byte[], byte[]> r = Scenario.take(consumer, 2).get(0);
            Scenario.equal("type", r.timestampType(), TimestampType.CREATE_TIME);
            Scenario.equal("timestamp", r.timestamp(), 123456L);
        }
    }

    private static void appendTime() throws Exception {
        String topic = Scenario.topic(1, "message.timestamp.type", "LogAppendTime");
        long before = System.currentTimeMillis();
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("compression.type", "lz4")) {
            RecordMetadata m = Scenario.send(producer, new ProducerRecord<>(topic, 0, 123456L, null, new byte[1]));
            Scenario.check("the producer gets the append time", m.timestamp() >= before - 1000);
            try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
                consumer.assign(List.of(new TopicPartition(topic, 0)));
                ConsumerRecord<byte[], byte[]> r = Scenario.take(consumer, 1).get(0);
                Scenario.equal("type", r.timestampType(), TimestampType.LOG_APPEND_TIME);
                Scenario.equal("timestamp", r.timestamp(), m.timestamp());
            }
        }
    }

    private static void tooLarge() throws Exception {
        String topic = Scenario.topic(1, "max.message.bytes", "10000");
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer()) {
            Scenario.fails(RecordTooLargeException.class, () -> Scenario.send(producer, new ProducerRecord<>(topic, new byte[20_000])));
            // The producer continues after the error.
            Scenario.equal("offset", Scenario.send(producer, new ProducerRecord<>(topic, new byte[10])).offset(), 0L);
        }
        if (Scenario.setting("version").equals("client-3.9")) {
            return; // these clients split a batch into batches of batch.size, which may stay too large
        }
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("batch.size", 100_000, "linger.ms", 200)) {
            // The client splits a batch that is too large and sends it again.
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, null, new byte[1_000])));
            }
            for (int i = 0; i < 30; i++) {
                Scenario.equal("offset", sent.get(i).get(Scenario.SECONDS, TimeUnit.SECONDS).offset(), (long) i + 1);
            }
        }
    }

    private static void large() throws Exception {
        String topic = Scenario.topic(1);
        byte[] value = new byte[4 << 20];
        value[value.length - 1] = 7;
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("max.request.size", 6 << 20)) {
            Scenario.send(producer, new ProducerRecord<>(topic, value));
        }
        // The server returns a record that is larger than the consumer's limits.
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("max.partition.fetch.bytes", 1000, "fetch.max.bytes", 1000)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Scenario.equal("value", Scenario.take(consumer, 1).get(0).value(), value);
        }
    }

    private static void noPartition() throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("max.block.ms", 1500)) {
            Scenario.fails(TimeoutException.class, () -> Scenario.send(producer, new ProducerRecord<>(topic, 5, null, new byte[1])));
        }
    }

    private static void autoCreation() throws Exception {
        String topic = "auto-" + System.nanoTime();
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer()) {
            Scenario.equal("offset", Scenario.send(producer, new ProducerRecord<>(topic, new byte[1])).offset(), 0L);
        }
    }

    private static void invalidTopic() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("max.block.ms", 5000)) {
            Scenario.fails(InvalidTopicException.class, () -> Scenario.send(producer, new ProducerRecord<>("not a topic!", new byte[1])));
        }
    }

    private static void close() throws Exception {
        String topic = Scenario.topic(1);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("linger.ms", 60_000)) {
            for (int i = 0; i < 50; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, null, new byte[10])));
            }
        }
        for (int i = 0; i < 50; i++) {
            Scenario.equal("offset", sent.get(i).get().offset(), (long) i);
        }
    }

    private static void grow() throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("metadata.max.age.ms", 200);
                org.apache.kafka.clients.admin.Admin admin = Scenario.admin()) {
            Scenario.send(producer, new ProducerRecord<>(topic, 0, null, new byte[1]));
            Scenario.get(admin.createPartitions(java.util.Map.of(topic, org.apache.kafka.clients.admin.NewPartitions.increaseTo(3))).all());
            Scenario.equal("partition", Scenario.send(producer, new ProducerRecord<>(topic, 2, null, new byte[1])).partition(), 2);
            Scenario.until("the producer has the metadata of all partitions", () -> producer.partitionsFor(topic).size() == 3);
        }
    }

    private static void transactions() {
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("transactional.id", "tx", "max.block.ms", 10_000)) {
            KafkaException e = Scenario.fails(KafkaException.class, producer::initTransactions);
            Scenario.check("rejected with the reason: " + e + ", " + e.getCause(),
                    (e + " " + e.getCause()).contains("transactions are not available on this cluster"));
        }
    }

    private static void recreated() throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("metadata.max.age.ms", 500);
                org.apache.kafka.clients.admin.Admin admin = Scenario.admin()) {
            for (int i = 0; i < 3; i++) {
                Scenario.send(producer, new ProducerRecord<>(topic, 0, null, new byte[1]));
            }
            Scenario.get(admin.deleteTopics(List.of(topic)).all());
            Scenario.get(admin.createTopics(List.of(new org.apache.kafka.clients.admin.NewTopic(topic, 1, (short) 1))).all());
            Scenario.equal("offset in the new topic", Scenario.send(producer, new ProducerRecord<>(topic, 0, null, new byte[1])).offset(), 0L);
        }
    }
}
