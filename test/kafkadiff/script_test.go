package kafkadiff

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// namePrefix begins all names that the test uses.
const namePrefix = "kd-"

// conversation is a case of the test: the requests that a script sends to both brokers, once
// for each version of an API that both advertise.
type conversation struct {
	name     string
	key      int16 // API whose versions are tried
	min, max int16 // limits of the versions; max 0 means none
	run      func(s *script)
}

// script sends the requests of a conversation to one broker and collects the responses.
type script struct {
	*testing.T
	broker  *broker
	wire    *wire
	version int16 // of the API under test
	key     int16
	n       normaliser
	steps   []step
}

// step is a response of a script.
type step struct {
	name   string
	answer answer
}

// failed is what a script panics with to end itself.
type failed struct{ error }

// play runs a conversation with a broker and returns the responses.
func play(t *testing.T, b *broker, c *conversation, version int16) (steps []step, err error) {
	t.Helper()
	prefix := fmt.Sprintf("%s%s-v%d-", namePrefix, strings.ReplaceAll(c.name, " ", "-"), version)
	s := &script{
		T: t, broker: b, version: version, key: c.key,
		n: normaliser{prefix: prefix, topics: make(map[[16]byte]string), members: make(map[string]string)},
	}
	defer func() {
		if s.wire != nil {
			_ = s.wire.Close()
		}
		switch reason := recover().(type) {
		case nil:
		case failed:
			steps, err = s.steps, reason.error
		default:
			panic(reason)
		}
	}()
	s.connect()
	c.run(s)
	return s.steps, nil
}

// fail ends the script if err is not nil.
func (s *script) fail(err error) {
	if err != nil {
		panic(failed{fmt.Errorf("%s: %w", s.broker.name, err)})
	}
}

// connect opens the script's connection.
func (s *script) connect() {
	w, err := s.broker.connect(s.Context())
	s.fail(err)
	if s.wire != nil {
		_ = s.wire.Close()
	}
	s.wire = w
}

// nameOf returns the name of a topic or group of this script.
func (s *script) nameOf(label string) string { return s.n.prefix + label }

// send sends a request and compares the response: of the API under test in its version, of
// others in the largest one.
func (s *script) send(name string, request kmsg.Request) kmsg.Response {
	response, err := s.attempt(request)
	if errors.Is(err, errNoResponse) {
		s.steps = append(s.steps, step{name, answer{"connection": "closed"}})
		s.connect()
		return nil
	}
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", name, err))
	}
	s.steps = append(s.steps, step{name, s.n.normalise(response)})
	return response
}

// do sends a request that prepares the comparison. The response is not compared.
func (s *script) do(request kmsg.Request) kmsg.Response {
	response, err := s.attempt(request)
	s.fail(err)
	return response
}

func (s *script) attempt(request kmsg.Request) (kmsg.Response, error) {
	version := s.broker.common(request.Key()).max
	if request.Key() == s.key {
		version = s.version
	}
	request.SetVersion(version)
	return s.wire.request(request)
}

// until repeats a request until its response fulfils a condition, because Kafka applies some
// changes shortly after it has responded.
func (s *script) until(request func() kmsg.Request, done func(kmsg.Response) bool) kmsg.Response {
	ctx, cancel := context.WithTimeout(s.Context(), responseTimeout)
	defer cancel()
	for {
		r := request()
		r.SetVersion(s.broker.common(r.Key()).max)
		response, err := s.wire.request(r)
		s.fail(err)
		if done(response) {
			return response
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			s.fail(fmt.Errorf("response of API %d does not become what the script expects: %v", r.Key(),
				s.n.normalise(response)))
		}
	}
}

// topic creates a topic and returns its name and id once every broker leads its partitions.
func (s *script) topic(label string, partitions int32, configs ...string) (string, [16]byte) {
	name := s.nameOf(label)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 10_000
	row := kmsg.NewCreateTopicsRequestTopic()
	row.Topic, row.NumPartitions, row.ReplicationFactor = name, partitions, 1
	for i := 0; i+1 < len(configs); i += 2 {
		row.Configs = append(row.Configs,
			kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: kmsg.StringPtr(configs[i+1])})
	}
	create.Topics = append(create.Topics, row)
	create.SetVersion(s.broker.common(create.Key()).max)
	response, err := s.wire.request(create)
	s.fail(err)
	created, _ := response.(*kmsg.CreateTopicsResponse)
	if code := created.Topics[0].ErrorCode; code != 0 {
		s.fail(fmt.Errorf("creating topic %s: error %d", name, code))
	}
	return name, s.leads(label)
}

// leads waits until a topic has leaders and returns its id.
func (s *script) leads(label string) [16]byte {
	name := s.nameOf(label)
	request := func() kmsg.Request {
		r := kmsg.NewPtrMetadataRequest()
		r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr(name)})
		return r
	}
	response := s.until(request, func(response kmsg.Response) bool {
		metadata, _ := response.(*kmsg.MetadataResponse)
		if metadata.Topics[0].ErrorCode != 0 {
			return false
		}
		for i := range metadata.Topics[0].Partitions {
			if p := &metadata.Topics[0].Partitions[i]; p.ErrorCode != 0 || p.Leader < 0 {
				return false
			}
		}
		return true
	})
	metadata, _ := response.(*kmsg.MetadataResponse)
	id := metadata.Topics[0].TopicID
	s.n.topics[id] = label
	ends := func() kmsg.Request {
		r := kmsg.NewPtrListOffsetsRequest()
		r.ReplicaID = -1
		row := kmsg.NewListOffsetsRequestTopic()
		row.Topic = name
		for i := range metadata.Topics[0].Partitions {
			part := kmsg.NewListOffsetsRequestTopicPartition()
			part.Partition, part.Timestamp, part.CurrentLeaderEpoch = int32(i), -1, -1
			row.Partitions = append(row.Partitions, part)
		}
		r.Topics = append(r.Topics, row)
		return r
	}
	s.until(ends, func(response kmsg.Response) bool {
		r, _ := response.(*kmsg.ListOffsetsResponse)
		for i := range r.Topics[0].Partitions {
			if r.Topics[0].Partitions[i].ErrorCode != 0 {
				return false
			}
		}
		return true
	})
	return id
}
