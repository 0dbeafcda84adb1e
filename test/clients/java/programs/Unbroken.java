import java.io.FileReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;

/**
 * An idempotent producer and two consumers, one of each group protocol, that continue
 * while the server is killed and restarted: Unbroken PROPERTIES COUNT. It prints "acked N"
 * as progress, and "ok" or "FAIL" for each check.
 */
public final class Unbroken {
    private static final int PARTITIONS = 3;

    private Unbroken() {}

    public static void main(String[] args) throws Exception {
        Properties login = new Properties();
        try (FileReader reader = new FileReader(args[0])) {
            login.load(reader);
        }
        int count = Integer.parseInt(args[1]);
        try (Admin admin = Admin.create(login)) {
            admin.createTopics(List.of(new NewTopic("numbers", PARTITIONS, (short) 1))).all().get();
        }
        List<Reader> readers = List.of(new Reader(login, "classic", count), new Reader(login, "consumer", count));
        readers.forEach(Thread::start);
        for (Reader r : readers) {
            r.waitForPartitions();
        }
        AtomicInteger acked = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        try (KafkaProducer<Integer, Integer> producer = new KafkaProducer<>(login, new IntegerSerializer(), new IntegerSerializer())) {
            for (int i = 0; i < count; i++) {
                // The partition is the remainder of the number, so that the order can be checked.
                producer.send(new ProducerRecord<>("numbers", i % PARTITIONS, i, i), (m, e) -> {
                    if (e != null) {
                        failed.incrementAndGet();
                    } else if (acked.incrementAndGet() % 500 == 0) {
                        System.out.println("acked " + acked.get());
                    }
                });
                Thread.sleep(1);
            }
        }
        check("producer", acked.get() == count && failed.get() == 0, acked + " acknowledged and " + failed + " failed, want " + count);
        for (Reader r : readers) {
            r.join(60_000);
            r.report();
        }
        inOrder(login, count);
        System.out.println("end");
        System.exit(0);
    }

    private static void check(String name, boolean good, String what) {
        System.out.println(good ? "ok " + name + " " + what : "FAIL " + name + " " + what);
    }

    /** Checks that every number exists once, and that each partition is in order. */
    private static void inOrder(Properties login, int count) {
        Map<Integer, List<Integer>> got = new TreeMap<>();
        List<TopicPartition> all = new ArrayList<>();
        for (int i = 0; i < PARTITIONS; i++) {
            all.add(new TopicPartition("numbers", i));
            got.put(i, new ArrayList<>());
        }
        int total = 0;
        try (KafkaConsumer<Integer, Integer> consumer = new KafkaConsumer<>(login, new IntegerDeserializer(), new IntegerDeserializer())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            for (int quiet = 0; quiet < 5; quiet++) {
                for (ConsumerRecord<Integer, Integer> r : consumer.poll(Duration.ofMillis(500))) {
                    got.get(r.partition()).add(r.value());
                    total++;
                    quiet = 0;
                }
            }
        }
        boolean good = total == count;
        for (int p = 0; p < PARTITIONS; p++) {
            for (int i = 0; i < got.get(p).size(); i++) {
                good = good && got.get(p).get(i) == i * PARTITIONS + p;
            }
        }
        check("log", good, total + " records, want " + count + " in order and each once");
    }

    /** A member that reads all numbers and counts how many partitions were assigned to it. */
    private static final class Reader extends Thread {
        private final Properties settings = new Properties();
        private final String protocol;
        private final int count;
        private final Map<Integer, Boolean> seen = new TreeMap<>();
        private final AtomicInteger assigned = new AtomicInteger();

        Reader(Properties login, String protocol, int count) {
            this.protocol = protocol;
            this.count = count;
            settings.putAll(login);
            settings.put("group.protocol", protocol);
            settings.put("group.id", "readers-" + protocol);
            settings.put("auto.offset.reset", "earliest");
            // By default, a client that reaches no broker discards its topic metadata, and the
            // leader of a classic group then starts a rebalance.
            settings.put("metadata.recovery.strategy", "none");
            setDaemon(true);
        }

        @Override
        public void run() {
            try (KafkaConsumer<Integer, Integer> consumer = new KafkaConsumer<>(settings, new IntegerDeserializer(), new IntegerDeserializer())) {
                consumer.subscribe(List.of("numbers"), new ConsumerRebalanceListener() {
                    @Override
                    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                        assigned.addAndGet(partitions.size());
                    }

                    @Override
                    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}
                });
                while (seen.size() < count) {
                    consumer.poll(Duration.ofMillis(200)).forEach(r -> seen.put(r.value(), true));
                }
            }
        }

        void waitForPartitions() throws InterruptedException {
            while (assigned.get() < PARTITIONS) {
                Thread.sleep(20);
            }
        }

        void report() {
            check(protocol + "-reader", seen.size() == count, seen.size() + " numbers, want " + count);
            check(protocol + "-stays", assigned.get() == PARTITIONS, assigned + " partitions assigned, want " + PARTITIONS + ": a restart must not cause a rebalance");
        }
    }
}
