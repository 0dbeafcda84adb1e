import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Share groups. */
final class Shares {
    private Shares() {}

    static void steps() {
        Scenario.step("share/acknowledgements", Shares::acknowledgements);
        Scenario.step("share/implicit", Shares::implicit);
        Scenario.step("share/renew", Shares::renew);
        Scenario.step("share/administration", Shares::administration);
    }

    private static KafkaShareConsumer<byte[], byte[]> member(String group, Object... more) {
        List<Object> all = new ArrayList<>(List.of("group.id", group, "metadata.max.age.ms", 300));
        all.addAll(List.of(more));
        return new KafkaShareConsumer<>(Scenario.with(all.toArray()), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void set(String group, String name, String value) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        try (Admin admin = Scenario.admin()) {
            Scenario.get(admin.incrementalAlterConfigs(Map.of(resource,
                    List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)))).all());
        }
    }

    /** A topic with n records in partition 0, of which the group starts at the first. */
    private static String topic(int n) throws Exception {
        String topic = Scenario.topic(1);
        set("s-" + topic, "share.auto.offset.reset", "earliest");
        Scenario.fill(topic, 0, n);
        return topic;
    }

    /** Accepted records are gone, released ones come again with a count, rejected ones do not. */
    private static void acknowledgements() throws Exception {
        String topic = topic(30);
        Map<Long, Integer> seen = new HashMap<>();
        try (KafkaShareConsumer<byte[], byte[]> a = member("s-" + topic, "share.acknowledgement.mode", "explicit")) {
            a.subscribe(List.of(topic));
            Set<Long> done = new HashSet<>();
            long end = System.nanoTime() + Duration.ofSeconds(Scenario.SECONDS).toNanos();
            while (done.size() < 30 && System.nanoTime() < end) {
                for (ConsumerRecord<byte[], byte[]> r : a.poll(Scenario.POLL)) {
                    seen.merge(r.offset(), 1, Integer::sum);
                    int count = r.deliveryCount().orElse((short) 0);
                    Scenario.equal("delivery count of " + r.offset(), count, seen.get(r.offset()));
                    AcknowledgeType type = r.offset() % 3 == 0 ? AcknowledgeType.ACCEPT
                            : r.offset() % 3 == 1 ? AcknowledgeType.REJECT
                            : count < 3 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
                    a.acknowledge(r, type);
                    if (type != AcknowledgeType.RELEASE) {
                        done.add(r.offset());
                    }
                }
                a.commitSync().forEach((partition, failed) -> Scenario.check("commit of " + partition + ": " + failed, failed.isEmpty()));
            }
            Scenario.equal("acknowledged records", done.size(), 30);
        }
        for (long offset = 0; offset < 30; offset++) {
            Scenario.equal("deliveries of " + offset, seen.get(offset), offset % 3 == 2 ? 3 : 1);
        }
    }

    /** Two consumers that acknowledge with the next poll share the records. */
    private static void implicit() throws Exception {
        String topic = topic(500);
        Set<Long> seen = new HashSet<>();
        try (KafkaShareConsumer<byte[], byte[]> a = member("s-" + topic, "max.poll.records", 50);
                KafkaShareConsumer<byte[], byte[]> b = member("s-" + topic, "max.poll.records", 50)) {
            a.subscribe(List.of(topic));
            b.subscribe(List.of(topic));
            long end = System.nanoTime() + Duration.ofSeconds(Scenario.SECONDS).toNanos();
            while (seen.size() < 500 && System.nanoTime() < end) {
                for (KafkaShareConsumer<byte[], byte[]> c : List.of(a, b)) {
                    c.poll(Scenario.POLL).forEach(r -> Scenario.check("record " + r.offset() + " once", seen.add(r.offset())));
                }
            }
            Scenario.equal("records", seen.size(), 500);
            a.commitSync();
            b.commitSync();
        }
        try (Admin admin = Scenario.admin()) {
            Scenario.equal("lag", offset(admin, topic).lag().get(), 0L);
        }
    }

    /** A renewed record stays with its consumer. */
    private static void renew() throws Exception {
        String topic = topic(1);
        set("s-" + topic, "share.record.lock.duration.ms", "2000");
        try (KafkaShareConsumer<byte[], byte[]> a = member("s-" + topic, "share.acknowledgement.mode", "explicit")) {
            a.subscribe(List.of(topic));
            List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
            Scenario.until("the record", () -> {
                a.poll(Scenario.POLL).forEach(got::add);
                return !got.isEmpty();
            });
            Scenario.equal("lock", a.acquisitionLockTimeoutMs().get(), 2000);
            for (int round = 0; round < 4; round++) {
                int i = round;
                a.acknowledge(got.get(i), AcknowledgeType.RENEW);
                a.commitSync().forEach((partition, failed) -> Scenario.check("renewal: " + failed, failed.isEmpty()));
                Thread.sleep(900);
                Scenario.until("the renewed record again", () -> {
                    a.poll(Scenario.POLL).forEach(got::add);
                    return got.size() > i + 1;
                });
                Scenario.equal("deliveries", got.get(i + 1).deliveryCount().get(), (short) 1);
            }
            a.acknowledge(got.get(4), AcknowledgeType.ACCEPT);
            a.commitSync().forEach((partition, failed) -> Scenario.check("commit: " + failed, failed.isEmpty()));
        }
    }

    private static SharePartitionOffsetInfo offset(Admin admin, String topic) throws Exception {
        String group = "s-" + topic;
        return Scenario.get(admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group))
                .get(new TopicPartition(topic, 0));
    }

    private static void administration() throws Exception {
        String topic = topic(10);
        String group = "s-" + topic;
        TopicPartition p = new TopicPartition(topic, 0);
        try (Admin admin = Scenario.admin()) {
            try (KafkaShareConsumer<byte[], byte[]> a = member(group)) {
                a.subscribe(List.of(topic));
                Scenario.until("assigned", () -> {
                    a.poll(Scenario.POLL);
                    ShareGroupDescription d = Scenario.get(admin.describeShareGroups(List.of(group)).all()).get(group);
                    return d.groupState() == GroupState.STABLE && d.members().size() == 1
                            && d.members().iterator().next().assignment().topicPartitions().equals(Set.of(p));
                });
            }
            Scenario.until("empty", () -> Scenario.get(admin.describeShareGroups(List.of(group)).all()).get(group).groupState() == GroupState.EMPTY);
            Scenario.get(admin.alterShareGroupOffsets(group, Map.of(p, 4L)).all());
            Scenario.equal("start offset", offset(admin, topic).startOffset(), 4L);
            Scenario.equal("lag", offset(admin, topic).lag().get(), 6L);
            Scenario.get(admin.deleteShareGroupOffsets(group, Set.of(topic)).all());
            Scenario.check("no offsets", Scenario.get(admin.listGroups().all()).stream().noneMatch(g -> g.groupId().equals(group)));
        }
    }
}
