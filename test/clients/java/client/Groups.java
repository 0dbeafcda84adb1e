import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InconsistentGroupProtocolException;
import org.apache.kafka.common.errors.InvalidGroupIdException;
import org.apache.kafka.common.errors.OffsetMetadataTooLarge;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;
import org.apache.kafka.common.errors.UnsupportedAssignorException;

/** Consumer groups; most steps run with both group protocols. */
final class Groups {
    private Groups() {}

    /** A step that takes the group protocol. */
    interface Step {
        void run(String protocol) throws Exception;
    }

    static void steps() {
        for (String protocol : List.of("classic", "consumer")) {
            Map<String, Step> steps = Map.ofEntries(
                    Map.entry("read-and-commit", Groups::readAndCommit),
                    Map.entry("commit-forms", Groups::commitForms),
                    Map.entry("auto-commit", Groups::autoCommit),
                    Map.entry("rebalance", Groups::rebalance),
                    Map.entry("callbacks", Groups::callbacks),
                    Map.entry("static-members", Groups::staticMembers),
                    Map.entry("pattern", Groups::pattern),
                    Map.entry("change-of-topics", Groups::changeOfTopics),
                    Map.entry("max-poll-interval", Groups::maxPollInterval),
                    Map.entry("metadata-too-large", Groups::metadataTooLarge),
                    Map.entry("manual-assignment", Groups::manual),
                    Map.entry("no-group", Groups::noGroup));
            steps.keySet().stream().sorted().forEach(name ->
                    Scenario.step("group/" + protocol + "/" + name, () -> steps.get(name).run(protocol)));
        }
        Scenario.step("group/classic/assignors", Groups::assignors);
        Scenario.step("group/consumer/server-assignors", Groups::serverAssignors);
        Scenario.step("group/protocol-changes-when-empty", Groups::change);
        Scenario.step("group/protocols-mix", Groups::mixed);
    }

    private static KafkaConsumer<byte[], byte[]> member(String protocol, String group, Object... more) {
        List<Object> all = new ArrayList<>(List.of("group.id", group, "group.protocol", protocol, "metadata.max.age.ms", 300));
        all.addAll(List.of(more));
        if (protocol.equals("classic") && !all.contains("session.timeout.ms")) {
            all.addAll(List.of("session.timeout.ms", 6000, "heartbeat.interval.ms", 200));
        }
        return Scenario.consumer(all.toArray());
    }

    private static void readAndCommit(String protocol) throws Exception {
        String topic = Scenario.topic(2);
        Scenario.fill(topic, 0, 50);
        Scenario.fill(topic, 1, 50);
        TopicPartition p = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic)) {
            a.subscribe(List.of(topic));
            Scenario.take(a, 100);
            a.commitSync();
            Scenario.equal("committed", a.committed(Set.of(p)).get(p).offset(), 50L);
        }
        Scenario.fill(topic, 0, 5);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic)) {
            a.subscribe(List.of(topic));
            Scenario.equal("continues at the committed offset", Scenario.take(a, 5).get(0).offset(), 50L);
        }
    }

    private static void commitForms(String protocol) throws Exception {
        String topic = Scenario.topic(2);
        Scenario.fill(topic, 0, 10);
        TopicPartition p = new TopicPartition(topic, 0);
        TopicPartition q = new TopicPartition(topic, 1);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic)) {
            a.subscribe(List.of(topic));
            Scenario.take(a, 10);
            a.commitSync(Map.of(p, new OffsetAndMetadata(3, java.util.Optional.of(0), "foo")));
            OffsetAndMetadata got = a.committed(Set.of(p)).get(p);
            Scenario.equal("committed", got, new OffsetAndMetadata(3, java.util.Optional.of(0), "foo"));
            a.commitSync(Map.of(p, new OffsetAndMetadata(4, "")));
            Scenario.equal("metadata", a.committed(Set.of(p)).get(p).metadata(), "");
            Scenario.equal("nothing committed for the other", a.committed(Set.of(p, q)).get(q), null);
            AtomicReference<Object> done = new AtomicReference<>();
            a.commitAsync(Map.of(p, new OffsetAndMetadata(7)), (offsets, e) -> done.set(e == null ? offsets : e));
            Scenario.pollUntil("the callback is called", a, () -> done.get() != null);
            Scenario.equal("callback", done.get(), Map.of(p, new OffsetAndMetadata(7)));
            Scenario.equal("committed", a.committed(Set.of(p)).get(p).offset(), 7L);
            // An offset beyond the end is allowed.
            a.commitSync(Map.of(p, new OffsetAndMetadata(1_000)));
            Scenario.equal("committed", a.committed(Set.of(p)).get(p).offset(), 1_000L);
        }
    }

    private static void autoCommit(String protocol) throws Exception {
        String topic = Scenario.topic(1);
        Scenario.fill(topic, 0, 10);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic, "enable.auto.commit", "true", "auto.commit.interval.ms", 100_000)) {
            a.subscribe(List.of(topic));
            Scenario.take(a, 10);
        }
        try (Admin admin = Scenario.admin()) {
            TopicPartition p = new TopicPartition(topic, 0);
            Scenario.equal("committed on close", Scenario.get(admin.listConsumerGroupOffsets("g-" + topic).partitionsToOffsetAndMetadata()).get(p).offset(), 10L);
        }
    }

    private static void rebalance(String protocol) throws Exception {
        String topic = Scenario.topic(4);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic)) {
            a.subscribe(List.of(topic));
            Scenario.pollUntil("one member has all partitions", a, () -> a.assignment().size() == 4);
            KafkaConsumer<byte[], byte[]> b = member(protocol, "g-" + topic);
            b.subscribe(List.of(topic));
            Scenario.until("two members share the partitions", () -> {
                a.poll(Scenario.POLL);
                b.poll(Scenario.POLL);
                return a.assignment().size() == 2 && b.assignment().size() == 2;
            });
            Set<TopicPartition> all = new HashSet<>(a.assignment());
            all.addAll(b.assignment());
            Scenario.equal("partitions", all.size(), 4);
            b.close();
            Scenario.pollUntil("one member has all partitions again", a, () -> a.assignment().size() == 4);
        }
    }

    private static void callbacks(String protocol) throws Exception {
        String topic = Scenario.topic(2);
        Scenario.fill(topic, 0, 10);
        AtomicInteger assigned = new AtomicInteger();
        AtomicInteger revoked = new AtomicInteger();
        KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic);
        a.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                assigned.addAndGet(partitions.size());
                TopicPartition p = new TopicPartition(topic, 0);
                if (partitions.contains(p)) {
                    Scenario.equal("beginning offset, read in the callback", a.beginningOffsets(List.of(p)).get(p), 0L);
                    a.seek(p, 8);
                    Scenario.equal("position, read in the callback", a.position(p), 8L);
                }
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                revoked.addAndGet(partitions.size());
                a.commitSync();
            }
        });
        Scenario.equal("from the position that the callback set", Scenario.take(a, 2).get(0).offset(), 8L);
        Scenario.equal("assigned", assigned.get(), 2);
        a.close();
        Scenario.equal("revoked", revoked.get(), 2);
        try (KafkaConsumer<byte[], byte[]> b = member(protocol, "g-" + topic)) {
            TopicPartition p = new TopicPartition(topic, 0);
            Scenario.equal("committed in the callback", b.committed(Set.of(p)).get(p).offset(), 10L);
        }
    }

    private static void staticMembers(String protocol) throws Exception {
        String topic = Scenario.topic(4);
        String group = "g-" + topic;
        KafkaConsumer<byte[], byte[]> a = member(protocol, group, "group.instance.id", "a");
        KafkaConsumer<byte[], byte[]> b = member(protocol, group, "group.instance.id", "b");
        a.subscribe(List.of(topic));
        b.subscribe(List.of(topic));
        Scenario.until("two members share the partitions", () -> {
            a.poll(Scenario.POLL);
            b.poll(Scenario.POLL);
            return a.assignment().size() == 2 && b.assignment().size() == 2;
        });
        Set<TopicPartition> had = Set.copyOf(b.assignment());
        b.close();
        KafkaConsumer<byte[], byte[]> again = member(protocol, group, "group.instance.id", "b");
        again.subscribe(List.of(topic));
        Scenario.until("the member has its previous partitions", () -> {
            a.poll(Scenario.POLL);
            again.poll(Scenario.POLL);
            return again.assignment().equals(had);
        });
        Scenario.equal("partitions of the other member", a.assignment().size(), 2);
        KafkaConsumer<byte[], byte[]> twin = member(protocol, group, "group.instance.id", "b");
        twin.subscribe(List.of(topic));
        if (protocol.equals("classic")) {
            // The new member wins, the old one is fenced.
            Scenario.until("the new member has the partitions", () -> {
                a.poll(Scenario.POLL);
                twin.poll(Scenario.POLL);
                return twin.assignment().equals(had);
            });
            Scenario.fails(FencedInstanceIdException.class, () -> Scenario.take(again, 1));
        } else {
            // The consumer protocol rejects a member whose instance id is in use.
            Scenario.fails(UnreleasedInstanceIdException.class, () -> Scenario.take(twin, 1));
        }
        twin.close();
        again.close();
        a.close();
    }

    private static void pattern(String protocol) throws Exception {
        String one = Scenario.topic(1);
        String name = one.substring(0, one.indexOf('-'));
        String other = "other-" + one;
        try (Admin admin = Scenario.admin();
                KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + one)) {
            a.subscribe(Pattern.compile("(other-)?" + one));
            Scenario.pollUntil("the existing topic", a, () -> a.assignment().size() == 1);
            Scenario.get(admin.createTopics(List.of(new org.apache.kafka.clients.admin.NewTopic(other, 2, (short) 1))).all());
            Scenario.pollUntil("a new topic of " + name, a, () -> a.assignment().size() == 3);
            Scenario.get(admin.deleteTopics(List.of(other)).all());
            Scenario.pollUntil("the deleted topic is gone", a, () -> a.assignment().size() == 1);
            a.unsubscribe();
            Scenario.equal("nothing", a.assignment().size(), 0);
        }
    }

    private static void changeOfTopics(String protocol) throws Exception {
        String one = Scenario.topic(2);
        String two = Scenario.topic(1);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + one)) {
            a.subscribe(List.of(one));
            Scenario.pollUntil("one", a, () -> a.assignment().size() == 2);
            a.subscribe(List.of(one, two));
            Scenario.pollUntil("more", a, () -> a.assignment().size() == 3);
            a.subscribe(List.of(two));
            Scenario.pollUntil("fewer", a, () -> a.assignment().equals(Set.of(new TopicPartition(two, 0))));
        }
    }

    private static void maxPollInterval(String protocol) throws Exception {
        String topic = Scenario.topic(1);
        Scenario.fill(topic, 0, 5);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic, "max.poll.interval.ms", 700)) {
            a.subscribe(List.of(topic));
            Scenario.take(a, 5);
            Thread.sleep(2_500);
            if (protocol.equals("classic")) {
                Scenario.fails(CommitFailedException.class, a::commitSync);
            }
            Scenario.pollUntil("the member rejoins", a, () -> a.assignment().size() == 1);
        }
    }

    private static void metadataTooLarge(String protocol) throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic)) {
            a.assign(List.of(p));
            Scenario.fails(OffsetMetadataTooLarge.class, () -> a.commitSync(Map.of(p, new OffsetAndMetadata(1, "x".repeat(5_000)))));
        }
    }

    private static void manual(String protocol) throws Exception {
        String topic = Scenario.topic(2);
        Scenario.fill(topic, 0, 10);
        TopicPartition p = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic, "max.poll.records", 5)) {
            a.assign(List.of(p));
            Scenario.equal("nothing committed", a.committed(Set.of(p)).get(p), null);
            Scenario.take(a, 5);
            a.commitSync();
        }
        try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic)) {
            a.assign(List.of(p));
            Scenario.equal("position", a.position(p), 5L);
            Scenario.equal("first", Scenario.take(a, 5).get(0).offset(), 5L);
        }
    }

    private static void noGroup(String protocol) throws Exception {
        String topic = Scenario.topic(1);
        Scenario.fill(topic, 0, 3);
        TopicPartition p = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> a = Scenario.consumer("group.protocol", protocol)) {
            Scenario.fails(InvalidGroupIdException.class, () -> a.subscribe(List.of(topic)));
            a.assign(List.of(p));
            Scenario.take(a, 3);
            Scenario.fails(InvalidGroupIdException.class, a::commitSync);
        }
    }

    private static void assignors() throws Exception {
        for (Class<?> assignor : List.of(RangeAssignor.class, RoundRobinAssignor.class, StickyAssignor.class, CooperativeStickyAssignor.class)) {
            String topic = Scenario.topic(4);
            try (KafkaConsumer<byte[], byte[]> a = member("classic", "g-" + topic, "partition.assignment.strategy", assignor.getName());
                    KafkaConsumer<byte[], byte[]> b = member("classic", "g-" + topic, "partition.assignment.strategy", assignor.getName())) {
                a.subscribe(List.of(topic));
                b.subscribe(List.of(topic));
                Scenario.until("two members share the partitions", () -> {
                    a.poll(Scenario.POLL);
                    b.poll(Scenario.POLL);
                    return a.assignment().size() == 2 && b.assignment().size() == 2;
                });
            }
        }
        String topic = Scenario.topic(1);
        try (KafkaConsumer<byte[], byte[]> a = member("classic", "g-" + topic, "partition.assignment.strategy", RangeAssignor.class.getName());
                KafkaConsumer<byte[], byte[]> b = member("classic", "g-" + topic, "partition.assignment.strategy", RoundRobinAssignor.class.getName())) {
            a.subscribe(List.of(topic));
            Scenario.pollUntil("the first member has joined", a, () -> !a.assignment().isEmpty());
            b.subscribe(List.of(topic));
            Scenario.fails(InconsistentGroupProtocolException.class, () -> Scenario.take(b, 1));
        }
    }

    private static void serverAssignors() throws Exception {
        for (String assignor : List.of("uniform", "range")) {
            String topic = Scenario.topic(4);
            try (KafkaConsumer<byte[], byte[]> a = member("consumer", "g-" + topic, "group.remote.assignor", assignor);
                    KafkaConsumer<byte[], byte[]> b = member("consumer", "g-" + topic, "group.remote.assignor", assignor)) {
                a.subscribe(List.of(topic));
                b.subscribe(List.of(topic));
                Scenario.until("two members share the partitions", () -> {
                    a.poll(Scenario.POLL);
                    b.poll(Scenario.POLL);
                    return a.assignment().size() == 2 && b.assignment().size() == 2;
                });
            }
        }
        String topic = Scenario.topic(1);
        try (KafkaConsumer<byte[], byte[]> a = member("consumer", "g-" + topic, "group.remote.assignor", "none-such")) {
            a.subscribe(List.of(topic));
            Scenario.fails(UnsupportedAssignorException.class, () -> Scenario.take(a, 1));
        }
    }

    private static void change() throws Exception {
        String topic = Scenario.topic(1);
        Scenario.fill(topic, 0, 10);
        long next = 0;
        for (String protocol : List.of("classic", "consumer", "classic")) {
            try (KafkaConsumer<byte[], byte[]> a = member(protocol, "g-" + topic, "max.poll.records", 1)) {
                a.subscribe(List.of(topic));
                List<ConsumerRecord<byte[], byte[]>> got = Scenario.take(a, 1);
                Scenario.equal("offset", got.get(0).offset(), next++);
                a.commitSync();
            }
        }
    }

    /** All members of a group use one group protocol: a member with the other one is rejected. */
    /** Members of both protocols share a group, whichever came first, and the second takes over from the first. */
    private static void mixed() throws Exception {
        for (String[] order : new String[][] {{"classic", "consumer"}, {"consumer", "classic"}}) {
            String topic = Scenario.topic(2);
            try (KafkaConsumer<byte[], byte[]> b = member(order[1], "g-" + topic)) {
                try (KafkaConsumer<byte[], byte[]> a = member(order[0], "g-" + topic)) {
                    a.subscribe(List.of(topic));
                    Scenario.pollUntil("the first member has joined", a, () -> a.assignment().size() == 2);
                    b.subscribe(List.of(topic));
                    Scenario.pollUntil("members of both protocols share the partitions", a, () -> {
                        b.poll(Scenario.POLL);
                        return a.assignment().size() == 1 && b.assignment().size() == 1
                                && !a.assignment().equals(b.assignment());
                    });
                }
                Scenario.pollUntil("the second member has all partitions", b, () -> b.assignment().size() == 2);
            }
        }
    }
}
