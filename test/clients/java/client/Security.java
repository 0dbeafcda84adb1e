import java.util.List;
import java.util.Map;
import java.util.Properties;
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

/** TLS, the two SASL mechanisms, and what happens to those who may not. */
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

    private static Object[] overTLS() {
        return new Object[] {
            "bootstrap.servers", Scenario.setting("tls"), "security.protocol", "SASL_SSL",
            "ssl.truststore.type", "PEM", "ssl.truststore.location", Scenario.setting("ca"),
        };
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
        roundTrip(overTLS());
    }

    private static void unknownAuthority() {
        try (Admin admin = Scenario.admin("bootstrap.servers", Scenario.setting("tls"), "security.protocol", "SASL_SSL")) {
            Scenario.fails(SslAuthenticationException.class, () -> Scenario.get(admin.describeCluster().nodes()));
        }
    }

    /** The client gets its tokens itself, with the credentials of a service account. */
    private static void oauth(boolean tls) throws Exception {
        Properties p = new Properties();
        if (tls) {
            Object[] over = overTLS();
            for (int i = 0; i < over.length; i += 2) {
                p.put(over[i], over[i + 1]);
            }
        }
        p.put("sasl.mechanism", "OAUTHBEARER");
        p.put("sasl.login.callback.handler.class", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler");
        p.put("sasl.oauthbearer.token.endpoint.url", Scenario.setting("token.endpoint"));
        p.put("sasl.jaas.config", String.format(
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=\"%s\" clientSecret=\"%s\" scope=\"%s\";",
                Scenario.setting("client.id"), Scenario.setting("client.secret"), Scenario.setting("scope")));
        roundTrip(p.entrySet().stream().flatMap(e -> java.util.stream.Stream.of(e.getKey(), e.getValue())).toArray());
    }

    private static void wrongToken() {
        try (Admin admin = Scenario.admin("sasl.jaas.config", String.format(PLAIN, "user", "token:nonsense"))) {
            SaslAuthenticationException e = Scenario.fails(SaslAuthenticationException.class, () -> Scenario.get(admin.describeCluster().nodes()));
            Scenario.so("a text that says why: " + e.getMessage(), e.getMessage().length() > 10);
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
            Scenario.so("the namespace is named: " + e.getMessage(), e.getMessage().contains("no/where"));
        }
    }

    /** An account without any role. */
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
