import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * One consumer reads many topics and checks the origin of each record: a value contains its
 * topic, its partition, its sequence number in that partition and a CRC-32 of all of it. The
 * responses contain far more than 64 KiB for one partition.
 */
final class Origins {
    /** The size of a topic: partitions, records, bytes of a value, and bytes of a batch. */
    private record Kind(int partitions, int records, int bytes, String codec, int batch) {}

    private static final List<Kind> KINDS = List.of(
            new Kind(1, 3_000, 40, "none", 70_000),
            new Kind(2, 2_000, 150, "gzip", 80_000),
            new Kind(3, 3_000, 400, "none", 90_000),
            new Kind(4, 2_000, 1_000, "snappy", 150_000),
            new Kind(5, 1_500, 2_000, "zstd", 120_000),
            new Kind(6, 900, 4_000, "lz4", 100_000),
            new Kind(7, 140, 30_000, "none", 500_000),
            new Kind(8, 24, 200_000, "none", 700_000));

    /** Bytes of a value without the topic's name and the filler: checksum, length of the name, partition, sequence. */
    private static final int FIXED = Integer.BYTES + Short.BYTES + Integer.BYTES + Long.BYTES;

    /** The partitions of the records in the order of writing; the topics in the order of KINDS. */
    private static final List<String> TOPICS = new ArrayList<>();
    private static final List<TopicPartition> PLAN = new ArrayList<>();

    /** Whether the first step has written all records, which the other steps read. */
    private static boolean written;

    private Origins() {}

    static void steps() {
        Scenario.step("origins/while-writing", Origins::whileWriting);
        for (String protocol : List.of("classic", "consumer")) {
            Scenario.step("origins/group/" + protocol, () -> group(protocol));
        }
        Scenario.step("origins/many-fetches", () -> assigned(2 << 20, 128 << 10));
        Scenario.step("origins/small-fetches", () -> assigned(200 << 10, 100 << 10));
    }

    /** Creates the topics and a plan that mixes them; some partitions get more records than others. */
    private static void plan(Random random) throws Exception {
        for (Kind kind : KINDS) {
            String topic = Scenario.topic(kind.partitions);
            TOPICS.add(topic);
            for (int i = 0; i < kind.records; i++) {
                int skewed = Math.min(random.nextInt(kind.partitions), random.nextInt(kind.partitions));
                PLAN.add(new TopicPartition(topic, i < kind.partitions ? i : skewed)); // no partition stays empty
            }
        }
        Collections.shuffle(PLAN, random);
    }

    /** A consumer reads at the end of the partitions while one producer per topic writes. */
    private static void whileWriting() throws Exception {
        Random random = new Random(1);
        plan(random);
        FutureTask<Void> writing = new FutureTask<>(() -> write(random), null);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("group.id", "origins-" + TOPICS.get(0))) {
            consumer.subscribe(TOPICS);
            Scenario.pollUntil("assigned", consumer, () -> consumer.assignment().equals(Set.copyOf(PLAN)));
            new Thread(writing, "writing").start();
            try {
                new Check().read(consumer);
            } finally {
                writing.get(Scenario.SECONDS, TimeUnit.SECONDS);
                written = true;
            }
        }
    }

    private static void write(Random random) {
        Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
        Map<String, Kind> kinds = new HashMap<>();
        for (int i = 0; i < KINDS.size(); i++) {
            Kind kind = KINDS.get(i);
            kinds.put(TOPICS.get(i), kind);
            producers.put(TOPICS.get(i),
                    Scenario.producer("compression.type", kind.codec, "batch.size", kind.batch, "linger.ms", 200));
        }
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Map<TopicPartition, Long> written = new HashMap<>();
        for (TopicPartition p : PLAN) {
            long sequence = written.merge(p, 1L, Long::sum) - 1;
            byte[] value = value(p, sequence, kinds.get(p.topic()).bytes, random);
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(p.topic(), p.partition(), null, value);
            producers.get(p.topic()).send(record, (metadata, e) -> {
                if (e == null && metadata.offset() != sequence) {
                    e = new IllegalStateException("offset of " + position(p, sequence) + " is " + metadata.offset());
                }
                if (e != null) {
                    failure.compareAndSet(null, e);
                }
            });
        }
        producers.values().forEach(KafkaProducer::close);
        if (failure.get() != null) {
            throw new AssertionError("writing a record failed", failure.get());
        }
    }

    /** Returns a value with its origin and checksum, and filler that compresses to about one half. */
    private static byte[] value(TopicPartition p, long sequence, int size, Random random) {
        byte[] name = p.topic().getBytes(StandardCharsets.UTF_8);
        byte[] filler = new byte[Math.max(0, size - FIXED - name.length)];
        random.nextBytes(filler);
        for (int i = 0; i < filler.length; i += 2) {
            filler[i] = 'x';
        }
        ByteBuffer value = ByteBuffer.allocate(FIXED + name.length + filler.length).putInt(0)
                .putShort((short) name.length).put(name).putInt(p.partition()).putLong(sequence).put(filler);
        return value.putInt(0, sum(value.array())).array();
    }

    /** Returns the checksum of a value without the checksum itself. */
    private static int sum(byte[] value) {
        CRC32 crc = new CRC32();
        crc.update(value, Integer.BYTES, value.length - Integer.BYTES);
        return (int) crc.getValue();
    }

    /** Returns the record that a value belongs to, as "TOPIC-PARTITION@OFFSET". */
    private static String origin(byte[] value) {
        if (value.length < FIXED) {
            return "value of " + value.length + " bytes";
        }
        ByteBuffer buffer = ByteBuffer.wrap(value);
        int sum = buffer.getInt();
        byte[] name = new byte[Math.min(Math.max(buffer.getShort(), 0), value.length - FIXED)];
        buffer.get(name);
        TopicPartition p = new TopicPartition(new String(name, StandardCharsets.UTF_8), buffer.getInt());
        String origin = position(p, buffer.getLong());
        return sum == sum(value) ? origin : "value with a wrong checksum, possibly " + origin;
    }

    private static String position(TopicPartition p, long offset) {
        return p + "@" + offset;
    }

    private static void group(String protocol) {
        Scenario.check("all records were written", written);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer(
                "group.id", "origins-" + protocol + "-" + TOPICS.get(0), "group.protocol", protocol)) {
            consumer.subscribe(TOPICS);
            new Check().read(consumer);
        }
    }

    /** Reads with small limits per response and partition, so that every partition needs several responses. */
    private static void assigned(int response, int partition) {
        Scenario.check("all records were written", written);
        try (KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer(
                "fetch.max.bytes", response, "max.partition.fetch.bytes", partition)) {
            consumer.assign(Set.copyOf(PLAN));
            new Check().read(consumer);
        }
    }

    /** Compares the records that a consumer reads with those written: every record once and in order. */
    private static final class Check {
        private final int expectedRecords = PLAN.size();
        private final Map<TopicPartition, Long> next = new HashMap<>();
        private long read;
        private long right;
        private long foreign;
        private long repeated;
        private long skipped;
        private String first = "none";

        void read(KafkaConsumer<byte[], byte[]> consumer) {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Scenario.SECONDS);
            try {
                while (right < expectedRecords && System.nanoTime() < end) {
                    long before = right;
                    consumer.poll(Scenario.POLL).forEach(this::check);
                    if (right > before) { // do not wait long if the test has already failed
                        end = System.nanoTime() + TimeUnit.SECONDS.toNanos(foreign > 0 ? 2 : Scenario.SECONDS);
                    }
                }
                consumer.poll(Duration.ofMillis(300)).forEach(this::check); // no record is delivered twice
            } catch (RuntimeException e) {
                throw new AssertionError(summary(), e);
            }
            if (right != expectedRecords || read != expectedRecords) {
                throw new AssertionError(summary());
            }
        }

        private void check(ConsumerRecord<byte[], byte[]> record) {
            read++;
            TopicPartition p = new TopicPartition(record.topic(), record.partition());
            String got = position(p, record.offset());
            String origin = origin(record.value());
            long expected = next.getOrDefault(p, 0L);
            next.put(p, Math.max(expected, record.offset() + 1));
            if (!origin.equals(got)) {
                foreign++;
                note(got + " is " + origin);
            } else if (record.offset() < expected) {
                repeated++;
                note(got + " is repeated");
            } else {
                skipped += record.offset() - expected;
                right++;
            }
        }

        private void note(String what) {
            if (first.equals("none")) {
                first = what;
            }
        }

        private String summary() {
            return String.format("%d of %d records foreign, first: %s; %d repeated, %d skipped, %d of %d right",
                    foreign, read, first, repeated, skipped, right, expectedRecords);
        }
    }
}
