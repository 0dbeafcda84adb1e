package kafkaapi

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"net"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// Topics finds, lists and creates topics. messaging.KafkaLog implements it.
type Topics interface {
	KafkaTopic(ctx context.Context, name names.Topic) (*messaging.KafkaTopic, error)
	KafkaTopicByID(ctx context.Context, id uint64) (*messaging.KafkaTopic, error)
	KafkaTopics(ctx context.Context, ns names.Namespace, visit func(*messaging.KafkaTopic) bool) error
	CreateKafkaTopic(ctx context.Context, name names.Topic, partitions int32, config map[string]string,
		dryRun bool) (*messaging.KafkaTopic, error)
	// HasTopicCached, PartitionsOf, TopicNameCached and TopicsRevision read the cached catalogue of this member.
	HasTopicCached(name names.Topic) bool
	PartitionsOf(id engine.TopicID) int32
	TopicNameCached(id engine.TopicID) (names.Topic, bool)
	TopicsRevision() uint64
}

// Appends waits for new records. messaging.KafkaLog implements it.
type Appends interface {
	// WaitForAppend returns when one of the positions has been written, or when ctx ends or the broker
	// drains.
	WaitForAppend(ctx context.Context, positions []engine.PartitionPosition) error
}

// Namespaces lists the namespaces that topic names may refer to. messaging.Catalogue implements it.
type Namespaces interface {
	Tenants(ctx context.Context) ([]string, error)
	Namespaces(ctx context.Context, tenant string) ([]names.Namespace, error)
	HasNamespace(ctx context.Context, name names.Namespace) (bool, error)
	// HasNamespaceCached reads the cached catalogue of this member.
	HasNamespaceCached(name names.Namespace) bool
	AutoCreatesTopics(ns names.Namespace) bool
}

// operationsNotRequested is the value of authorized operations that the client did not request.
const operationsNotRequested = -1 << 31

// advertised returns the address that the client should connect to: the configured one, else the
// name of the TLS handshake, else the address that the client is connected to.
func (c *conn) advertised() (host string, port int32) {
	local, localPort, _ := net.SplitHostPort(c.socket.LocalAddr().String())
	number, _ := strconv.ParseInt(localPort, 10, 32)
	host, port = local, int32(number)
	if c.sni != "" {
		host = c.sni
	}
	if given := c.listener.Advertised; given != "" {
		host = given
		if h, p, err := net.SplitHostPort(given); err == nil {
			host = h
			if n, err := strconv.ParseInt(p, 10, 32); err == nil {
				port = int32(n)
			}
		}
	}
	return host, port
}

// clusterID returns the cluster's UID in 22 characters (base64url).
func (c *Cluster) clusterID() string {
	raw, err := hex.DecodeString(strings.ReplaceAll(c.UID, "-", ""))
	if err != nil || len(raw) != 16 {
		return c.UID
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (c *call) rack() *string {
	if c.session.cluster.Location == "" {
		return nil
	}
	return text(c.session.cluster.Location)
}

// handle returns a function that starts a call: fill completes the response when it is due.
func handle[Request kmsg.Request, Response kmsg.Response](fill func(ctx context.Context, c *call, request Request,
	response Response) error,
) func(context.Context, *call) pendingResponse {
	return func(_ context.Context, c *call) pendingResponse {
		request, _ := c.request.(Request)
		response, _ := request.ResponseKind().(Response)
		return whenDue(func(ctx context.Context) (encodable, error) {
			return response, fill(ctx, c, request, response)
		})
	}
}

// describe is handle for responses that may be large, of APIs that only read. The server bounds how many are built
// at a time, and builds a response again after it had to wait for room.
func describe[Request kmsg.Request, Response kmsg.Response](fill func(ctx context.Context, c *call, request Request,
	response Response) error,
) func(context.Context, *call) pendingResponse {
	return func(_ context.Context, c *call) pendingResponse {
		request, _ := c.request.(Request)
		return pendingResponse{repeatable: true, build: func(ctx context.Context) (encodable, error) {
			response, _ := request.ResponseKind().(Response)
			return response, fill(ctx, c, request, response)
		}}
	}
}
