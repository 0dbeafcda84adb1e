package adminapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// positionBody is the JSON object that a call that positions a subscription may send
// (Pulsar's ResetCursorData). Such calls also accept an empty body, "latest",
// "earliest" or a message id. The last four fields are an extension.
type positionBody struct {
	LedgerID       *int64            `json:"ledgerId"`
	EntryID        *int64            `json:"entryId"`
	PartitionIndex *int32            `json:"partitionIndex"`
	IsExcluded     bool              `json:"isExcluded"`
	Excluded       bool              `json:"excluded"`
	Properties     map[string]string `json:"properties"`

	Position         string            `json:"position"`
	AckTimeoutMillis *int64            `json:"ackTimeoutMillis"`
	DeadLetterPolicy *deadLetterPolicy `json:"deadLetterPolicy"`
	Filter           *string           `json:"filter"`
}

// deadLetterPolicy uses the field names of Pulsar's clients.
type deadLetterPolicy struct {
	MaxRedeliverCount *uint32 `json:"maxRedeliverCount"`
	DeadLetterTopic   string  `json:"deadLetterTopic"`
}

// position decodes the body of a call that positions a subscription. If exclusive is
// set, the body may request to start after the id.
func (c *call) position(exclusive bool) (messaging.Position, map[string]string, error) {
	latest := messaging.Position{Kind: messaging.Latest}
	b, err := c.Body(maxAdminBody)
	if err != nil {
		return latest, nil, err
	}
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || string(b) == "null":
		return latest, nil, nil
	case b[0] != '{':
		var word string
		if err := json.Unmarshal(b, &word); err != nil {
			word = string(b)
		}
		p, err := wordPosition(word)
		return p, nil, err
	}
	var body positionBody
	if _, err := brokerhttp.DecodeJSON(b, &body); err != nil {
		return latest, nil, err
	}
	p, err := body.position(exclusive)
	if err != nil {
		return p, nil, err
	}
	return p, body.properties(), nil
}

func wordPosition(word string) (messaging.Position, error) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "", "latest":
		return messaging.Position{Kind: messaging.Latest}, nil
	case "earliest":
		return messaging.Position{Kind: messaging.Earliest}, nil
	}
	if id, err := brokerhttp.ParseID([]byte(word)); err == nil {
		return messaging.Position{Kind: messaging.AtID, ID: id}, nil
	}
	return messaging.Position{}, brokerhttp.BadBody("position must be latest, earliest or a message id")
}

func (b *positionBody) position(exclusive bool) (messaging.Position, error) {
	if b.LedgerID == nil && b.EntryID == nil {
		return wordPosition(b.Position)
	}
	if b.LedgerID == nil || b.EntryID == nil {
		return messaging.Position{}, brokerhttp.BadBody("ledgerId and entryId must be given together")
	}
	id := names.MessageID{Ledger: *b.LedgerID, Entry: *b.EntryID, Partition: -1}
	if b.PartitionIndex != nil {
		id.Partition = *b.PartitionIndex
	}
	// Quirk: isExcluded is ignored when a subscription is created.
	if exclusive && (b.IsExcluded || b.Excluded) {
		return messaging.Position{Kind: messaging.AfterID, ID: id}, nil
	}
	return messaging.Position{Kind: messaging.AtID, ID: id}, nil
}

// properties returns the properties with the extension's fields added: the broker reads
// these settings from the subscription's properties.
func (b *positionBody) properties() map[string]string {
	out := maps.Clone(b.Properties)
	if out == nil {
		out = make(map[string]string)
	}
	if b.AckTimeoutMillis != nil {
		out[messaging.PropertyAckTimeout] = strconv.FormatInt(*b.AckTimeoutMillis, 10)
	}
	if b.Filter != nil {
		out[messaging.PropertyFilter] = *b.Filter
	}
	if d := b.DeadLetterPolicy; d != nil {
		if d.MaxRedeliverCount != nil {
			out[messaging.PropertyMaxRedeliver] = strconv.FormatUint(uint64(*d.MaxRedeliverCount), 10)
		}
		if d.DeadLetterTopic != "" {
			out[messaging.PropertyDeadLetterTopic] = d.DeadLetterTopic
		}
	}
	return out
}

func (c *call) subscribe() error {
	at, properties, err := c.position(false)
	if err != nil {
		return err
	}
	if err := c.authorizeAutoCreate(); err != nil {
		return err
	}
	if err := c.authorizeDeadLetters(properties); err != nil {
		return err
	}
	if err := c.authorizeFilter(properties[messaging.PropertyFilter], ""); err != nil {
		return err
	}
	return c.done(c.Cluster.Consumer.Subscribe(c.R.Context(), c.Topic, c.Subscription, at, properties))
}

// authorizeAutoCreate checks that the caller may create the topic, if the topic does not exist
// and this call would create it (docs/spec/messages.md#m5).
func (c *call) authorizeAutoCreate() error {
	exists, err := c.Cluster.Catalogue.HasTopic(c.R.Context(), c.Topic)
	if err != nil || exists {
		return err
	}
	subscription := c.Subscription
	c.Subscription = "" // the scope is the topic
	if err := c.Require(need("topics", "create")...); err != nil {
		return fmt.Errorf("topic %s does not exist; creating it with this call: %w", c.Topic, err)
	}
	c.Subscription = subscription
	return nil
}

// authorizeDeadLetters checks that the caller may use the dead-letter topic that these
// properties select: it needs the permission to produce there, and to create the topic
// if it does not exist. This also holds for the default dead-letter topic, because the
// broker writes to it on behalf of the caller (docs/spec/messages.md#dead-letters).
func (c *call) authorizeDeadLetters(properties map[string]string) error {
	to, err := c.Cluster.Consumer.DeadLetters(c.R.Context(), c.Topic, c.Subscription, properties)
	if err != nil || to == nil {
		return err
	}
	topic, subscription := c.Topic, c.Subscription
	c.Topic, c.Subscription = to.Topic, "" // the audit record of a denial names this topic
	err = c.Require(brokerhttp.PermitProduce)
	if err == nil && !to.Exists {
		err = c.Require(need("topics", "create")...)
	}
	if err != nil {
		return fmt.Errorf("choosing %s as dead-letter topic: %w", to.Topic, err)
	}
	c.Topic, c.Subscription = topic, subscription
	return nil
}

func (c *call) unsubscribe() error {
	return c.done(c.Cluster.Consumer.Unsubscribe(c.R.Context(), c.Topic, c.Subscription, c.queryFlag("force")))
}

func (c *call) listSubscriptions() error {
	list, err := c.Cluster.Consumer.Subscriptions(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, list)
}

func (c *call) reset(at messaging.Position) error {
	return c.done(c.Cluster.Consumer.Reset(c.R.Context(), c.Topic, c.Subscription, at))
}

func (c *call) resetToID() error {
	at, _, err := c.position(true)
	if err != nil {
		return err
	}
	return c.reset(at)
}

func (c *call) resetToTime() error {
	at, err := c.pathNumber("timestamp")
	if err != nil {
		return err
	}
	return c.reset(messaging.Position{Kind: messaging.AtTime, Time: time.UnixMilli(at)})
}

func (c *call) skipAll() error { return c.reset(messaging.Position{Kind: messaging.Latest}) }

func (c *call) skip() error {
	n, err := c.pathNumber("count")
	if err != nil {
		return err
	}
	return c.reset(messaging.Position{Kind: messaging.Skip, N: uint64(n)})
}

// expiryPosition returns the position that the path parameter seconds selects: messages older
// than that are expired.
func (c *call) expiryPosition() (messaging.Position, error) {
	seconds, err := c.pathNumber("seconds")
	if err != nil {
		return messaging.Position{}, err
	}
	seconds = min(seconds, math.MaxInt64/int64(time.Second))
	return messaging.Position{
		Kind: messaging.ExpiredBefore, Time: time.Now().Add(-time.Duration(seconds) * time.Second),
	}, nil
}

func (c *call) expire() error {
	at, err := c.expiryPosition()
	if err != nil {
		return err
	}
	return c.reset(at)
}

func (c *call) expireAll() error {
	at, err := c.expiryPosition()
	if err != nil {
		return err
	}
	list, err := c.Cluster.Consumer.Subscriptions(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	for _, name := range list {
		if err := c.Cluster.Consumer.Reset(c.R.Context(), c.Topic, name, at); err != nil {
			return err
		}
	}
	return c.done(nil)
}

func (c *call) subscriptionProperties() error {
	p, err := c.Cluster.Consumer.SubscriptionProperties(c.R.Context(), c.Topic, c.Subscription)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, orEmpty(p))
}

func (c *call) setSubscriptionProperties() error {
	properties, err := c.propertiesBody()
	if err != nil {
		return err
	}
	if err := c.authorizeDeadLetters(properties); err != nil {
		return err
	}
	if text := properties[messaging.PropertyFilter]; text != "" {
		current, err := c.filterInForce()
		if err != nil {
			return err
		}
		if err := c.authorizeFilter(text, current); err != nil {
			return err
		}
	}
	return c.done(c.Cluster.Consumer.SetSubscriptionProperties(c.R.Context(), c.Topic, c.Subscription, properties))
}

func (c *call) peek() error {
	n, err := c.pathNumber("position")
	if err != nil {
		return err
	}
	position := int(min(n, math.MaxInt32))
	if query := c.R.URL.Query(); query.Get("filter") != "" || query.Get("after") != "" {
		return c.peekSelected(position, query)
	}
	m, err := c.Cluster.Consumer.Peek(c.WorkContext(), c.Topic, c.Subscription, position)
	if err != nil {
		return err
	}
	return c.pulsarMessage(&m)
}

// peekSelected is a peek of the messages after an id that an expression selects, an extension. It responds
// with 204 if it has found none. If there may be more messages, a header has the id to continue after.
func (c *call) peekSelected(position int, query url.Values) error {
	opts := messaging.PeekOptions{Position: position}
	if text := query.Get("filter"); text != "" {
		var err error
		if opts.Filter, err = filter.Compile(text); err != nil {
			return err
		}
	}
	if text := query.Get("after"); text != "" {
		id, err := brokerhttp.ParseID([]byte(text))
		if err != nil {
			return err
		}
		opts.After = &id
	}
	peeked, err := c.Cluster.Searcher.Peek(c.WorkContext(), c.Topic, c.Subscription, opts)
	if err != nil {
		return err
	}
	h := c.W.Header()
	h["X-Pulsar-Filter-Scanned"] = []string{strconv.FormatInt(peeked.Progress.Scanned, 10)}
	h["X-Pulsar-Filter-Failed"] = []string{strconv.FormatInt(peeked.Progress.Failed, 10)}
	if failure := peeked.Progress.Failure; failure != nil {
		reason := brokerhttp.PublicReason(failure, brokerhttp.AdminCalls.Status(failure))
		h["X-Pulsar-Filter-Failure"] = []string{strconv.QuoteToASCII(reason[:min(len(reason), maxFailureHeader)])}
	}
	if peeked.More {
		h["X-Pulsar-Last-Message-Id"] = []string{peeked.Last.String()}
	}
	if peeked.Message == nil {
		return c.done(nil)
	}
	return c.pulsarMessage(peeked.Message)
}

// maxFailureHeader bounds the text of a failure in a header, in bytes before it is quoted.
const maxFailureHeader = 256

// pulsarHeaders are the headers of a message's metadata.
var pulsarHeaders = brokerhttp.MetadataHeadersWithPrefix("X-Pulsar-")

// pulsarMessage responds with a message in the form of Pulsar's admin API.
func (c *call) pulsarMessage(m *messaging.Received) error {
	h := c.W.Header()
	set := func(name, value string) { h["X-Pulsar-"+name] = []string{value} }
	set("Message-ID", strconv.FormatInt(m.ID.Ledger, 10)+":"+strconv.FormatInt(m.ID.Entry, 10))
	set("Publish-Time", time.UnixMilli(m.PublishTime).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	set("Sequence-Id", strconv.FormatUint(m.Sequence, 10))
	if m.EventTime != 0 {
		set("Event-Time", time.UnixMilli(m.EventTime).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if m.Producer != "" {
		set("Producer-Name", m.Producer)
	}
	pulsarHeaders.Write(h, m)
	c.Started = true
	web.WriteBody(c.W, http.StatusOK, "application/octet-stream", m.Payload)
	return nil
}
