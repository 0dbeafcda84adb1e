import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.InvalidRegularExpression;

/** Features of the newest clients only. */
public final class Newest {
    private Newest() {}

    public static void steps() {
        Scenario.step("newest/pattern-of-the-server", Newest::pattern);
        Scenario.step("newest/invalid-pattern", Newest::invalid);
        Scenario.step("newest/groups", Newest::groups);
        Scenario.step("newest/config-resources", Newest::resources);
        Shares.steps();
    }

    private static Object[] member(String group) {
        return new Object[] {"group.id", group, "group.protocol", "consumer"};
    }

    /** The server evaluates the pattern, also for topics that are created later. */
    private static void pattern() throws Exception {
        String one = Scenario.topic(1);
        String other = one + "-more";
        try (Admin admin = Scenario.admin(); KafkaConsumer<byte[], byte[]> a = Scenario.consumer(member("g-" + one))) {
            a.subscribe(new SubscriptionPattern(one + ".*"));
            Scenario.pollUntil("the existing topic", a, () -> a.assignment().size() == 1);
            Scenario.get(admin.createTopics(List.of(new NewTopic(other, 2, (short) 1))).all());
            Scenario.pollUntil("a topic created later", a, () -> a.assignment().size() == 3);
            Scenario.fill(other, 0, 3);
            Scenario.take(a, 3);
        }
    }

    private static void invalid() {
        try (KafkaConsumer<byte[], byte[]> a = Scenario.consumer(member("g-invalid-pattern"))) {
            a.subscribe(new SubscriptionPattern("(unclosed"));
            Scenario.fails(InvalidRegularExpression.class, () -> Scenario.take(a, 1));
        }
    }

    private static void groups() throws Exception {
        String topic = Scenario.topic(1);
        String group = "g-" + topic;
        try (Admin admin = Scenario.admin(); KafkaConsumer<byte[], byte[]> a = Scenario.consumer(member(group))) {
            a.subscribe(List.of(topic));
            Scenario.pollUntil("assigned", a, () -> a.assignment().size() == 1);
            GroupListing listed = Scenario.get(admin.listGroups().all()).stream().filter(g -> g.groupId().equals(group)).findFirst().get();
            Scenario.equal("type", listed.type().get(), GroupType.CONSUMER);
            Scenario.equal("protocol", listed.protocol(), "consumer");
            Scenario.until("stable", () -> Scenario.get(admin.describeConsumerGroups(List.of(group)).all()).get(group).groupState() == GroupState.STABLE);
            Scenario.fails(GroupIdNotFoundException.class, () -> Scenario.get(admin.describeClassicGroups(List.of(group)).all()));
            Scenario.fails(GroupIdNotFoundException.class, () -> Scenario.get(admin.describeConsumerGroups(List.of("none-" + group)).all()));
        }
    }

    private static void resources() throws Exception {
        String topic = Scenario.topic(1);
        try (Admin admin = Scenario.admin()) {
            Set<ConfigResource.Type> types = Set.of(ConfigResource.Type.TOPIC);
            Scenario.check("the topic is listed", Scenario.get(admin.listConfigResources(types, new org.apache.kafka.clients.admin.ListConfigResourcesOptions()).all())
                    .contains(new ConfigResource(ConfigResource.Type.TOPIC, topic)));
        }
    }
}
