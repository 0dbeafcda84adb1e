import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTopicException;

/** Consumers without a group. */
final class Consuming {
    private Consuming() {}

    static void steps() {
        Scenario.step("consume/seek", Consuming::seek);
        Scenario.step("consume/offsets", Consuming::offsets);
        Scenario.step("consume/times", Consuming::times);
        Scenario.step("consume/out-of-range", Consuming::outOfRange);
        Scenario.step("consume/reset-none", Consuming::resetNone);
        Scenario.step("consume/trimmed-under-a-reader", Consuming::trimmed);
        Scenario.step("consume/max-poll-records", Consuming::maxPoll);
        Scenario.step("consume/small-fetches", Consuming::smallFetches);
        Scenario.step("consume/pause", Consuming::pause);
        Scenario.step("consume/read-committed", Consuming::readCommitted);
        Scenario.step("consume/metadata", Consuming::metadata);
        Scenario.step("consume/lag", Consuming::lag);
        Scenario.step("consume/many-partitions", Consuming::manyPartitions);
        Scenario.step("consume/waits-for-records", Consuming::waits);
        Scenario.step("consume/topic-comes-later", Consuming::comesLater);
        Scenario.step("consume/invalid-topic", Consuming::invalidTopic);
        Scenario.step("consume/topic-recreated", Consuming::recreated);
    }

    private static void seek() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 50);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("max.poll.records", 1)) {
            consumer.assign(List.of(p));
            consumer.seekToEnd(List.of(p));
            Scenario.equal("position at the end", consumer.position(p), 50L);
            Scenario.equal("records at the end", consumer.poll(Scenario.POLL).count(), 0);
            consumer.seekToBeginning(List.of(p));
            Scenario.equal("position at the beginning", consumer.position(p), 0L);
            Scenario.equal("first", Scenario.take(consumer, 1).get(0).offset(), 0L);
            consumer.seek(p, 25);
            Scenario.equal("in the middle of a batch", Scenario.take(consumer, 1).get(0).offset(), 25L);
        }
    }

    private static void offsets() throws Exception {
        String topic = Scenario.topic(2);
        TopicPartition a = new TopicPartition(topic, 0);
        TopicPartition b = new TopicPartition(topic, 1);
        Scenario.fill(topic, 0, 10);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            Scenario.equal("beginning", consumer.beginningOffsets(List.of(a, b)), Map.of(a, 0L, b, 0L));
            Scenario.equal("end", consumer.endOffsets(List.of(a, b)), Map.of(a, 10L, b, 0L));
        }
    }

    private static void times() throws Exception {
        String topic = Scenario.topic(2);
        TopicPartition a = new TopicPartition(topic, 0);
        TopicPartition b = new TopicPartition(topic, 1);
        Scenario.fill(topic, 0, 100); // timestamps 1 to 100
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            Map<TopicPartition, OffsetAndTimestamp> got = consumer.offsetsForTimes(Map.of(a, 20L, b, 0L));
            Scenario.equal("offset", got.get(a).offset(), 19L);
            Scenario.equal("timestamp", got.get(a).timestamp(), 20L);
            Scenario.equal("of an empty partition", got.get(b), null);
            Scenario.equal("after the last", consumer.offsetsForTimes(Map.of(a, 101L)).get(a), null);
            Scenario.equal("at 0", consumer.offsetsForTimes(Map.of(a, 0L)).get(a).offset(), 0L);
            Scenario.fails(IllegalArgumentException.class, () -> consumer.offsetsForTimes(Map.of(a, -1L)));
        }
    }

    private static void outOfRange() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 5);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("auto.offset.reset", "none")) {
            consumer.assign(List.of(p));
            consumer.seek(p, 1_000);
            OffsetOutOfRangeException e = Scenario.fails(OffsetOutOfRangeException.class, () -> Scenario.take(consumer, 1));
            Scenario.equal("which", e.offsetOutOfRangePartitions(), Map.of(p, 1_000L));
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("auto.offset.reset", "earliest")) {
            consumer.assign(List.of(p));
            consumer.seek(p, 1_000);
            Scenario.equal("continues at the start", Scenario.take(consumer, 5).get(0).offset(), 0L);
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("auto.offset.reset", "latest")) {
            consumer.assign(List.of(p));
            consumer.seek(p, 1_000);
            Scenario.pollUntil("continues at the end", consumer, () -> consumer.position(p) == 5);
        }
    }

    private static void resetNone() throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("auto.offset.reset", "none", "group.id", "g-" + topic)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Scenario.fails(NoOffsetForPartitionException.class, () -> Scenario.take(consumer, 1));
        }
    }

    private static void trimmed() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 20);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("max.poll.records", 1, "max.partition.fetch.bytes", 1);
                Admin admin = Scenario.admin()) {
            consumer.assign(List.of(p));
            Scenario.take(consumer, 1);
            Scenario.equal("low watermark", Scenario.get(admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(15))).lowWatermarks().get(p)).lowWatermark(), 15L);
            Scenario.equal("beginning", consumer.beginningOffsets(List.of(p)).get(p), 15L);
            consumer.seek(p, 3);
            Scenario.equal("continues at the new start", Scenario.take(consumer, 1).get(0).offset(), 15L);
        }
    }

    private static void maxPoll() throws Exception {
        String topic = Scenario.topic(1);
        Scenario.fill(topic, 0, 100);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("max.poll.records", 7)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            for (int next = 0; next < 100; ) {
                int n = 0;
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Scenario.POLL)) {
                    Scenario.equal("offset", r.offset(), (long) next++);
                    n++;
                }
                Scenario.check("at most 7, got " + n, n <= 7);
            }
        }
    }

    private static void smallFetches() throws Exception {
        String topic = Scenario.topic(3);
        for (int i = 0; i < 3; i++) {
            try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("batch.size", 0)) {
                for (int j = 0; j < 30; j++) {
                    producer.send(new ProducerRecord<>(topic, i, null, new byte[500]));
                }
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("max.partition.fetch.bytes", 600, "fetch.max.bytes", 700)) {
            consumer.assign(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1), new TopicPartition(topic, 2)));
            // Partitions are served in turn: none waits until another is empty.
            Set<Integer> seen = new HashSet<>();
            List<ConsumerRecord<byte[], byte[]>> all = Scenario.take(consumer, 90);
            for (ConsumerRecord<byte[], byte[]> r : all.subList(0, 60)) {
                seen.add(r.partition());
            }
            Scenario.equal("partitions among the first 60 records", seen, Set.of(0, 1, 2));
        }
    }

    private static void pause() throws Exception {
        String topic = Scenario.topic(2);
        TopicPartition a = new TopicPartition(topic, 0);
        TopicPartition b = new TopicPartition(topic, 1);
        Scenario.fill(topic, 0, 5);
        Scenario.fill(topic, 1, 5);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            consumer.assign(List.of(a, b));
            consumer.pause(List.of(a));
            Scenario.check("only from the other partition", Scenario.take(consumer, 5).stream().allMatch(r -> r.partition() == 1));
            Scenario.equal("paused", consumer.paused(), Set.of(a));
            consumer.resume(List.of(a));
            Scenario.check("now from this partition", Scenario.take(consumer, 5).stream().allMatch(r -> r.partition() == 0));
        }
    }

    private static void readCommitted() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 10);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("isolation.level", "read_committed")) {
            consumer.assign(List.of(p));
            Scenario.take(consumer, 10);
            Scenario.equal("end", consumer.endOffsets(List.of(p)).get(p), 10L);
        }
    }

    private static void metadata() throws Exception {
        String topic = Scenario.topic(3);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            List<PartitionInfo> infos = consumer.partitionsFor(topic);
            Scenario.equal("partitions", infos.size(), 3);
            for (PartitionInfo i : infos) {
                Scenario.check("the leader is the in-sync replica", i.leader() != null && i.replicas().length == 1 && i.inSyncReplicas().length == 1);
            }
            Scenario.equal("in the list", consumer.listTopics().get(topic).size(), 3);
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("allow.auto.create.topics", "false")) {
            List<PartitionInfo> none = consumer.partitionsFor("nowhere-" + topic);
            Scenario.check("no partitions of a topic that does not exist", none == null || none.isEmpty());
            Scenario.check("the topic was not created", !consumer.listTopics().containsKey("nowhere-" + topic));
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer()) {
            Scenario.until("a metadata request creates a topic", () -> {
                List<PartitionInfo> some = consumer.partitionsFor("requested-" + topic);
                return some != null && !some.isEmpty();
            });
        }
    }

    private static void lag() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 10);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("max.poll.records", 4)) {
            consumer.assign(List.of(p));
            Scenario.equal("before", consumer.currentLag(p), OptionalLong.empty());
            Scenario.take(consumer, 4);
            Scenario.equal("lag", consumer.currentLag(p), OptionalLong.of(6));
        }
    }

    private static void manyPartitions() throws Exception {
        String topic = Scenario.topic(60);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer()) {
            for (int i = 0; i < 600; i++) {
                producer.send(new ProducerRecord<>(topic, i % 60, null, new byte[100]));
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("group.id", "g-" + topic)) {
            consumer.subscribe(List.of(topic));
            Scenario.take(consumer, 600);
            consumer.commitSync();
            Scenario.equal("committed", consumer.committed(Set.copyOf(consumer.assignment())).size(), 60);
        }
    }

    private static void waits() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("fetch.max.wait.ms", 4_000, "fetch.min.bytes", 1);
                KafkaProducer<byte[], byte[]> producer = Scenario.producer()) {
            consumer.assign(List.of(p));
            Scenario.equal("nothing yet", consumer.poll(Duration.ofMillis(300)).count(), 0);
            long start = System.nanoTime();
            Scenario.send(producer, new ProducerRecord<>(topic, new byte[1]));
            Scenario.take(consumer, 1);
            Scenario.check("a waiting fetch wakes up", System.nanoTime() - start < 2_500_000_000L);
        }
    }

    private static void comesLater() throws Exception {
        String topic = "later-" + System.nanoTime();
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("metadata.max.age.ms", 300, "allow.auto.create.topics", "false", "group.id", "g-" + topic);
                Admin admin = Scenario.admin()) {
            consumer.subscribe(Pattern.compile("later-.*"));
            consumer.poll(Scenario.POLL);
            Scenario.get(admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all());
            Scenario.fill(topic, 0, 3);
            Scenario.take(consumer, 3);
            consumer.commitSync();
            Scenario.get(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all());
            Scenario.pollUntil("the new partition is assigned", consumer, () -> consumer.assignment().size() == 2);
            Scenario.fill(topic, 1, 3);
            Scenario.take(consumer, 3);
        }
    }

    private static void invalidTopic() {
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("group.id", "g-invalid")) {
            consumer.subscribe(List.of("in valid"));
            InvalidTopicException e = Scenario.fails(InvalidTopicException.class, () -> Scenario.take(consumer, 1));
            Scenario.equal("which", e.invalidTopics(), Set.of("in valid"));
        }
    }

    /** A topic that is deleted and recreated while a consumer reads it is read from its start. */
    private static void recreated() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 10);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("metadata.max.age.ms", 300);
                Admin admin = Scenario.admin()) {
            consumer.assign(List.of(p));
            Scenario.take(consumer, 10);
            Scenario.get(admin.deleteTopics(List.of(topic)).all());
            Scenario.get(admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all());
            Scenario.fill(topic, 0, 3);
            Collection<ConsumerRecord<byte[], byte[]>> got = Scenario.take(consumer, 3);
            Scenario.check("from the start", got.stream().allMatch(r -> r.offset() < 3));
        }
    }
}
