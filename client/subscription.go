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

// Subscription is a subscription of a topic, whether or not it exists. It
// remembers what its readers have dealt with: every message is delivered to one
// of them, and again until it is acknowledged.
type Subscription struct {
	// ReceiveOptions are used by Messages and Handle; set them before.
	ReceiveOptions ReceiveOptions

	t    *Topic
	name string
	err  error
}

// Subscription names a subscription of the topic.
func (t *Topic) Subscription(name string) *Subscription {
	s := &Subscription{t: t, name: name, err: t.err}
	if name == "" && s.err == nil {
		s.err = errors.New("the name of the subscription is empty")
	}
	return s
}

// Topic is the topic that it belongs to.
func (s *Subscription) Topic() *Topic { return s.t }

// Name is the subscription's.
func (s *Subscription) Name() string { return s.name }

// SubscriptionOptions are those of a new subscription.
type SubscriptionOptions struct {
	// From is the first message that it gets; Latest by default.
	From Position
	// AckTimeout is the lease of its messages where a call does not say otherwise,
	// 1 s to 12 h; 30 s when zero.
	AckTimeout time.Duration
	// MaxRedeliver, when not nil, has a message that was delivered that many times
	// again and given back once more moved to DeadLetterTopic, which is
	// TOPIC-SUBSCRIPTION-DLQ when empty.
	MaxRedeliver    *int
	DeadLetterTopic string
	// Properties of the subscription.
	Properties map[string]string
}

// Create makes the subscription, and the topic where there is none and the
// namespace allows it. ErrConflict says that there is one. A subscription from a
// time, or from behind an id, takes two calls: it is made, and then moved.
func (s *Subscription) Create(ctx context.Context, options SubscriptionOptions) error {
	from := options.From
	if !from.creates() {
		from = Earliest
	}
	body, err := from.body()
	if err != nil {
		return fmt.Errorf("the position: %w", err)
	}
	body["properties"] = orEmpty(options.Properties)
	if options.AckTimeout > 0 {
		body["ackTimeoutMillis"] = options.AckTimeout.Milliseconds()
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

// Delete removes the subscription. Unless force is set, ErrInvalid says that
// somebody consumes from it.
func (s *Subscription) Delete(ctx context.Context, force bool) error {
	return s.call(ctx, http.MethodDelete, "", flag("force", force), nil, nil)
}

// Reset moves the subscription: everything before the position counts as
// acknowledged, everything from it on as not delivered. Leases end.
func (s *Subscription) Reset(ctx context.Context, to Position) error {
	if !to.time.IsZero() {
		ms := max(to.time.UnixMilli(), 0)
		return s.repeatable(ctx, http.MethodPost, "/resetcursor/"+strconv.FormatInt(ms, 10), nil)
	}
	body, err := to.body()
	if err != nil {
		return fmt.Errorf("the position: %w", err)
	}
	return s.repeatable(ctx, http.MethodPost, "/resetcursor", body)
}

// SkipAll acknowledges everything that is there.
func (s *Subscription) SkipAll(ctx context.Context) error {
	return s.repeatable(ctx, http.MethodPost, "/skip_all", nil)
}

// Properties are the subscription's, its settings among them.
func (s *Subscription) Properties(ctx context.Context) (map[string]string, error) {
	var properties map[string]string
	err := s.call(ctx, http.MethodGet, "/properties", nil, nil, &properties)
	return properties, err
}

// SetProperties replaces the subscription's properties.
func (s *Subscription) SetProperties(ctx context.Context, properties map[string]string) error {
	return s.repeatable(ctx, http.MethodPut, "/properties", orEmpty(properties))
}

// Stats describes the subscription.
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

// DeadLetterTopic is the topic that messages go to when they were given back too
// often; nil when the subscription has no such limit.
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

// PropertyOrigin names, on a dead letter, the message that it is a copy of.
const PropertyOrigin = "ORIGIN_MESSAGE_ID"

// path is the subscription's for calls on messages.
func (s *Subscription) path(suffix string) string {
	return s.t.path(messageRoot, "/"+url.PathEscape(s.name)+suffix)
}

func (s *Subscription) call(ctx context.Context, method, suffix string, query url.Values, body, answer any) error {
	if s.err != nil {
		return s.err
	}
	return s.t.call(ctx, method, s.t.admin("/subscription/"+url.PathEscape(s.name)+suffix), query, body, answer)
}

func (s *Subscription) repeatable(ctx context.Context, method, suffix string, body any) error {
	if s.err != nil {
		return s.err
	}
	return s.t.repeatable(ctx, method, s.t.admin("/subscription/"+url.PathEscape(s.name)+suffix), nil, body, nil)
}

// settle makes a call on messages that were delivered. All of them do no harm
// when they come twice.
func (s *Subscription) settle(ctx context.Context, method, suffix string, body any) error {
	if s.err != nil {
		return s.err
	}
	return s.t.c.callJSON(ctx, &Request{Method: method, Path: s.path(suffix), Idempotent: true}, body, nil)
}

// Ack acknowledges messages by their ids, at most MaxBatch, and returns when that
// is durable. Acknowledging twice is no error. Delivery.Ack does it in a loop.
func (s *Subscription) Ack(ctx context.Context, ids ...string) error {
	return s.settle(ctx, http.MethodPut, "/messages", map[string]any{"messageIds": ids})
}

// AckCumulative acknowledges each message and all before it on its partition.
func (s *Subscription) AckCumulative(ctx context.Context, ids ...string) error {
	return s.settle(ctx, http.MethodPut, "/message/cumulative", map[string]any{"messageIds": ids})
}

// Nack gives messages back, to be delivered again after the delay. ErrConflict
// says that the lease of one of them has ended, and nothing was done.
func (s *Subscription) Nack(ctx context.Context, delay time.Duration, ids ...string) error {
	body := map[string]any{"messageIds": ids}
	if delay > 0 {
		body["delayMillis"] = delay.Milliseconds()
	}
	return s.settle(ctx, http.MethodPost, "/message/nack", body)
}

// Extend has the leases of messages run anew from now. ErrConflict says that the
// lease of one of them has ended, and nothing was done.
func (s *Subscription) Extend(ctx context.Context, lease time.Duration, ids ...string) error {
	return s.settle(ctx, http.MethodPost, "/message/extend",
		map[string]any{"messageIds": ids, "ackTimeoutMillis": lease.Milliseconds()})
}

// Fetch borrows up to maxMessages messages, waiting for the first one at most as
// long as wait, which the server bounds (30 s unless configured otherwise). No
// message is no error. Their leases are not extended by themselves; Messages does
// that.
func (s *Subscription) Fetch(ctx context.Context, maxMessages int, wait, lease time.Duration) ([]Received, error) {
	if s.err != nil {
		return nil, s.err
	}
	body := map[string]any{"maxMessages": maxMessages, "timeoutMillis": wait.Milliseconds(), "encoding": "base64"}
	if lease > 0 {
		body["ackTimeoutMillis"] = lease.Milliseconds()
	}
	var answer struct {
		Messages []wireReceived `json:"messages"`
	}
	// A call whose answer is lost leaves its messages on lease: they come again.
	request := &Request{
		Method: http.MethodPost, Path: s.path("/messages"), Idempotent: true,
		Timeout: wait + s.t.c.timeout,
	}
	if err := s.t.c.callJSON(ctx, request, body, &answer); err != nil {
		return nil, err
	}
	received := make([]Received, len(answer.Messages))
	for i := range answer.Messages {
		var err error
		if received[i], err = answer.Messages[i].received(); err != nil {
			return nil, err
		}
	}
	return received, nil
}
