import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words with Kafka Streams, at least once:
 * WordCount LOGIN-PROPERTIES STREAMS-PROPERTIES STATE-DIRECTORY.
 * The second round starts with an empty state directory, so its counts are restored from
 * the changelog topic.
 */
public final class WordCount {
    private static final String APPLICATION = "word-count";

    private WordCount() {}

    public static void main(String[] args) throws Exception {
        Properties login = Settings.load(args[0]);
        Properties settings = Settings.load(args[0]);
        settings.putAll(Settings.load(args[1]));
        try (Admin admin = Admin.create(login)) {
            admin.createTopics(List.of(new NewTopic("lines", 2, (short) 1), new NewTopic("counts", 2, (short) 1))).all().get();
        }
        round(login, settings, args[2] + "/first", List.of("all streams lead to kafka", "hello kafka streams", "join kafka summit"),
                Map.of("all", 1L, "kafka", 3L, "streams", 2L, "summit", 1L));
        System.out.println("ok counts 0 ms");
        round(login, settings, args[2] + "/second", List.of("kafka again"), Map.of("all", 1L, "kafka", 4L, "streams", 2L, "again", 1L));
        System.out.println("ok restored-from-the-changelog 0 ms");
        topics(login);
        System.out.println("ok internal-topics 0 ms");
        System.out.println("end");
    }

    private static void round(Properties login, Properties settings, String state, List<String> lines, Map<String, Long> want) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("lines")
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts-store"))
                .toStream()
                .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), Settings.with(settings,
                "state.dir", state, "commit.interval.ms", 200, "session.timeout.ms", 6000))) {
            streams.start();
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(login, new StringSerializer(), new StringSerializer())) {
                for (String line : lines) {
                    producer.send(new ProducerRecord<>("lines", line)).get();
                }
            }
            await(login, want);
            streams.close(Duration.ofSeconds(20));
        }
    }

    /** Reads the counts from their start until they match. */
    private static void await(Properties login, Map<String, Long> want) {
        Map<String, Long> got = new HashMap<>();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(
                Settings.with(login, "group.id", "reader-" + System.nanoTime(), "auto.offset.reset", "earliest"), new StringDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of("counts"));
            while (!got.entrySet().containsAll(want.entrySet())) {
                if (System.nanoTime() > end) {
                    System.out.println("FAIL counts got " + got + ", want " + want);
                    System.exit(1);
                }
                consumer.poll(Duration.ofMillis(200)).forEach(r -> got.put(r.key(), r.value()));
            }
        }
    }

    private static void topics(Properties login) throws Exception {
        try (Admin admin = Admin.create(login)) {
            Map<String, String> policies = Map.of(
                    APPLICATION + "-counts-store-changelog", "compact", APPLICATION + "-words-repartition", "delete");
            for (Map.Entry<String, String> e : policies.entrySet()) {
                ConfigResource r = new ConfigResource(ConfigResource.Type.TOPIC, e.getKey());
                String got = admin.describeConfigs(List.of(r)).all().get().get(r).get("cleanup.policy").value();
                if (!got.equals(e.getValue())) {
                    System.out.println("FAIL internal-topics cleanup.policy of " + e.getKey() + " is " + got + ", want " + e.getValue());
                    System.exit(1);
                }
            }
        }
    }
}
