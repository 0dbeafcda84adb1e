import java.io.FileReader;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupAuthorizationException;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnsupportedSaslMechanismException;

/** TLS, the two SASL mechanisms, and missing permissions. */
final class Security {
    private static final String PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%s\" password=\"%s\";";

    private Security() {}

    static void steps() {
        Scenario.step("security/tls", Security::tls);
        Scenario.step("security/tls-unknown-authority", Security::unknownAuthority);
        Scenario.step("security/oauthbearer", () -> oauth(false));
        Scenario.step("security/oauthbearer-tls", () -> oauth(true));
        Scenario.step("security/wrong-token", Security::wrongToken);
        Scenario.step("security/wrong-mechanism", Security::wrongMechanism);
        Scenario.step("security/no-sasl", Security::noSasl);
        Scenario.step("security/namespace", Security::namespace);
        Scenario.step("security/no-roles", Security::noRoles);
    }

    /** Returns a settings file as pairs of name and value. */
    private static Object[] file(String setting) throws IOException {
        Properties p = new Properties();
        try (FileReader reader = new FileReader(Scenario.setting(setting))) {
            p.load(reader);
        }
        return p.entrySet().stream().flatMap(e -> Stream.of(e.getKey(), e.getValue())).toArray();
    }

    private static void roundTrip(Object... more) throws Exception {
        String topic = Scenario.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer(more);
                KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer(more)) {
            Scenario.send(producer, new ProducerRecord<>(topic, "hello".getBytes()));
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Scenario.equal("value", Scenario.take(consumer, 1).get(0).value(), "hello".getBytes());
        }
    }

    private static void tls() throws Exception {
        roundTrip(file("tls"));
    }

    private static void unknownAuthority() throws IOException {
        Object[] tls = file("tls");
        for (int i = 0; i < tls.length; i += 2) {
            if (tls[i].toString().startsWith("ssl.truststore")) {
                tls[i] = "client.id"; // use the system's certificate authorities
            }
        }
        try (Admin admin = Scenario.admin(tls)) {
            Scenario.fails(SslAuthenticationException.class, () -> Scenario.get(admin.describeCluster().nodes()));
        }
    }

    /** The client requests its tokens itself, with the credentials of a service account. */
    private static void oauth(boolean tls) throws Exception {
        Stream<Object> all = Stream.of(file("oauth"));
        roundTrip((tls ? Stream.concat(all, Stream.of(file("tls"))) : all).toArray());
    }

    private static void wrongToken() {
        try (Admin admin = Scenario.admin("sasl.jaas.config", String.format(PLAIN, "user", "token:nonsense"))) {
            SaslAuthenticationException e = Scenario.fails(SaslAuthenticationException.class, () -> Scenario.get(admin.describeCluster().nodes()));
            Scenario.check("message with a reason: " + e.getMessage(), e.getMessage().length() > 10);
        }
    }

    private static void wrongMechanism() {
        try (Admin admin = Scenario.admin("sasl.mechanism", "SCRAM-SHA-512", "sasl.jaas.config",
                "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"a\" password=\"b\";")) {
            Scenario.fails(UnsupportedSaslMechanismException.class, () -> Scenario.get(admin.describeCluster().nodes()));
        }
    }

    private static void noSasl() {
        try (Admin admin = Scenario.admin("security.protocol", "PLAINTEXT", "default.api.timeout.ms", 3000, "request.timeout.ms", 1000)) {
            Scenario.fails(org.apache.kafka.common.errors.TimeoutException.class, () -> Scenario.get(admin.describeCluster().nodes()));
        }
    }

    private static void namespace() {
        try (Admin admin = Scenario.admin("sasl.jaas.config", String.format(PLAIN, "no/where", "token:" + Scenario.setting("token")))) {
            SaslAuthenticationException e = Scenario.fails(SaslAuthenticationException.class, () -> Scenario.get(admin.describeCluster().nodes()));
            Scenario.check("message with the namespace: " + e.getMessage(), e.getMessage().contains("no/where"));
        }
    }

    /** A service account without roles. */
    private static void noRoles() throws Exception {
        String topic = Scenario.topic(1);
        Object[] as = {"sasl.jaas.config", String.format(PLAIN, "public/default", "token:" + Scenario.setting("nobody"))};
        try (Admin admin = Scenario.admin(as);
                KafkaProducer<byte[], byte[]> producer = Scenario.producer("sasl.jaas.config", as[1], "enable.idempotence", "false");
                KafkaConsumer<byte[], byte[]> consumer = Scenario.consumer("sasl.jaas.config", as[1], "group.id", "g-" + topic)) {
            TopicAuthorizationException e = Scenario.fails(TopicAuthorizationException.class, () -> Scenario.send(producer, new ProducerRecord<>(topic, new byte[1])));
            Scenario.equal("which", e.unauthorizedTopics(), java.util.Set.of(topic));
            consumer.subscribe(List.of(topic));
            Scenario.fails(org.apache.kafka.common.errors.AuthorizationException.class, () -> Scenario.take(consumer, 1));
            Scenario.fails(GroupAuthorizationException.class, () -> Scenario.get(admin.listConsumerGroupOffsets("g-" + topic).partitionsToOffsetAndMetadata()));
            Scenario.equal("topics", Scenario.get(admin.listTopics().names()), java.util.Set.of());
            Scenario.fails(TopicAuthorizationException.class, () -> Scenario.get(admin.deleteTopics(List.of(topic)).all()));
            Scenario.fails(TopicAuthorizationException.class, () -> Scenario.get(admin.createPartitions(Map.of(topic, org.apache.kafka.clients.admin.NewPartitions.increaseTo(2))).all()));
        }
    }
}
