import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Topics and their configuration with the admin client. */
final class Topics {
    private Topics() {}

    static void steps() {
        Scenario.step("topics/create", Topics::create);
        Scenario.step("topics/create-refused", Topics::refused);
        Scenario.step("topics/create-responses", Topics::responses);
        Scenario.step("topics/describe", Topics::describe);
        Scenario.step("topics/delete", Topics::delete);
        Scenario.step("topics/partitions", Topics::partitions);
        Scenario.step("topics/delete-records", Topics::deleteRecords);
        Scenario.step("configs/describe", Topics::describeConfigs);
        Scenario.step("configs/alter", Topics::alter);
        Scenario.step("configs/alter-refused", Topics::alterRefused);
        Scenario.step("configs/lists", Topics::lists);
        Scenario.step("configs/compacted", Topics::compacted);
    }

    private static String name() {
        return "n-" + System.nanoTime();
    }

    private static void create() throws Exception {
        String a = name();
        String b = name();
        String c = name();
        try (Admin admin = Scenario.admin()) {
            List<NewTopic> all = List.of(
                    new NewTopic(a, Map.of(0, List.of(1), 1, List.of(1))),
                    new NewTopic(b, 3, (short) 1),
                    new NewTopic(c, Optional.empty(), Optional.empty()));
            Scenario.get(admin.createTopics(all, new CreateTopicsOptions().validateOnly(true)).all());
            Scenario.check("validating creates nothing", !Scenario.get(admin.listTopics().names()).contains(a));
            CreateTopicsResult created = admin.createTopics(all);
            Scenario.get(created.all());
            Scenario.equal("partitions", Scenario.get(created.numPartitions(a)), 2);
            Scenario.equal("partitions", Scenario.get(created.numPartitions(b)), 3);
            Scenario.equal("partitions", Scenario.get(created.numPartitions(c)), 1);
            Scenario.equal("replicas", Scenario.get(created.replicationFactor(b)), 1);
            Scenario.check("listed", Scenario.get(admin.listTopics().names()).containsAll(Set.of(a, b, c)));
            Scenario.check("an id", !Scenario.get(created.topicId(a)).equals(Uuid.ZERO_UUID));
        }
    }

    private static void refused() throws Exception {
        String a = Scenario.topic(1);
        try (Admin admin = Scenario.admin()) {
            for (boolean only : List.of(true, false)) {
                CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(only);
                Scenario.fails(TopicExistsException.class, () -> Scenario.get(admin.createTopics(List.of(new NewTopic(a, 1, (short) 1)), options).all()));
                Scenario.fails(InvalidTopicException.class, () -> Scenario.get(admin.createTopics(List.of(new NewTopic("a b", 1, (short) 1)), options).all()));
                Scenario.fails(InvalidTopicException.class, () -> Scenario.get(admin.createTopics(List.of(new NewTopic("x".repeat(250), 1, (short) 1)), options).all()));
                Scenario.fails(InvalidPartitionsException.class, () -> Scenario.get(admin.createTopics(List.of(new NewTopic(name(), 0, (short) 1)), options).all()));
                Scenario.fails(InvalidConfigurationException.class, () -> Scenario.get(admin.createTopics(List.of(new NewTopic(name(), 1, (short) 1).configs(Map.of("retention.ms", "soon"))), options).all()));
                Scenario.fails(InvalidConfigurationException.class, () -> Scenario.get(admin.createTopics(List.of(new NewTopic(name(), 1, (short) 1).configs(Map.of("no.such.config", "1"))), options).all()));
                Map<String, String> none = new HashMap<>();
                none.put("retention.bytes", null);
                Scenario.fails(InvalidConfigurationException.class, () -> Scenario.get(admin.createTopics(List.of(new NewTopic(name(), 1, (short) 1).configs(none)), options).all()));
            }
            String longest = "x".repeat(230) + System.nanoTime();
            Scenario.get(admin.createTopics(List.of(new NewTopic(longest.substring(0, 240), 1, (short) 1))).all());
        }
    }

    private static void responses() throws Exception {
        String a = name();
        try (Admin admin = Scenario.admin()) {
            CreateTopicsResult created = admin.createTopics(List.of(new NewTopic(a, 1, (short) 1).configs(Map.of("index.interval.bytes", "9999999"))));
            Config config = Scenario.get(created.config(a));
            Scenario.equal("default", config.get("cleanup.policy").value(), "delete");
            Scenario.equal("source", config.get("cleanup.policy").source(), ConfigEntry.ConfigSource.DEFAULT_CONFIG);
            Scenario.equal("set", config.get("index.interval.bytes").value(), "9999999");
            Scenario.equal("source", config.get("index.interval.bytes").source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
        }
    }

    private static void describe() throws Exception {
        String a = Scenario.topic(3);
        try (Admin admin = Scenario.admin()) {
            TopicDescription d = Scenario.get(admin.describeTopics(List.of(a)).allTopicNames()).get(a);
            Scenario.equal("name", d.name(), a);
            Scenario.equal("internal", d.isInternal(), false);
            Scenario.equal("partitions", d.partitions().size(), 3);
            for (int i = 0; i < 3; i++) {
                Scenario.equal("partition", d.partitions().get(i).partition(), i);
                Scenario.equal("replicas", d.partitions().get(i).replicas(), List.of(d.partitions().get(i).leader()));
                Scenario.equal("in sync", d.partitions().get(i).isr(), List.of(d.partitions().get(i).leader()));
            }
            Scenario.equal("by id", Scenario.get(admin.describeTopics(TopicCollection.ofTopicIds(List.of(d.topicId()))).allTopicIds()).get(d.topicId()).name(), a);
            Scenario.equal("partition by partition", Scenario.get(admin.describeTopics(List.of(a), new DescribeTopicsOptions().partitionSizeLimitPerResponse(1)).allTopicNames()).get(a).partitions().size(), 3);
            Scenario.check("operations", Scenario.get(admin.describeTopics(List.of(a), new DescribeTopicsOptions().includeAuthorizedOperations(true)).allTopicNames()).get(a).authorizedOperations().size() > 3);
            Scenario.fails(UnknownTopicOrPartitionException.class, () -> Scenario.get(admin.describeTopics(List.of(name())).allTopicNames()));
            Scenario.fails(UnknownTopicIdException.class, () -> Scenario.get(admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds()));
        }
    }

    private static void delete() throws Exception {
        String a = Scenario.topic(1);
        String b = Scenario.topic(2);
        try (Admin admin = Scenario.admin()) {
            Uuid id = Scenario.get(admin.describeTopics(List.of(b)).allTopicNames()).get(b).topicId();
            Scenario.get(admin.deleteTopics(List.of(a)).all());
            Scenario.get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
            Set<String> names = new HashSet<>(Scenario.get(admin.listTopics().names()));
            names.retainAll(Set.of(a, b));
            Scenario.equal("left", names, Set.of());
            Scenario.fails(UnknownTopicOrPartitionException.class, () -> Scenario.get(admin.deleteTopics(List.of(a)).all()));
            Scenario.fails(UnknownTopicIdException.class, () -> Scenario.get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all()));
        }
    }

    private static void partitions() throws Exception {
        String a = Scenario.topic(1);
        try (Admin admin = Scenario.admin()) {
            Scenario.get(admin.createPartitions(Map.of(a, NewPartitions.increaseTo(3)), new CreatePartitionsOptions().validateOnly(true)).all());
            Scenario.equal("validated only", Scenario.get(admin.describeTopics(List.of(a)).allTopicNames()).get(a).partitions().size(), 1);
            Scenario.get(admin.createPartitions(Map.of(a, NewPartitions.increaseTo(3))).all());
            Scenario.equal("grown", Scenario.get(admin.describeTopics(List.of(a)).allTopicNames()).get(a).partitions().size(), 3);
            for (boolean only : List.of(true, false)) {
                CreatePartitionsOptions options = new CreatePartitionsOptions().validateOnly(only);
                Scenario.fails(InvalidPartitionsException.class, () -> Scenario.get(admin.createPartitions(Map.of(a, NewPartitions.increaseTo(1)), options).all()));
                Scenario.fails(InvalidPartitionsException.class, () -> Scenario.get(admin.createPartitions(Map.of(a, NewPartitions.increaseTo(3)), options).all()));
                Scenario.fails(InvalidPartitionsException.class, () -> Scenario.get(admin.createPartitions(Map.of(a, NewPartitions.increaseTo(-22)), options).all()));
                Scenario.fails(UnknownTopicOrPartitionException.class, () -> Scenario.get(admin.createPartitions(Map.of(name(), NewPartitions.increaseTo(3)), options).all()));
            }
        }
    }

    private static void deleteRecords() throws Exception {
        String a = Scenario.topic(2);
        TopicPartition p = new TopicPartition(a, 0);
        Scenario.fill(a, 0, 10);
        try (Admin admin = Scenario.admin()) {
            Scenario.equal("low watermark", Scenario.get(admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(5))).lowWatermarks().get(p)).lowWatermark(), 5L);
            Scenario.equal("an earlier offset changes nothing", Scenario.get(admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(2))).lowWatermarks().get(p)).lowWatermark(), 5L);
            Scenario.fails(OffsetOutOfRangeException.class, () -> Scenario.get(admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(20))).all()));
            Scenario.fails(OffsetOutOfRangeException.class, () -> Scenario.get(admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(-2))).all()));
            Scenario.equal("to the end", Scenario.get(admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(-1))).lowWatermarks().get(p)).lowWatermark(), 10L);
        }
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private static Config config(Admin admin, String topic) throws Exception {
        return Scenario.get(admin.describeConfigs(List.of(resource(topic))).all()).get(resource(topic));
    }

    private static void describeConfigs() throws Exception {
        String a = Scenario.topic(1, "max.message.bytes", "500000", "retention.ms", "60000000");
        try (Admin admin = Scenario.admin()) {
            ConfigEntry e = config(admin, a).get("max.message.bytes");
            Scenario.equal("value", e.value(), "500000");
            Scenario.equal("default", e.isDefault(), false);
            Scenario.equal("sensitive", e.isSensitive(), false);
            Scenario.equal("read-only", e.isReadOnly(), false);
            Scenario.equal("value", config(admin, a).get("retention.ms").value(), "60000000");
            Scenario.equal("default", config(admin, a).get("segment.bytes").isDefault(), true);
            ConfigEntry full = Scenario.get(admin.describeConfigs(List.of(resource(a)), new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all()).get(resource(a)).get("retention.ms");
            Scenario.equal("type", full.type(), ConfigEntry.ConfigType.LONG);
            Scenario.check("a synonym", !full.synonyms().isEmpty());
            Scenario.check("documentation", full.documentation() != null && !full.documentation().isEmpty());
            Scenario.fails(UnknownTopicOrPartitionException.class, () -> config(admin, name()));
            Scenario.fails(InvalidTopicException.class, () -> config(admin, "(invalid topic)"));
        }
    }

    private static AlterConfigOp op(String name, String value, OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private static void alter(Admin admin, String topic, AlterConfigOp... ops) throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> map = Map.of(resource(topic), List.of(ops));
        Scenario.get(admin.incrementalAlterConfigs(map).all());
    }

    private static void alter() throws Exception {
        String a = Scenario.topic(1, "retention.ms", "1000000");
        try (Admin admin = Scenario.admin()) {
            Map<ConfigResource, Collection<AlterConfigOp>> map = Map.of(resource(a), List.of(op("compression.type", "lz4", OpType.SET)));
            Scenario.get(admin.incrementalAlterConfigs(map, new AlterConfigsOptions().validateOnly(true)).all());
            Scenario.equal("validated only", config(admin, a).get("compression.type").value(), "producer");
            alter(admin, a, op("compression.type", "lz4", OpType.SET), op("retention.ms", null, OpType.DELETE), op("min.cleanable.dirty.ratio", "0.9", OpType.SET));
            Scenario.equal("set", config(admin, a).get("compression.type").value(), "lz4");
            Scenario.equal("deleted", config(admin, a).get("retention.ms").isDefault(), true);
            Scenario.equal("set", config(admin, a).get("min.cleanable.dirty.ratio").value(), "0.9");
        }
    }

    private static void alterRefused() throws Exception {
        String a = Scenario.topic(1);
        String b = Scenario.topic(1);
        try (Admin admin = Scenario.admin()) {
            Map<ConfigResource, Collection<AlterConfigOp>> map = Map.of(
                    resource(a), List.of(op("min.cleanable.dirty.ratio", "0.75", OpType.SET), op("min.cleanable.dirty.ratio", "0.65", OpType.SET), op("compression.type", "gzip", OpType.SET)),
                    resource(b), List.of(op("min.cleanable.dirty.ratio", "0.9", OpType.SET)));
            var result = admin.incrementalAlterConfigs(map).values();
            Scenario.fails(InvalidRequestException.class, () -> Scenario.get(result.get(resource(a))));
            Scenario.get(result.get(resource(b)));
            Scenario.equal("no change of the rejected request", config(admin, a).get("compression.type").value(), "producer");
            Scenario.equal("all changes of the other request", config(admin, b).get("min.cleanable.dirty.ratio").value(), "0.9");
            Scenario.fails(InvalidConfigurationException.class, () -> alter(admin, a, op("compression.type", "gzip", OpType.APPEND)));
            Scenario.fails(InvalidConfigurationException.class, () -> alter(admin, a, op("compression.type", "gzip", OpType.SUBTRACT)));
            Scenario.fails(InvalidConfigurationException.class, () -> alter(admin, a, op("min.cleanable.dirty.ratio", "1.1", OpType.SET)));
            Scenario.fails(InvalidRequestException.class, () -> alter(admin, a, op("retention.bytes", null, OpType.SET)));
            Scenario.fails(UnknownTopicOrPartitionException.class, () -> alter(admin, name(), op("retention.bytes", "1", OpType.SET)));
        }
    }

    private static void lists() throws Exception {
        String a = Scenario.topic(1, "cleanup.policy", "delete");
        try (Admin admin = Scenario.admin()) {
            alter(admin, a, op("cleanup.policy", "compact", OpType.APPEND));
            Scenario.equal("appended", config(admin, a).get("cleanup.policy").value(), "delete,compact");
            alter(admin, a, op("cleanup.policy", "compact", OpType.APPEND));
            Scenario.equal("appended again", config(admin, a).get("cleanup.policy").value(), "delete,compact");
            alter(admin, a, op("cleanup.policy", "delete", OpType.SUBTRACT));
            Scenario.equal("subtracted", config(admin, a).get("cleanup.policy").value(), "compact");
        }
    }

    private static void compacted() throws Exception {
        String a = Scenario.topic(1, "cleanup.policy", "compact", "segment.ms", "60000", "min.compaction.lag.ms", "10", "delete.retention.ms", "10");
        List<String> keys = new ArrayList<>(List.of("k1", "k2", "k1"));
        try (var producer = Scenario.producer()) {
            for (String key : keys) {
                Scenario.send(producer, new org.apache.kafka.clients.producer.ProducerRecord<>(a, key.getBytes(), key.getBytes()));
            }
            Scenario.send(producer, new org.apache.kafka.clients.producer.ProducerRecord<>(a, "k2".getBytes(), null));
            Scenario.fails(org.apache.kafka.common.InvalidRecordException.class, () -> Scenario.send(producer, new org.apache.kafka.clients.producer.ProducerRecord<>(a, null, "no key".getBytes())));
        }
    }
}
