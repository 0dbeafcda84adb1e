import java.io.FileReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Shared by all steps: clients of the server under test, topics, and checks whose errors
 * contain the actual and the expected value.
 */
final class Scenario {
    /** A named test step; the test driver makes a subtest of it. */
    interface Step {
        void run() throws Exception;
    }

    static final Duration POLL = Duration.ofMillis(100);
    static final int SECONDS = 30;

    private static final Map<String, Step> STEPS = new LinkedHashMap<>();
    private static Properties settings;
    private static int topics;

    private Scenario() {}

    static void step(String name, Step step) {
        if (STEPS.put(name, step) != null) {
            throw new IllegalStateException("two steps are named " + name);
        }
    }

    /** Runs the steps and prints a line for each: "ok NAME" or "FAIL NAME". */
    static boolean run(String file, List<String> only) throws Exception {
        settings = new Properties();
        try (FileReader reader = new FileReader(file)) {
            settings.load(reader);
        }
        boolean good = true;
        for (Map.Entry<String, Step> s : STEPS.entrySet()) {
            if (!only.isEmpty() && only.stream().noneMatch(s.getKey()::contains)) {
                continue;
            }
            long start = System.nanoTime();
            try {
                s.getValue().run();
                System.out.printf("ok %s %d ms%n", s.getKey(), (System.nanoTime() - start) / 1_000_000);
            } catch (Throwable e) {
                good = false;
                System.out.printf("FAIL %s %s%n", s.getKey(), e);
                e.printStackTrace(System.out);
            }
        }
        return good;
    }

    /** Returns a setting for the test driver, which clients do not get. */
    static String setting(String name) {
        return Objects.requireNonNull(settings.getProperty("test." + name), name);
    }

    /** Returns the settings of a client, with additional pairs of name and value. */
    static Properties with(Object... more) {
        Properties p = new Properties();
        for (String name : settings.stringPropertyNames()) {
            if (!name.startsWith("test.")) {
                p.put(name, settings.getProperty(name));
            }
        }
        for (int i = 0; i < more.length; i += 2) {
            p.put(more[i], more[i + 1]);
        }
        return p;
    }

    static Admin admin(Object... more) {
        return Admin.create(with(more));
    }

    static KafkaProducer<byte[], byte[]> producer(Object... more) {
        return new KafkaProducer<>(with(more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Object... more) {
        Properties p = with("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        p.putAll(with(more));
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Creates a topic. */
    static String topic(int partitions, String... configs) throws Exception {
        String name = "t" + ++topics + "-" + System.nanoTime() % 1_000_000;
        Map<String, String> map = new LinkedHashMap<>();
        for (int i = 0; i < configs.length; i += 2) {
            map.put(configs[i], configs[i + 1]);
        }
        try (Admin admin = admin()) {
            get(admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(map))).all());
        }
        return name;
    }

    static <T> T get(KafkaFuture<T> future) throws Exception {
        try {
            return future.get(SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    static RecordMetadata send(KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) throws Exception {
        try {
            return producer.send(record).get(SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    /** Writes n records "0", "1", … to a partition, each with its value as key. */
    static void fill(String topic, int partition, int n) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (int i = 0; i < n; i++) {
                byte[] text = Integer.toString(i).getBytes();
                producer.send(new ProducerRecord<>(topic, partition, (long) i + 1, text, text));
            }
            producer.flush();
        }
    }

    /** Polls until n records have arrived. */
    static List<ConsumerRecord<byte[], byte[]>> take(Consumer<byte[], byte[]> consumer, int n) {
        List<ConsumerRecord<byte[], byte[]>> all = new ArrayList<>();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (all.size() < n) {
            if (System.nanoTime() > end) {
                throw new AssertionError("got " + all.size() + " records, want " + n);
            }
            consumer.poll(POLL).forEach(all::add);
        }
        equal("records", all.size(), n);
        return all;
    }

    /** Polls until a condition is true. */
    static void pollUntil(String what, Consumer<byte[], byte[]> consumer, BooleanSupplier condition) {
        until(what, () -> {
            consumer.poll(POLL);
            return condition.getAsBoolean();
        });
    }

    static void until(String what, Callable<Boolean> condition) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        try {
            while (!condition.call()) {
                if (System.nanoTime() > end) {
                    throw new AssertionError("timeout: " + what);
                }
                Thread.sleep(10);
            }
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new AssertionError(what, e);
        }
    }

    static void equal(String what, Object got, Object want) {
        if (!Objects.deepEquals(got, want)) {
            throw new AssertionError(what + ": got " + text(got) + ", want " + text(want));
        }
    }

    static void check(String what, boolean ok) {
        if (!ok) {
            throw new AssertionError(what);
        }
    }

    /** Checks that a step throws an exception of a class, and returns it. */
    static <E extends Throwable> E fails(Class<E> want, Step step) {
        try {
            step.run();
        } catch (Throwable e) {
            for (Throwable t = e; t != null; t = t.getCause()) {
                if (want.isInstance(t)) {
                    return want.cast(t);
                }
            }
            throw new AssertionError("got " + e + ", want " + want.getSimpleName(), e);
        }
        throw new AssertionError("got no error, want " + want.getSimpleName());
    }

    private static String text(Object o) {
        if (o instanceof byte[] bytes) {
            return Arrays.toString(bytes);
        }
        return o instanceof Collection<?> all && all.size() > 20 ? all.size() + " elements" : String.valueOf(o);
    }
}
