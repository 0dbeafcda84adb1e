package java_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tool is a call of a command line tool, with a pattern that its output must match.
type tool struct {
	name  string
	class string
	args  string // BOOTSTRAP, CONFIG and FOLDER are replaced
	stdin string
	want  string
	fails bool
}

// tools lists the calls in order; each depends on the ones before it.
var tools = []tool{
	{name: "topics-create", class: "TopicCommand", args: "--create --topic orders --partitions 3 " +
		"--replication-factor 1 --config retention.ms=100000", want: `Created topic orders\.`},
	{
		name: "topics-create-again", class: "TopicCommand", args: "--create --topic orders",
		want: `exists already`, fails: true,
	},
	{name: "topics-list", class: "TopicCommand", args: "--list", want: `(?m)^orders$`},
	{
		name: "topics-describe", class: "TopicCommand", args: "--describe --topic orders",
		want: `PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: retention\.ms=100000[^$]*` +
			`Partition: 2\s+Leader: 1\s+Replicas: 1\s+Isr: 1`,
	},
	{name: "topics-alter", class: "TopicCommand", args: "--alter --topic orders --partitions 4", want: `^$`},
	{
		name: "verifiable-producer", class: "VerifiableProducer", args: "--topic orders --max-messages 500",
		want: `"sent":500,"acked":500`,
	},
	{
		name: "verifiable-consumer", class: "VerifiableConsumer", args: "--topic orders --group-id verified " +
			"--max-messages 500 --reset-policy earliest --verbose",
		want: `"name":"offsets_committed"[^$]*"success":true[^$]*"name":"shutdown_complete"`,
	},
	{
		name: "verifiable-consumer-new-protocol", class: "VerifiableConsumer", args: "--topic orders --group-id " +
			"verified-anew --group-protocol consumer --max-messages 500 --reset-policy earliest",
		want: `"success":true[^$]*"name":"shutdown_complete"`,
	},
	{
		name: "producer-perf-test", class: "ProducerPerformance",
		args: "--topic orders --num-records 20000 --record-size 100 --throughput -1", want: `20000 records sent`,
	},
	{
		name: "consumer-perf-test", class: "ConsumerPerformance", args: "--topic orders --num-records 20000",
		want: `data\.consumed[^$]*, 20[0-9]{3}, `,
	},
	{
		name: "end-to-end-latency", class: "EndToEndLatency",
		args: "--topic latency --num-records 100 --producer-acks all --record-size 100", want: `Avg latency: `,
	},
	{name: "groups-list", class: "consumer.group.ConsumerGroupCommand", args: "--list", want: `(?m)^verified$`},
	{
		name: "groups-describe", class: "consumer.group.ConsumerGroupCommand", args: "--describe --group verified",
		want: `verified\s+orders\s+\d\s+\d+\s+\d+\s+\d+`,
	},
	{
		name: "groups-state", class: "consumer.group.ConsumerGroupCommand", args: "--describe --group verified --state",
		want: `verified\s+\S+\s+\(1\)\s+-\s+Empty\s+0`,
	},
	{name: "groups-reset", class: "consumer.group.ConsumerGroupCommand", args: "--group verified --topic orders " +
		"--reset-offsets --to-earliest --execute", want: `verified\s+orders\s+3\s+0`},
	{
		name: "groups-delete-offsets", class: "consumer.group.ConsumerGroupCommand",
		args: "--group verified --topic orders --delete-offsets", want: `orders\s+0\s+Successful`,
	},
	{
		name: "groups-delete", class: "consumer.group.ConsumerGroupCommand", args: "--delete --group verified-anew",
		want: `was successful`,
	},
	{name: "groups-of-all-types", class: "GroupsCommand", args: "--list", want: `verified\s+Classic\s+consumer`},
	{
		name: "configs-alter", class: "kafka.admin.ConfigCommand", args: "--alter --entity-type topics --entity-name " +
			"orders --add-config retention.bytes=5000,cleanup.policy=[compact,delete]",
		want: `Completed updating config for topic orders`,
	},
	{
		name: "configs-describe", class: "kafka.admin.ConfigCommand", args: "--describe --entity-type topics " +
			"--entity-name orders",
		want: `cleanup\.policy=compact,delete[^$]*retention\.bytes=5000[^$]*retention\.ms=100000`,
	},
	{
		name: "configs-of-the-broker", class: "kafka.admin.ConfigCommand",
		args: "--describe --entity-type brokers --entity-name 1 --all", want: `num\.partitions=1`,
	},
	{
		name: "console-producer", class: "ConsoleProducer", args: "--topic console --reader-property parse.key=true " +
			"--reader-property key.separator=: --reader-property parse.headers=true",
		stdin: "a:1\tk1:v1\na:2\tk2:v2\n", want: `^$`,
	},
	{name: "console-consumer", class: "consumer.ConsoleConsumer", args: "--topic console --from-beginning " +
		"--max-messages 2 --timeout-ms 30000 --formatter-property print.key=true --formatter-property " +
		"print.headers=true", want: `(?m)^a:1\tk1\tv1\na:2\tk2\tv2$`},
	{name: "get-offsets", class: "GetOffsetShell", args: "--topic console", want: `console:0:2`},
	{name: "broker-api-versions", class: "BrokerApiVersionsCommand", want: `\(id: 1 [^$]*Produce\(0\): 0 to 13`},
	{
		name: "configs-of-a-group", class: "kafka.admin.ConfigCommand", args: "--alter --entity-type groups " +
			"--entity-name workers --add-config share.auto.offset.reset=earliest",
		want: `Completed updating config for group workers`,
	},
	{
		name: "console-share-consumer", class: "consumer.ConsoleShareConsumer", args: "--topic console --group " +
			"workers --max-messages 2 --timeout-ms 30000", want: `(?m)^v1\nv2$`,
	},
	{name: "share-groups-list", class: "consumer.group.ShareGroupCommand", args: "--list", want: `(?m)^workers$`},
	{
		name: "share-groups-describe", class: "consumer.group.ShareGroupCommand", args: "--describe --group workers",
		want: `workers\s+console\s+0\s+2\s+0`,
	},
	{
		name: "share-groups-state", class: "consumer.group.ShareGroupCommand",
		args: "--describe --group workers --state",
		want: `workers\s+\S+\s+\(1\)\s+Empty\s+0`,
	},
	{name: "share-groups-reset", class: "consumer.group.ShareGroupCommand", args: "--group workers --topic console " +
		"--reset-offsets --to-earliest --execute", want: `workers\s+console\s+0\s+0`},
	{
		name: "share-groups-delete", class: "consumer.group.ShareGroupCommand", args: "--delete --group workers",
		want: `was successful`,
	},
	{
		name: "log-dirs", class: "LogDirsCommand", args: "--describe --topic-list console",
		want: `"partition":"console-0","size":[1-9]`,
	},
	{name: "cluster", class: "ClusterTool", args: "cluster-id", want: `Cluster ID: [\w-]{22}`},
	{name: "features", class: "FeatureCommand", args: "describe", want: `group\.version\s+SupportedMinVersion: 1`},
	{
		name: "delete-records", class: "DeleteRecordsCommand", args: "--offset-json-file FOLDER/records.json",
		want: `partition: console-0\s+low_watermark: 1`,
	},
	{name: "topics-delete", class: "TopicCommand", args: "--delete --topic orders", want: `^$`},
	{
		name: "transactions", class: "TransactionsCommand", args: "list",
		want: `does not support LIST_TRANSACTIONS`, fails: true,
	},
}

// TestTools runs Kafka's command line tools one after the other.
func TestTools(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	s := start(t)
	config := s.settings("client.properties")
	s.file("records.json", `{"version": 1, "partitions": [{"topic": "console", "partition": 0, "offset": 1}]}`)
	classpath, err := filepath.Abs(filepath.Join(libraries, "platform"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tools {
		t.Run(c.name, func(t *testing.T) {
			class := c.class
			if !strings.HasPrefix(class, "kafka.") {
				class = "org.apache.kafka.tools." + class
			}
			args := append(subcommand(c.args), "--bootstrap-server", s.Kafka, "--command-config", config)
			args = append(args, strings.Fields(strings.ReplaceAll(strings.Join(rest(c.args), " "), "FOLDER", s.dir))...)
			out, all, err := run(t, classpath+"/*", []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=error"},
				strings.NewReader(c.stdin), class, args...)
			if (err != nil) != c.fails {
				t.Errorf("%s %v: got %v, want failure %v\n%s", class, args, err, c.fails, all)
			}
			if c.fails {
				out = all
			}
			if !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("%s %v: got\n%s\nwant %s", class, args, all, c.want)
			}
		})
	}
}

// subcommand returns the word before the options, if there is one, and rest the other
// words: some tools require it before the options, some after them.
func subcommand(args string) []string {
	if all := strings.Fields(args); len(all) > 0 && all[0] == "cluster-id" {
		return all[:1]
	}
	return nil
}

func rest(args string) []string {
	all := strings.Fields(args)
	return all[len(subcommand(args)):]
}
