import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * Joins orders, customers and payments with Kafka Streams, at least once:
 * Join LOGIN-PROPERTIES STREAMS-PROPERTIES STATE-DIRECTORY.
 *
 * <p>Orders are numbers, in a topic for each region; customers are texts; payments are bytes,
 * some of them more than 64 KiB. If the program receives a record of another topic, a deserializer
 * fails or a result differs from the model. Every record of the results is compared with the model.
 * <ul>
 * <li>named: each order with the name of its customer, a join of a stream and a table;
 * <li>totals: the sum of the orders of each customer, from a store with a changelog;
 * <li>paid: each order with its payment, a join of two streams in a window, after a repartition topic.
 * </ul>
 */
public final class Join {
    private static final int CUSTOMERS = 2_400;
    private static final int ORDERS = 24_000;
    private static final List<String> REGIONS = List.of("orders-north", "orders-south", "orders-west");
    private static final int PAID_EACH = 12; // every twelfth order is paid
    private static final int LARGE_EACH = 480; // every 480th order has a large payment
    private static final int PARTITIONS = 8; // of the orders and the customers
    private static final int PAYMENT_PARTITIONS = 5;
    private static final Duration WINDOW = Duration.ofHours(1);

    private final Properties login;
    private final long began = System.currentTimeMillis() - WINDOW.toMillis();

    // The model: the expected results.
    private final Map<String, String> named = new HashMap<>(); // by order
    private final Map<String, String> paid = new HashMap<>(); // by order
    private final Map<String, List<String>> totals = new HashMap<>(); // by customer: each sum, in order

    private Join(Properties login) {
        this.login = login;
    }

    public static void main(String[] args) throws Exception {
        Join join = new Join(Settings.load(args[0]));
        Properties settings = Settings.with(join.login);
        settings.putAll(Settings.load(args[1]));
        join.createTopics();
        join.writeCustomers();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        boolean good;
        try (KafkaStreams streams = new KafkaStreams(topology(), Settings.with(settings, "application.id", "join",
                "state.dir", args[2], "commit.interval.ms", 500, "session.timeout.ms", 6000,
                "main.consumer.max.partition.fetch.bytes", 100_000))) {
            streams.setUncaughtExceptionHandler(e -> {
                failure.compareAndSet(null, e);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            join.writeOrders();
            good = join.check(failure);
            streams.close(Duration.ofSeconds(20));
        }
        System.out.println("end");
        System.exit(good ? 0 : 1);
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, Long> orders = builder.stream(REGIONS, Consumed.with(Serdes.String(), Serdes.Long()));
        KTable<String, String> customers = builder.table("customers", Consumed.with(Serdes.String(), Serdes.String()));
        KStream<String, byte[]> payments = builder.stream(
                "payments", Consumed.with(Serdes.String(), Serdes.ByteArray()));
        KStream<String, String> named = orders
                .join(customers, (order, name) -> order + " " + name,
                        Joined.with(Serdes.String(), Serdes.Long(), Serdes.String()))
                .selectKey((customer, text) -> text.substring(0, text.indexOf(' ')));
        named.to("named");
        named.repartition(Repartitioned.<String, String>as("by-order").withNumberOfPartitions(PAYMENT_PARTITIONS))
                .join(payments, (text, payment) -> text + " " + sum(payment),
                        JoinWindows.ofTimeDifferenceWithNoGrace(WINDOW),
                        StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.ByteArray()).withName("paid"))
                .to("paid");
        orders.groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
                .reduce(Long::sum, Named.as("sum"), Materialized.as("totals-store"))
                .toStream()
                .mapValues(String::valueOf)
                .to("totals");
        return builder.build();
    }

    private void createTopics() throws Exception {
        Map<String, Integer> topics = new HashMap<>(
                Map.of("customers", PARTITIONS, "payments", PAYMENT_PARTITIONS, "named", 3, "totals", 2, "paid", 1));
        REGIONS.forEach(region -> topics.put(region, PARTITIONS));
        List<NewTopic> wanted = new ArrayList<>();
        topics.forEach((name, partitions) -> wanted.add(new NewTopic(name, partitions, (short) 1)));
        try (Admin admin = Admin.create(login)) {
            admin.createTopics(wanted).all().get();
        }
    }

    /** Writes the customers with timestamps before all orders, so that Streams reads them into its table first. */
    private void writeCustomers() {
        try (KafkaProducer<String, String> customers = producer(new StringSerializer())) {
            for (int i = 0; i < CUSTOMERS; i++) {
                customers.send(new ProducerRecord<>("customers", null, began, customer(i), name(i)));
            }
        }
    }

    /** Writes the orders and the payments, and adds the expected results to the model. */
    private void writeOrders() {
        Random random = new Random(1);
        Map<String, Long> sums = new HashMap<>();
        try (KafkaProducer<String, Long> orders = producer(new LongSerializer());
                KafkaProducer<String, byte[]> payments = producer(new ByteArraySerializer())) {
            for (int i = 0; i < ORDERS; i++) {
                String order = String.valueOf(i);
                int c = i * 7 % CUSTOMERS;
                ProducerRecord<String, Long> record = new ProducerRecord<>(
                        REGIONS.get(c % REGIONS.size()), null, began + 1 + i, customer(c), (long) i);
                record.headers().add("note", bytes(random, 100));
                orders.send(record);
                named.put(order, order + " " + name(c));
                long total = sums.merge(customer(c), (long) i, Long::sum);
                totals.computeIfAbsent(customer(c), k -> new ArrayList<>()).add(String.valueOf(total));
                if (i % PAID_EACH == 0) {
                    byte[] payment = bytes(random, i % LARGE_EACH == 0 ? 120_000 : 700);
                    payments.send(new ProducerRecord<>("payments", null, began + 2 + i, order, payment));
                    paid.put(order, order + " " + name(c) + " " + sum(payment));
                }
            }
        }
        System.out.println("ok written " + (CUSTOMERS + ORDERS + paid.size()) + " records");
    }

    private static byte[] bytes(Random random, int size) {
        byte[] value = new byte[size];
        random.nextBytes(value);
        return value;
    }

    private <T> KafkaProducer<String, T> producer(Serializer<T> values) {
        Properties settings = Settings.with(login, "batch.size", 90_000, "linger.ms", 100);
        return new KafkaProducer<>(settings, new StringSerializer(), values);
    }

    private static String customer(int i) {
        return "customer-" + i;
    }

    /** Returns a name long enough for more than 64 KiB of customers in each partition. */
    private static String name(int i) {
        return "name of " + customer(i) + "-".repeat(250 + i % 50);
    }

    private static long sum(byte[] value) {
        CRC32 crc = new CRC32();
        crc.update(value);
        return crc.getValue();
    }

    /** Reads the results until the last value of every key has arrived, and compares all of them with the model. */
    private boolean check(AtomicReference<Throwable> failure) {
        List<Result> results = List.of(
                new Result("named", one(named)), new Result("totals", totals), new Result("paid", one(paid)));
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(180); // a busy machine is slow
        Properties settings = Settings.with(login, "group.id", "results", "auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("named", "totals", "paid"));
            while (!results.stream().allMatch(Result::complete) && failure.get() == null && System.nanoTime() < end) {
                for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200))) {
                    results.forEach(result -> result.add(r));
                }
            }
        }
        boolean good = failure.get() == null;
        if (!good) {
            Throwable cause = failure.get();
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println("FAIL streams " + failure.get() + ", caused by " + cause);
        }
        for (Result result : results) {
            good &= result.report();
        }
        return good;
    }

    private static Map<String, List<String>> one(Map<String, String> model) {
        Map<String, List<String>> lists = new HashMap<>();
        model.forEach((key, value) -> lists.put(key, List.of(value)));
        return lists;
    }

    /** The records of one result topic. The model contains all values of each key, in order. */
    private static final class Result {
        private final String topic;
        private final Map<String, List<String>> model;
        private final Map<String, String> last = new HashMap<>();
        private int finished; // keys whose last value matches the model
        private int records;
        private int wrong;
        private String first = "none";

        Result(String topic, Map<String, List<String>> model) {
            this.topic = topic;
            this.model = model;
        }

        void add(ConsumerRecord<String, String> r) {
            if (!r.topic().equals(topic)) {
                return;
            }
            records++;
            List<String> values = model.getOrDefault(r.key(), List.of());
            if (!values.contains(r.value())) {
                if (wrong++ == 0) {
                    first = String.format("%s-%d@%d %s = %.60s", topic, r.partition(), r.offset(), r.key(), r.value());
                }
                return;
            }
            String end = values.get(values.size() - 1);
            if (end.equals(last.put(r.key(), r.value()))) {
                finished--;
            }
            if (end.equals(r.value())) {
                finished++;
            }
        }

        boolean complete() {
            return finished == model.size();
        }

        boolean report() {
            boolean good = complete() && wrong == 0;
            System.out.printf("%s %s %d records, %d wrong, first: %s; %d of %d keys have their last value%n",
                    good ? "ok" : "FAIL", topic, records, wrong, first, finished, model.size());
            return good;
        }
    }
}
