package kafkaapi_test

import (
	"fmt"
	"strings"
	"testing"

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
	for account, where := range map[string]*access.Restriction{
		"nobody": nil, "neighbour": {Tenant: "sales", Namespace: "us"}, "local": {Tenant: "public"},
	} {
		role := "namespace-owner"
		if where == nil {
			role = ""
		}
		token := w.attacker(account, role, where, "", false)
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
		existing, missing := answers(func(topic string) kmsg.Request {
			request := metadataOf(topic)
			request.Version = 12
			return request
		})
		check("Metadata", existing, missing)
		existing, missing = answers(func(topic string) kmsg.Request {
			r := kmsg.NewPtrListOffsetsRequest()
			row := kmsg.NewListOffsetsRequestTopic()
			row.Topic = topic
			row.Partitions = append(row.Partitions, kmsg.NewListOffsetsRequestTopicPartition())
			r.Version, r.Topics = 7, append(r.Topics, row)
			return r
		})
		check("ListOffsets", existing, missing)
		existing, missing = answers(func(topic string) kmsg.Request {
			return fetchFrom(0, -1, map[string][]int64{topic: {0}})
		})
		check("Fetch", existing, missing)
		existing, missing = answers(func(topic string) kmsg.Request {
			r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			r.Version, r.Group, r.MemberID, r.RebalanceTimeoutMillis = 1, "probe-"+account+topic, "m", 10_000
			r.SubscribedTopicNames, r.Topics = []string{topic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			return r
		})
		check("ConsumerGroupHeartbeat", existing, missing)
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
