package kafkaapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// TestAttackProbeNamespaces checks that callers cannot find out which namespaces exist in which they have no
// permission: neither by connecting to them, nor by dotted topic names.
func TestAttackProbeNamespaces(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	w.ok(w.broker.Catalogue.CreateNamespace(t.Context(), names.Namespace{Tenant: "sales", Name: "us"},
		messaging.Policies{}))
	attempts, successes := 0, 0
	for account, as := range map[string]struct {
		role  string
		where *access.Restriction
	}{
		"nobody":    {},
		"neighbour": {"namespace-owner", &access.Restriction{Tenant: "sales", Namespace: "us"}},
		"local":     {"namespace-owner", &access.Restriction{Tenant: "public"}},
		"producer":  {"topic-producer", &access.Restriction{Tenant: "public"}},
		"consumer":  {"topic-consumer", &access.Restriction{Tenant: "public"}},
	} {
		token := w.attacker(account, as.role, as.where, "", false)
		login := func(namespace string) string {
			r := &rawClient{harness: w, token: token, responses: make(map[int16]int)}
			r.dial(w.address)
			defer r.close()
			handshake := kmsg.NewPtrSASLHandshakeRequest()
			handshake.Version, handshake.Mechanism = 1, "PLAIN"
			roundTrip[kmsg.Response](r, handshake)
			authenticate := kmsg.NewPtrSASLAuthenticateRequest()
			authenticate.Version, authenticate.SASLAuthBytes = 2, []byte("\x00"+namespace+"\x00"+token)
			got := roundTrip[*kmsg.SASLAuthenticateResponse](r, authenticate)
			message := ""
			if got.ErrorMessage != nil {
				message = strings.ReplaceAll(*got.ErrorMessage, namespace, "NAMESPACE")
			}
			return fmt.Sprint(got.ErrorCode, message)
		}
		answers := func(request func(topic string) kmsg.Request) (existing, missing string) {
			r := w.wire(token)
			got := [2]string{}
			for i, topic := range []string{"sales.eu.x", "sales.no.x"} {
				response := roundTrip[kmsg.Response](r, request(topic))
				got[i] = strings.ReplaceAll(fmt.Sprintf("%x", response.AppendTo(nil)), fmt.Sprintf("%x", topic), "NAME")
			}
			return got[0], got[1]
		}
		check := func(how, existing, missing string) {
			if attempts++; existing != missing {
				successes++
				t.Errorf("%s as %s: got %s for an existing namespace and %s for a missing one", how, account, existing,
					missing)
			}
		}
		check("connecting", login("sales/eu"), login("sales/no"))
		for how, request := range probesByName("probe-" + account) {
			existing, missing := answers(request)
			check(how, existing, missing)
		}
	}
	tally.Attack(t, "find out over the Kafka protocol which namespaces exist", attempts, successes)
}

// TestAttackProbeTopicIDs checks that callers get the same answer for the id of a topic that they have no permission
// on and for an id that does not exist.
func TestAttackProbeTopicIDs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	existing := w.topicID("orders")
	missing := existing
	missing[15] += 100
	attempts, successes := 0, 0
	for account, where := range map[string]*access.Restriction{"nobody": nil, "owner": onTopic("mine")} {
		role := "topic-owner"
		if where == nil {
			role = ""
		}
		r := w.wire(w.attacker(account, role, where, "", false))
		for how, request := range map[string]func(id [16]byte) kmsg.Request{
			"Metadata": func(id [16]byte) kmsg.Request {
				request := kmsg.NewPtrMetadataRequest()
				row := kmsg.NewMetadataRequestTopic()
				request.Version, row.TopicID = 12, id
				request.Topics = append(request.Topics, row)
				return request
			},
			"Fetch": func(id [16]byte) kmsg.Request {
				request := fetchFrom(0, -1, map[string][]int64{"": {0}})
				request.Version, request.Topics[0].TopicID = 13, id
				return request
			},
			"DeleteTopics": func(id [16]byte) kmsg.Request {
				request := kmsg.NewPtrDeleteTopicsRequest()
				row := kmsg.NewDeleteTopicsRequestTopic()
				request.Version, row.TopicID = 6, id
				request.Topics = append(request.Topics, row)
				return request
			},
			"OffsetCommit": func(id [16]byte) kmsg.Request {
				at := &groupTarget{name: "probe-" + account, topicID: id, generation: -1}
				request := commitAttempts(10, at)[1]
				request.SetVersion(10)
				return request
			},
			"OffsetFetch": func(id [16]byte) kmsg.Request {
				request := offsetFetchAttempts(10, &groupTarget{name: "probe-" + account, topicID: id})[0]
				request.SetVersion(10)
				return request
			},
		} {
			got := [2]string{}
			for i, id := range [][16]byte{existing, missing} {
				text := fmt.Sprintf("%x", roundTrip[kmsg.Response](r, request(id)).AppendTo(nil))
				got[i] = strings.ReplaceAll(text, fmt.Sprintf("%x", id), "ID")
			}
			if attempts++; got[0] != got[1] {
				successes++
				t.Errorf("%s as %s: got %s for an existing id and %s for a missing one", how, account, got[0], got[1])
			}
		}
	}
	tally.Attack(t, "find out over the Kafka protocol which topic ids exist", attempts, successes)
}

// probesByName returns the requests that name a topic, as functions of the name. None of them changes anything that
// the next one depends on.
func probesByName(group string) map[string]func(topic string) kmsg.Request {
	at := func(topic string) *groupTarget { return &groupTarget{name: group, topic: topic, generation: -1} }
	all := map[string]func(topic string) kmsg.Request{
		"Metadata": func(topic string) kmsg.Request { return versioned(12, metadataOf(topic)) },
		"Metadata with creation, partition": func(topic string) kmsg.Request {
			request := metadataOf(topic + "-partition-1")
			request.AllowAutoTopicCreation = true
			return versioned(12, request)
		},
		"DeleteTopics": func(topic string) kmsg.Request {
			r := kmsg.NewPtrDeleteTopicsRequest()
			r.Topics = append(r.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &topic})
			return versioned(6, r)
		},
		"CreatePartitions": func(topic string) kmsg.Request {
			r := kmsg.NewPtrCreatePartitionsRequest()
			r.Topics = append(r.Topics, kmsg.CreatePartitionsRequestTopic{Topic: topic, Count: 9})
			return versioned(3, r)
		},
		"DescribeConfigs": func(topic string) kmsg.Request {
			r := kmsg.NewPtrDescribeConfigsRequest()
			row := kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic}
			r.Resources = append(r.Resources, row)
			return versioned(4, r)
		},
		"AlterConfigs": func(topic string) kmsg.Request {
			r := kmsg.NewPtrAlterConfigsRequest()
			row := kmsg.AlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic}
			r.Resources = append(r.Resources, row)
			return versioned(2, r)
		},
		"IncrementalAlterConfigs": func(topic string) kmsg.Request {
			r := kmsg.NewPtrIncrementalAlterConfigsRequest()
			r.Resources = append(r.Resources, kmsg.IncrementalAlterConfigsRequestResource{
				ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic,
				Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: str("1")}},
			})
			return versioned(1, r)
		},
		"Produce": func(topic string) kmsg.Request {
			r := kmsg.NewPtrProduceRequest()
			r.Acks, r.TimeoutMillis = -1, 1000
			r.Topics = append(r.Topics, kmsg.ProduceRequestTopic{
				Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: 0}},
			})
			return versioned(9, r)
		},
		"Fetch": func(topic string) kmsg.Request { return fetchFrom(0, -1, map[string][]int64{topic: {0}}) },
		"ListOffsets": func(topic string) kmsg.Request {
			r := kmsg.NewPtrListOffsetsRequest()
			row := kmsg.NewListOffsetsRequestTopic()
			row.Topic = topic
			row.Partitions = append(row.Partitions, kmsg.NewListOffsetsRequestTopicPartition())
			r.Topics = append(r.Topics, row)
			return versioned(7, r)
		},
		"OffsetForLeaderEpoch": func(topic string) kmsg.Request {
			r := kmsg.NewPtrOffsetForLeaderEpochRequest()
			row := kmsg.NewOffsetForLeaderEpochRequestTopic()
			row.Topic = topic
			row.Partitions = append(row.Partitions, kmsg.NewOffsetForLeaderEpochRequestTopicPartition())
			r.Topics = append(r.Topics, row)
			return versioned(4, r)
		},
		"DeleteRecords": func(topic string) kmsg.Request {
			r := kmsg.NewPtrDeleteRecordsRequest()
			r.Topics = append(r.Topics, kmsg.DeleteRecordsRequestTopic{
				Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0}},
			})
			return versioned(2, r)
		},
		"DescribeProducers": func(topic string) kmsg.Request {
			r := kmsg.NewPtrDescribeProducersRequest()
			r.Topics = append(r.Topics, kmsg.DescribeProducersRequestTopic{Topic: topic, Partitions: []int32{0}})
			return r
		},
		"DescribeTopicPartitions": func(topic string) kmsg.Request {
			r := kmsg.NewPtrDescribeTopicPartitionsRequest()
			r.Topics = append(r.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: topic})
			return r
		},
		"DescribeLogDirs": func(topic string) kmsg.Request {
			r := kmsg.NewPtrDescribeLogDirsRequest()
			r.Topics = append(r.Topics, kmsg.DescribeLogDirsRequestTopic{Topic: topic, Partitions: []int32{0}})
			return versioned(4, r)
		},
		"OffsetCommit": func(topic string) kmsg.Request { return versioned(8, commitAttempts(8, at(topic))[1]) },
		"OffsetFetch":  func(topic string) kmsg.Request { return versioned(8, offsetFetchAttempts(8, at(topic))[0]) },
		"OffsetDelete": func(topic string) kmsg.Request {
			r := kmsg.NewPtrOffsetDeleteRequest()
			r.Group = group
			r.Topics = append(r.Topics, kmsg.OffsetDeleteRequestTopic{
				Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}},
			})
			return r
		},
		"JoinGroup": func(topic string) kmsg.Request {
			r := kmsg.NewPtrJoinGroupRequest()
			r.Group, r.ProtocolType, r.SessionTimeoutMillis = group+topic, "consumer", 10 // too short
			r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscriptionTo(topic)}}
			return versioned(5, r)
		},
		"ConsumerGroupHeartbeat": func(topic string) kmsg.Request {
			r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			r.Group, r.MemberID, r.RebalanceTimeoutMillis = group+topic, "m", 10_000
			r.SubscribedTopicNames, r.Topics = []string{topic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			return versioned(1, r)
		},
	}
	for _, dryRun := range []bool{false, true} {
		for _, invalid := range []struct {
			suffix     string
			partitions int32
			config     string
		}{{"", 0, ""}, {"", 1 << 20, ""}, {"-partition-1", 1, ""}, {"", 1, "no.such.config"}} {
			all[fmt.Sprintf("CreateTopics %+v, dry run %t", invalid, dryRun)] = func(topic string) kmsg.Request {
				return creationOf(topic+invalid.suffix, invalid.partitions, invalid.config, dryRun)
			}
		}
	}
	return all
}

func versioned(version int16, request kmsg.Request) kmsg.Request {
	request.SetVersion(version)
	return request
}

// creationOf returns a request that creates a topic, with a configuration if it is not empty.
func creationOf(topic string, partitions int32, config string, dryRun bool) *kmsg.CreateTopicsRequest {
	request := kmsg.NewPtrCreateTopicsRequest()
	row := kmsg.NewCreateTopicsRequestTopic()
	row.Topic, row.NumPartitions = topic, partitions
	if config != "" {
		row.Configs = append(row.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: config, Value: str("1")})
	}
	request.Version, request.ValidateOnly, request.Topics = 7, dryRun, append(request.Topics, row)
	return request
}

// TestCreateInHiddenNamespace has a caller who may create topics in the default namespace only. A dotted name of an
// existing namespace is rejected as a local name, because Kafka clients would not reach that topic; one of a missing
// namespace is a local name. While the default namespace is full, both get the same answer.
func TestCreateInHiddenNamespace(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	where := &access.Restriction{Tenant: "public", Namespace: "default"}
	r := w.wire(w.attacker("local", "namespace-owner", where, "", false))
	limit := func(topics int) {
		w.ok(w.broker.Catalogue.UpdateNamespace(t.Context(), names.PublicDefault, func(p *messaging.Policies) error {
			p.MaxTopics = &topics
			return nil
		}))
	}
	metadata := func(topic string) int16 {
		request := metadataOf(topic)
		request.Version, request.AllowAutoTopicCreation = 12, true
		return roundTrip[*kmsg.MetadataResponse](r, request).Topics[0].ErrorCode
	}
	create := func(topic string, dryRun bool) int16 {
		return roundTrip[*kmsg.CreateTopicsResponse](r, creationOf(topic, 1, "", dryRun)).Topics[0].ErrorCode
	}
	for _, full := range []bool{true, false} {
		existing, missing := kerr.InvalidTopicException.Code, int16(0)
		if limit(0); full {
			limit(1)
			existing, missing = kerr.PolicyViolation.Code, kerr.PolicyViolation.Code
		}
		for name, want := range map[string]int16{"sales.eu.": existing, "sales.no.": missing, "none.no.": missing} {
			got := []int16{create(name+"a", true), create(name+"a", false), metadata(name + "b")}
			if !slices.Equal(got, []int16{want, want, want}) {
				t.Errorf("%s, full %t: got codes %v of a dry run, CreateTopics and Metadata, want %d", name, full, got,
					want)
			}
		}
	}
	for _, local := range []string{"a", "b"} {
		for _, topic := range []names.Topic{
			publicTopic("sales.eu." + local),
			{Namespace: names.Namespace{Tenant: "sales", Name: "eu"}, Local: local},
		} {
			if exists, err := w.broker.Catalogue.HasTopic(t.Context(), topic); exists || err != nil {
				t.Errorf("%s: got %t, %v, want no such topic", topic, exists, err)
			}
		}
	}
}
