import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.errors.UnsupportedVersionException;

/** The admin client, except for topics. */
final class Administration {
    private Administration() {}

    static void steps() {
        Scenario.step("admin/cluster", Administration::cluster);
        Scenario.step("admin/broker-configs", Administration::brokerConfigs);
        Scenario.step("admin/log-dirs", Administration::logDirs);
        Scenario.step("admin/list-offsets", Administration::offsets);
        Scenario.step("admin/list-offsets-in-batches", Administration::offsetsInBatches);
        Scenario.step("admin/producers", Administration::producers);
        Scenario.step("admin/features", Administration::features);
        for (String protocol : List.of("classic", "consumer")) {
            Scenario.step("admin/groups/" + protocol, () -> groups(protocol));
        }
        Scenario.step("admin/group-offsets", Administration::groupOffsets);
        Scenario.step("admin/delete-group-offsets", Administration::deleteOffsets);
        Scenario.step("admin/not-served", Administration::notServed);
    }

    private static void cluster() throws Exception {
        try (Admin admin = Scenario.admin()) {
            DescribeClusterResult d = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            Scenario.equal("cluster id", Scenario.get(d.clusterId()).length(), 22);
            Set<Node> nodes = new HashSet<>(Scenario.get(d.nodes()));
            Scenario.equal("nodes", nodes, Set.of(Scenario.get(d.controller())));
            Scenario.check("operations", Scenario.get(d.authorizedOperations()) != null);
            Scenario.equal("not requested", Scenario.get(admin.describeCluster().authorizedOperations()), null);
        }
    }

    private static void brokerConfigs() throws Exception {
        try (Admin admin = Scenario.admin()) {
            String id = Scenario.get(admin.describeCluster().controller()).idString();
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, id);
            Config config = Scenario.get(admin.describeConfigs(List.of(broker)).all()).get(broker);
            Scenario.check("has entries", config.entries().size() > 3);
        }
    }

    private static void logDirs() throws Exception {
        String topic = Scenario.topic(3);
        Scenario.fill(topic, 0, 10);
        try (Admin admin = Scenario.admin()) {
            int id = Scenario.get(admin.describeCluster().controller()).id();
            Map<String, LogDirDescription> dirs = Scenario.get(admin.describeLogDirs(List.of(id)).allDescriptions()).get(id);
            Set<Integer> seen = new HashSet<>();
            for (LogDirDescription dir : dirs.values()) {
                Scenario.equal("error", dir.error(), null);
                dir.replicaInfos().forEach((p, info) -> {
                    if (p.topic().equals(topic)) {
                        seen.add(p.partition());
                        Scenario.equal("has bytes", info.size() > 0, p.partition() == 0);
                    }
                });
            }
            Scenario.equal("partitions", seen, Set.of(0, 1, 2));
            TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, id);
            Scenario.check("of a replica", Scenario.get(admin.describeReplicaLogDirs(List.of(replica)).all()).get(replica).getCurrentReplicaLogDir() != null);
        }
    }

    private static void offsets() throws Exception {
        String topic = Scenario.topic(2);
        TopicPartition p = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = Scenario.producer(); Admin admin = Scenario.admin()) {
            Map<OffsetSpec, Long> empty = Map.of(OffsetSpec.earliest(), 0L, OffsetSpec.latest(), 0L, OffsetSpec.maxTimestamp(), -1L, OffsetSpec.forTimestamp(1), -1L);
            for (Map.Entry<OffsetSpec, Long> e : empty.entrySet()) {
                Scenario.equal("empty, " + e.getKey().getClass().getSimpleName(), Scenario.get(admin.listOffsets(Map.of(p, e.getKey())).all()).get(p).offset(), e.getValue());
            }
            for (long t : List.of(10L, 30L, 20L)) {
                Scenario.send(producer, new ProducerRecord<>(topic, 0, t, null, new byte[1]));
            }
            Map<OffsetSpec, Long> full = Map.of(OffsetSpec.earliest(), 0L, OffsetSpec.latest(), 3L, OffsetSpec.maxTimestamp(), 1L, OffsetSpec.forTimestamp(15), 1L, OffsetSpec.forTimestamp(31), -1L);
            for (Map.Entry<OffsetSpec, Long> e : full.entrySet()) {
                ListOffsetsResultInfo got = Scenario.get(admin.listOffsets(Map.of(p, e.getKey())).all()).get(p);
                Scenario.equal("of three, " + e.getKey().getClass().getSimpleName(), got.offset(), e.getValue());
            }
            Scenario.equal("timestamp", Scenario.get(admin.listOffsets(Map.of(p, OffsetSpec.maxTimestamp())).all()).get(p).timestamp(), 30L);
        }
    }

    /** The largest timestamp is found within a batch, with every codec and timestamp type. */
    private static void offsetsInBatches() throws Exception {
        for (String type : List.of("CreateTime", "LogAppendTime")) {
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                String topic = Scenario.topic(1, "message.timestamp.type", type);
                TopicPartition p = new TopicPartition(topic, 0);
                try (KafkaProducer<byte[], byte[]> producer = Scenario.producer("compression.type", codec, "linger.ms", 60_000)) {
                    for (long t : List.of(10L, 30L, 20L)) {
                        producer.send(new ProducerRecord<>(topic, 0, t, null, new byte[1]));
                    }
                }
                try (Admin admin = Scenario.admin()) {
                    long want = type.equals("CreateTime") ? 1 : 0;
                    Scenario.equal(type + ", " + codec, Scenario.get(admin.listOffsets(Map.of(p, OffsetSpec.maxTimestamp())).all()).get(p).offset(), want);
                }
            }
        }
    }

    private static void producers() throws Exception {
        String topic = Scenario.topic(1);
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 3);
        try (Admin admin = Scenario.admin()) {
            List<ProducerState> active = Scenario.get(admin.describeProducers(List.of(p)).partitionResult(p)).activeProducers();
            Scenario.equal("producers", active.size(), 1);
            Scenario.equal("epoch", active.get(0).producerEpoch(), 0);
            Scenario.equal("sequence", active.get(0).lastSequence(), 2);
            Scenario.check("no transaction", active.get(0).currentTransactionStartOffset().isEmpty() && active.get(0).coordinatorEpoch().isEmpty());
        }
    }

    private static void features() throws Exception {
        try (Admin admin = Scenario.admin()) {
            FeatureMetadata f = Scenario.get(admin.describeFeatures().featureMetadata());
            Scenario.equal("group.version", f.finalizedFeatures().get("group.version").maxVersionLevel(), (short) 1);
        }
    }

    private static void groups(String protocol) throws Exception {
        String topic = Scenario.topic(2);
        String group = "g-" + topic;
        TopicPartition p = new TopicPartition(topic, 0);
        Scenario.fill(topic, 0, 1);
        GroupType type = protocol.equals("classic") ? GroupType.CLASSIC : GroupType.CONSUMER;
        try (Admin admin = Scenario.admin();
                KafkaConsumer<byte[], byte[]> a = Scenario.consumer("group.id", group, "group.protocol", protocol, "client.id", "it", "group.instance.id", "one")) {
            a.subscribe(List.of(topic));
            Scenario.take(a, 1);
            a.commitSync();
            Scenario.until("listed as stable", () -> Scenario.get(admin.listConsumerGroups(new ListConsumerGroupsOptions().withTypes(Set.of(type))).all()).stream()
                    .anyMatch(g -> g.groupId().equals(group) && g.toString().contains("Stable")));
            ConsumerGroupListing listed = Scenario.get(admin.listConsumerGroups().all()).stream().filter(g -> g.groupId().equals(group)).findFirst().get();
            Scenario.equal("type", listed.type().get(), type);
            Scenario.equal("simple", listed.isSimpleConsumerGroup(), false);
            Scenario.check("not listed with the other type", Scenario.get(admin.listConsumerGroups(new ListConsumerGroupsOptions().withTypes(Set.of(type == GroupType.CLASSIC ? GroupType.CONSUMER : GroupType.CLASSIC))).all()).stream()
                    .noneMatch(g -> g.groupId().equals(group)));

            ConsumerGroupDescription d = Scenario.get(admin.describeConsumerGroups(List.of(group), new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all()).get(group);
            Scenario.equal("members", d.members().size(), 1);
            d.members().forEach(m -> {
                Scenario.equal("client", m.clientId(), "it");
                Scenario.equal("instance", m.groupInstanceId().get(), "one");
                Scenario.equal("assignment", m.assignment().topicPartitions().size(), 2);
                Scenario.check("host", m.host().contains("127.0.0.1"));
            });
            Scenario.equal("assignor", d.partitionAssignor(), protocol.equals("classic") ? "range" : "uniform");
            Scenario.check("operations", d.authorizedOperations().size() >= 2);
            Scenario.equal("coordinator", d.coordinator(), Scenario.get(admin.describeCluster().controller()));

            Scenario.equal("offset", Scenario.get(admin.listConsumerGroupOffsets(group, new ListConsumerGroupOffsetsOptions().requireStable(true)).partitionsToOffsetAndMetadata()).get(p).offset(), 1L);
            Scenario.fails(GroupNotEmptyException.class, () -> Scenario.get(admin.deleteConsumerGroups(List.of(group)).all()));
            Scenario.fails(GroupSubscribedToTopicException.class, () -> Scenario.get(admin.deleteConsumerGroupOffsets(group, Set.of(p)).all()));
            Scenario.fails(UnknownMemberIdException.class, () -> Scenario.get(admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("nobody")))).all()));
            Scenario.get(admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("one")))).all());
            Scenario.equal("members", Scenario.get(admin.describeConsumerGroups(List.of(group)).all()).get(group).members().size(), 0);
        }
        try (Admin admin = Scenario.admin()) {
            Scenario.get(admin.deleteConsumerGroups(List.of(group)).all());
            Scenario.fails(GroupIdNotFoundException.class, () -> Scenario.get(admin.deleteConsumerGroups(List.of(group)).all()));
        }
    }

    private static void groupOffsets() throws Exception {
        String topic = Scenario.topic(2);
        String group = "g-" + topic;
        TopicPartition p = new TopicPartition(topic, 0);
        TopicPartition q = new TopicPartition(topic, 1);
        try (Admin admin = Scenario.admin()) {
            Scenario.get(admin.alterConsumerGroupOffsets(group, Map.of(p, new OffsetAndMetadata(5, "why"))).all());
            Map<TopicPartition, OffsetAndMetadata> got = Scenario.get(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
            Scenario.equal("offsets", got, Map.of(p, new OffsetAndMetadata(5, "why")));
            ConsumerGroupListing listed = Scenario.get(admin.listConsumerGroups().all()).stream().filter(g -> g.groupId().equals(group)).findFirst().get();
            Scenario.equal("simple", listed.isSimpleConsumerGroup(), true);
            Scenario.fails(UnknownTopicOrPartitionException.class, () -> Scenario.get(admin.alterConsumerGroupOffsets(group, Map.of(new TopicPartition("none-" + topic, 0), new OffsetAndMetadata(5))).all()));
            Scenario.get(admin.alterConsumerGroupOffsets(group, Map.of(q, new OffsetAndMetadata(7))).all());
            Scenario.equal("offsets", Scenario.get(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()).size(), 2);
            Scenario.equal("of an unknown group", Scenario.get(admin.listConsumerGroupOffsets("none-" + group).partitionsToOffsetAndMetadata()), Map.of());
        }
    }

    private static void deleteOffsets() throws Exception {
        String topic = Scenario.topic(1);
        String group = "g-" + topic;
        TopicPartition p = new TopicPartition(topic, 0);
        TopicPartition none = new TopicPartition("none-" + topic, 0);
        try (Admin admin = Scenario.admin()) {
            Scenario.fails(GroupIdNotFoundException.class, () -> Scenario.get(admin.deleteConsumerGroupOffsets(group, Set.of(p)).all()));
            Scenario.get(admin.alterConsumerGroupOffsets(group, Map.of(p, new OffsetAndMetadata(5))).all());
            var result = admin.deleteConsumerGroupOffsets(group, Set.of(p, none));
            Scenario.get(result.partitionResult(p));
            Scenario.fails(UnknownTopicOrPartitionException.class, () -> Scenario.get(result.partitionResult(none)));
        }
    }

    /** Unsupported requests fail immediately. */
    private static void notServed() throws Exception {
        try (Admin admin = Scenario.admin()) {
            Scenario.fails(UnsupportedVersionException.class, () -> Scenario.get(admin.describeUserScramCredentials().all()));
            Scenario.fails(UnsupportedVersionException.class, () -> Scenario.get(admin.describeClientQuotas(org.apache.kafka.common.quota.ClientQuotaFilter.all()).entities()));
            Scenario.fails(UnsupportedVersionException.class, () -> Scenario.get(admin.listPartitionReassignments().reassignments()));
            Scenario.fails(UnsupportedVersionException.class, () -> Scenario.get(admin.describeMetadataQuorum().quorumInfo()));
        }
    }
}
