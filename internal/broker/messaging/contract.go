package messaging

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"freshet/internal/base/errs"
	"freshet/internal/base/lru"
	"freshet/internal/base/names"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/records"
)

// ErrContract means that a message breaks the contract of its topic. The error is a ContractError.
var ErrContract = errs.New(errs.Invalid, "message breaks the contract of its topic")

// The limits of contracts.
const (
	contractTexts     = 256 << 10 // bytes of the texts of compiled contracts that a cluster keeps
	decoderTexts      = 8 << 20   // bytes of the texts of parsed schemas that a cluster keeps for contracts
	maxBreaches       = 10        // breaches that the error of a Kafka batch lists
	maxDescribed      = 100       // breaches of one request that are described
	maxExpressionText = 500       // characters of an expression in an error
	maxReadName       = 100       // characters of the name of a value in an error
)

// ContractError describes how a message breaks the contract of its topic. Error returns a text without
// values of the message, for logs. Detail is for the producer.
type ContractError struct {
	Expression string // "" if the error of another message of the request has it
	Index      int    // position of the message in its batch, from 0; -1 without a batch
	Breach     *filter.Breach
}

// Error returns the expression.
func (e *ContractError) Error() string {
	if e.Expression == "" {
		return e.subject() + ErrContract.Error()
	}
	return e.subject() + ErrContract.Error() + ": " + cutCharacters(e.Expression, maxExpressionText)
}

// Unwrap returns ErrContract.
func (e *ContractError) Unwrap() error { return ErrContract }

// Detail returns the error with the reason and the values that the expression reads.
func (e *ContractError) Detail() string {
	text := e.Error()
	if e.Expression == "" {
		return text
	}
	if e.Breach.Reason == nil {
		text += " is false"
	} else {
		text += " fails: " + cutCharacters(e.Breach.Reason.Error(), maxExpressionText)
	}
	if values := e.Values(); values != "" {
		text += "; " + values
	}
	return text
}

// Values returns the values that the expression reads of the message.
func (e *ContractError) Values() string {
	var parts []string
	for _, r := range e.Breach.Reads {
		parts = append(parts, cutCharacters(r.Name, maxReadName)+" is "+r.Value)
	}
	return strings.Join(parts, ", ")
}

func (e *ContractError) subject() string {
	if e.Index < 0 {
		return ""
	}
	return fmt.Sprintf("message %d: ", e.Index)
}

func cutCharacters(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// contracts compiles the contracts of topics and keeps the most recently used ones.
type contracts struct {
	pool     *workpool.Pool
	compiled *lru.Cache[string, *filter.Contract]
}

func newContracts(pool *workpool.Pool) *contracts {
	return &contracts{pool, lru.New[string, *filter.Contract](contractTexts)}
}

// of returns the compiled contract of a text. It waits for a permit to compile it.
func (c *contracts) of(ctx context.Context, text string) (contract *filter.Contract, err error) {
	if contract, ok := c.compiled.Get(text); ok {
		return contract, nil
	}
	err = c.pool.Job(ctx).Do(workpool.Small, func() error {
		compiled, err := c.compile(text)
		contract = compiled
		return err
	})
	return contract, err
}

// compile is of without waiting.
func (c *contracts) compile(text string) (*filter.Contract, error) {
	if contract, ok := c.compiled.Get(text); ok {
		return contract, nil
	}
	contract, err := filter.CompileContract(text)
	if err != nil {
		return nil, err
	}
	return c.compiled.Add(text, contract, int64(len(text))), nil
}

// check returns an error unless the contract in a topic's configurations can be used. Callers check a new
// contract before they change the catalogue, because compiling it takes a while.
func (c *contracts) check(ctx context.Context, config map[string]string) error {
	text := strings.TrimSpace(config[configRequire])
	if text == "" {
		return nil
	}
	_, err := c.of(ctx, text)
	return configError(configRequire, err)
}

// checkChange is check for a changed topic, without waiting. The caller has usually checked the contract.
func (c *contracts) checkChange(before, after *Policies) error {
	text := after.Kafka[configRequire]
	if text == "" || text == before.Kafka[configRequire] {
		return nil
	}
	_, err := c.compile(text)
	return configError(configRequire, err)
}

// SetContract sets the expression that every message of a topic must fulfil; "" removes it.
func (cat *Catalogue) SetContract(ctx context.Context, name names.Topic, text string) error {
	config := map[string]string{configRequire: text}
	if err := cat.contracts.check(ctx, config); err != nil {
		return err
	}
	return cat.UpdateTopic(ctx, name, func(p *Policies) error {
		p.put(configRequire, text, text == "")
		return nil
	})
}

// Contract returns the expression that every message of the topic must fulfil, or "".
func (p *Policies) Contract() string { return p.Kafka[configRequire] }

// ContractUse is what the contracts of topics have taken for one request of a producer. It belongs to one
// goroutine.
type ContractUse struct {
	work      int64
	described int
}

// contractChecker checks messages by the contract of a topic. A nil contractChecker accepts every message.
type contractChecker struct {
	text    string
	checker *filter.Checker
	use     *ContractUse
	before  int64 // use.work when the checker was created
	checked int
}

// contractOf returns a checker for messages of a topic, or nil if the topic has no contract.
func (a *admission) contractOf(ctx context.Context, t *topic, r *rules, use *ContractUse) (*contractChecker, error) {
	text := r.kafka.require
	if text == "" {
		return nil, nil
	}
	contract, err := a.contracts.of(ctx, text)
	switch {
	case errs.KindOf(err) == errs.Invalid: // a later version has accepted it
		return nil, errs.Newf(errs.Unavailable, "contract of the topic cannot be used by this version of the server: "+
			"%w", err)
	case err != nil:
		return nil, err
	}
	if use == nil {
		use = &ContractUse{}
	}
	checker := contract.Checker(ctx, contractSchemas{payloadSchemas{t, a.registry}, a})
	return &contractChecker{text: text, checker: checker, use: use, before: use.work}, nil
}

// restart forgets the messages that were checked. The caller checks them again.
func (c *contractChecker) restart() {
	if c != nil {
		c.use.work, c.checked = c.before, 0
	}
}

// checkMessage checks a message that was sent over HTTP.
func (c *contractChecker) checkMessage(m *Message, version int64) error {
	if c == nil {
		return nil
	}
	in := &filter.Message{
		Payload: m.Payload, NullPayload: m.NullPayload, Key: []byte(m.Key), PublishTime: now(),
		EventTime: m.EventTime, Producer: m.Producer, SchemaVersion: version,
	}
	for i := range m.Properties {
		p := &m.Properties[i]
		in.Headers = append(in.Headers, filter.Header{Name: []byte(p.Key), Value: []byte(p.Value), Null: p.Null})
	}
	return c.check(in)
}

// checkRecord checks a record of a Kafka batch.
func (c *contractChecker) checkRecord(r *records.Record, appendTime bool) error {
	if c == nil {
		return nil
	}
	in := &filter.Message{
		Payload: r.Value, NullPayload: r.Value == nil, Key: r.Key, PublishTime: now(), EventTime: max(r.Time, 0),
		SchemaVersion: NoSchema,
	}
	if appendTime {
		in.EventTime = in.PublishTime
	}
	for i := range r.Headers {
		h := &r.Headers[i]
		in.Headers = append(in.Headers, filter.Header{Name: h.Key, Value: h.Value, Null: h.Value == nil})
	}
	return c.check(in)
}

func (c *contractChecker) check(m *filter.Message) error {
	spent := c.checker.Work()
	breach, err := c.checker.Check(m)
	c.use.work += c.checker.Work() - spent
	c.checked++
	switch {
	case err != nil:
		return err
	case c.use.work > filter.MaxWork && (c.checked > 1 || c.before > 0):
		return errs.Newf(errs.TooLarge, "%w: contract of the topic takes too long for so many messages at once; "+
			"send smaller batches", ErrBatch)
	case breach == nil:
		return nil
	}
	if c.use.described++; c.use.described > maxDescribed {
		return &ContractError{Index: -1, Breach: &filter.Breach{}}
	}
	return &ContractError{Expression: c.text, Index: -1, Breach: breach}
}

// mostBreaches returns how many breaches the error of the next batch of the request lists.
func (c *contractChecker) mostBreaches() int {
	if c == nil || c.use.described >= maxDescribed {
		return 1
	}
	return maxBreaches
}

// contractSchemas are the schemas of a topic for its contract. In contrast to payloadSchemas it keeps the
// parsed schemas, because every produce call needs them.
type contractSchemas struct {
	payloadSchemas
	admission *admission
}

// decoderKey identifies the schema of payloads: by its text, or by its id in the registry and the time at which
// it was read, because an id can be deleted and imported again.
type decoderKey struct {
	kind SchemaType
	text string
	id   int32
	at   int64 // in units of schemasAge
}

// decoderCost is the cost of a schema of the registry, whose text is not known here.
const decoderCost = 16 << 10

// TopicSchema implements filter.Schemas.
func (s contractSchemas) TopicSchema(ctx context.Context, version int64) (found *filter.Schema, err error) {
	v, ok := s.topic.schemas.version(version)
	if version < 0 {
		v, ok = s.topic.schemas.latest()
	}
	if !ok {
		return nil, nil
	}
	key := decoderKey{kind: v.Type, text: v.Text}
	if found, ok := s.admission.decoders.Get(key); ok {
		return found, nil
	}
	err = s.admission.pool.Job(ctx).Do(workpool.LaneOf(len(v.Text)), func() error {
		parsed, err := v.payloadSchema()
		found = parsed
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.admission.decoders.Add(key, found, int64(1+len(v.Text))), nil
}

// RegisteredSchema implements filter.Schemas.
func (s contractSchemas) RegisteredSchema(ctx context.Context, id int32) (*filter.Schema, error) {
	key := decoderKey{id: id, at: now() / schemasAge.Milliseconds()}
	if found, ok := s.admission.decoders.Get(key); ok {
		return found, nil
	}
	found, err := s.payloadSchemas.RegisteredSchema(ctx, id)
	if err != nil || found == nil {
		return nil, err
	}
	return s.admission.decoders.Add(key, found, decoderCost), nil
}
