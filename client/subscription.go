package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Subscription refers to a subscription of a topic, which need not exist. A subscription stores
// which messages are acknowledged. The server delivers every message to one of its consumers,
// and again until it is acknowledged.
type Subscription struct {
	// ReceiveOptions configure Messages and Handle; set them before the call.
	ReceiveOptions ReceiveOptions

	t    *Topic
	name string
	err  error
}

// Subscription returns a reference to a subscription of the topic. It makes no call.
func (t *Topic) Subscription(name string) *Subscription {
	s := &Subscription{t: t, name: name, err: t.err}
	if name == "" && s.err == nil {
		s.err = errors.New("subscription name is empty")
	}
	return s
}

// Topic returns the topic of the subscription.
func (s *Subscription) Topic() *Topic { return s.t }

// Name returns the name of the subscription.
func (s *Subscription) Name() string { return s.name }

// SubscriptionOptions are the options of a new subscription.
type SubscriptionOptions struct {
	// From is the position of the first message; Latest by default.
	From Position
	// AckTimeout is the default lease of its messages, 1 s to 12 h; 30 s when zero.
	AckTimeout time.Duration
	// MaxRedeliver is the maximum number of redeliveries; nil is unlimited. When it is
	// exceeded, the server moves the message to DeadLetterTopic, which is
	// TOPIC-SUBSCRIPTION-DLQ when empty.
	MaxRedeliver    *int
	DeadLetterTopic string
	// Filter is an expression that selects the messages of the subscription, such as
	// `payload.total > 100`; all when empty. The server acknowledges the others. ErrInvalid means
	// that the expression is not valid. A server of an earlier version ignores it.
	Filter string
	// Properties of the subscription.
	Properties map[string]string
}

// Create creates the subscription, and also the topic if it does not exist and the namespace
// allows it. ErrConflict means that the subscription exists. AtTime and AfterID need two calls:
// Create creates the subscription and then moves it.
func (s *Subscription) Create(ctx context.Context, options SubscriptionOptions) error {
	from := options.From
	if !from.creates() {
		from = Earliest
	}
	body, err := from.body()
	if err != nil {
		return fmt.Errorf("parsing the position: %w", err)
	}
	body["properties"] = orEmpty(options.Properties)
	if options.AckTimeout > 0 {
		body["ackTimeoutMillis"] = options.AckTimeout.Milliseconds()
	}
	if options.Filter != "" {
		body["filter"] = options.Filter
	}
	if options.MaxRedeliver != nil {
		policy := map[string]any{"maxRedeliverCount": *options.MaxRedeliver}
		if options.DeadLetterTopic != "" {
			policy["deadLetterTopic"] = s.t.c.Topic(options.DeadLetterTopic).Name()
		}
		body["deadLetterPolicy"] = policy
	}
	if err := s.call(ctx, http.MethodPut, "", nil, body, nil); err != nil || options.From.creates() {
		return err
	}
	return s.Reset(ctx, options.From)
}

// Delete deletes the subscription. Without force, ErrInvalid means that it has consumers.
func (s *Subscription) Delete(ctx context.Context, force bool) error {
	return s.call(ctx, http.MethodDelete, "", flagQuery("force", force), nil, nil)
}

// Reset moves the subscription: messages before the position count as acknowledged, those from
// the position as not delivered. All leases end.
func (s *Subscription) Reset(ctx context.Context, to Position) error {
	if !to.time.IsZero() {
		ms := max(to.time.UnixMilli(), 0)
		return s.callIdempotent(ctx, http.MethodPost, "/resetcursor/"+strconv.FormatInt(ms, 10), nil)
	}
	body, err := to.body()
	if err != nil {
		return fmt.Errorf("parsing the position: %w", err)
	}
	return s.callIdempotent(ctx, http.MethodPost, "/resetcursor", body)
}

// SkipAll acknowledges all messages of the backlog.
func (s *Subscription) SkipAll(ctx context.Context) error {
	return s.callIdempotent(ctx, http.MethodPost, "/skip_all", nil)
}

// Properties returns the properties of the subscription, which include its settings.
func (s *Subscription) Properties(ctx context.Context) (map[string]string, error) {
	var properties map[string]string
	err := s.call(ctx, http.MethodGet, "/properties", nil, nil, &properties)
	return properties, err
}

// SetProperties replaces the subscription's properties.
func (s *Subscription) SetProperties(ctx context.Context, properties map[string]string) error {
	return s.callIdempotent(ctx, http.MethodPut, "/properties", orEmpty(properties))
}

// Filter returns the expression that selects the messages of the subscription; "" for all.
func (s *Subscription) Filter(ctx context.Context) (string, error) {
	var result struct {
		Filter string `json:"filter"`
	}
	err := s.call(ctx, http.MethodGet, "/filter", nil, nil, &result)
	return result.Filter, err
}

// SetFilter replaces the filter; "" removes it. It applies to messages that were not delivered yet.
func (s *Subscription) SetFilter(ctx context.Context, filter string) error {
	return s.callIdempotent(ctx, http.MethodPut, "/filter", map[string]string{"filter": filter})
}

// Stats returns the statistics of the subscription.
func (s *Subscription) Stats(ctx context.Context) (SubscriptionStats, error) {
	if s.err != nil {
		return SubscriptionStats{}, s.err
	}
	stats, err := s.t.Stats(ctx)
	if err != nil {
		return SubscriptionStats{}, err
	}
	of, ok := stats.Subscriptions[s.name]
	if !ok {
		return of, &Error{
			Status: http.StatusNotFound, Code: http.StatusNotFound,
			Message: "topic " + s.t.ShortName() + " has no subscription " + s.name,
		}
	}
	return of, nil
}

// DeadLetterTopic returns the topic to which the server moves messages after too many
// redeliveries, or nil if the subscription has no limit.
func (s *Subscription) DeadLetterTopic(ctx context.Context) (*Topic, error) {
	properties, err := s.Properties(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := properties["maxRedeliverCount"]; !ok {
		return nil, nil
	}
	if name := properties["deadLetterTopic"]; name != "" {
		return s.t.c.Topic(name), nil
	}
	return s.t.c.Topic(s.t.tenant + "/" + s.t.namespace + "/" + s.t.name + "-" + s.name + "-DLQ"), nil
}

// PropertyOrigin is the property of a dead letter with the id of the original message.
const PropertyOrigin = "ORIGIN_MESSAGE_ID"

// path returns the path of the subscription for calls on messages.
func (s *Subscription) path(suffix string) string {
	return s.t.path(messageRoot, "/"+url.PathEscape(s.name)+suffix)
}

func (s *Subscription) call(ctx context.Context, method, suffix string, query url.Values, body, result any) error {
	if s.err != nil {
		return s.err
	}
	return s.t.call(ctx, method, s.t.admin("/subscription/"+url.PathEscape(s.name)+suffix), query, body, result)
}

func (s *Subscription) callIdempotent(ctx context.Context, method, suffix string, body any) error {
	if s.err != nil {
		return s.err
	}
	return s.t.callIdempotent(ctx, method, s.t.admin("/subscription/"+url.PathEscape(s.name)+suffix), nil, body, nil)
}

// settle makes a call on delivered messages. These calls are idempotent.
func (s *Subscription) settle(ctx context.Context, method, suffix string, body any) error {
	if s.err != nil {
		return s.err
	}
	return s.t.c.callJSON(ctx, &Request{Method: method, Path: s.path(suffix), Idempotent: true}, body, nil)
}

// Ack acknowledges up to MaxBatch messages by their ids, and returns when that is durable. A
// second acknowledgement is not an error. In a loop, use Delivery.Ack.
func (s *Subscription) Ack(ctx context.Context, ids ...string) error {
	return s.settle(ctx, http.MethodPut, "/messages", map[string]any{"messageIds": ids})
}

// AckCumulative acknowledges each message and all earlier ones of its partition.
func (s *Subscription) AckCumulative(ctx context.Context, ids ...string) error {
	return s.settle(ctx, http.MethodPut, "/message/cumulative", map[string]any{"messageIds": ids})
}

// Nack returns messages to the server, which delivers them again after the delay. ErrConflict
// means that the lease of one of them has expired, and that the call had no effect.
func (s *Subscription) Nack(ctx context.Context, delay time.Duration, ids ...string) error {
	body := map[string]any{"messageIds": ids}
	if delay > 0 {
		body["delayMillis"] = delay.Milliseconds()
	}
	return s.settle(ctx, http.MethodPost, "/message/nack", body)
}

// Extend renews the leases of messages from now. ErrConflict means that the lease of one of
// them has expired, and that the call had no effect.
func (s *Subscription) Extend(ctx context.Context, lease time.Duration, ids ...string) error {
	return s.settle(ctx, http.MethodPost, "/message/extend",
		map[string]any{"messageIds": ids, "ackTimeoutMillis": lease.Milliseconds()})
}

// Fetch leases up to maxMessages messages. It waits for the first one up to wait, which the
// server limits (30 s by default). An empty result is not an error. Fetch does not extend the
// leases; Messages does.
func (s *Subscription) Fetch(ctx context.Context, maxMessages int, wait, lease time.Duration) ([]Received, error) {
	if s.err != nil {
		return nil, s.err
	}
	body := map[string]any{"maxMessages": maxMessages, "timeoutMillis": wait.Milliseconds(), "encoding": "base64"}
	if lease > 0 {
		body["ackTimeoutMillis"] = lease.Milliseconds()
	}
	var result struct {
		Messages []wireReceived `json:"messages"`
	}
	// If the response is lost, the messages are delivered again when their leases expire.
	request := &Request{
		Method: http.MethodPost, Path: s.path("/messages"), Idempotent: true,
		Timeout: wait + s.t.c.timeout,
	}
	if err := s.t.c.callJSON(ctx, request, body, &result); err != nil {
		return nil, err
	}
	received := make([]Received, len(result.Messages))
	for i := range result.Messages {
		var err error
		if received[i], err = result.Messages[i].received(); err != nil {
			return nil, err
		}
	}
	return received, nil
}
