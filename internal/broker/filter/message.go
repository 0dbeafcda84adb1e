package filter

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Header is one property or record header of a message.
type Header struct {
	Name, Value []byte
	Null        bool // the header has no value
}

// Message is what an expression reads of a message. Its slices must not change during an evaluation.
type Message struct {
	Payload       []byte
	NullPayload   bool
	Key           []byte
	Headers       []Header
	PublishTime   int64 // epoch milliseconds
	EventTime     int64 // epoch milliseconds; 0 for none
	Producer      string
	Partition     int32
	Offset        uint64
	SchemaVersion int64 // version of the topic's schema; negative for none
}

// weight returns the bytes of the message that an expression can read.
func (m *Message) weight() int {
	n := len(m.Payload) + len(m.Key)
	for i := range m.Headers {
		n += len(m.Headers[i].Name) + len(m.Headers[i].Value)
	}
	return n
}

// Schemas finds the schemas with which payloads were written. It returns nil for a schema that does
// not exist.
type Schemas interface {
	// TopicSchema returns a version of the topic's own schema; the latest for a negative version,
	// which Kafka records have.
	TopicSchema(ctx context.Context, version int64) (*Schema, error)
	// RegisteredSchema returns the schema of the registry with an id.
	RegisteredSchema(ctx context.Context, id int32) (*Schema, error)
}

// Evaluator evaluates a filter for messages of one topic. It belongs to one goroutine.
type Evaluator struct {
	ctx     context.Context //nolint:containedctx // of the call that evaluates
	filter  *Filter
	schemas schemaCache

	m      *Message
	budget budget
}

// Evaluator returns an evaluator for messages whose schemas are found in schemas.
func (f *Filter) Evaluator(ctx context.Context, schemas Schemas) *Evaluator {
	return &Evaluator{ctx: ctx, filter: f, schemas: schemaCache{source: schemas}}
}

// WithContext makes ctx the context of the next evaluations, and returns the evaluator.
func (e *Evaluator) WithContext(ctx context.Context) *Evaluator {
	e.ctx = ctx
	return e
}

// Match reports whether the filter selects a message. An error belongs to this message: the
// expression reads a field that it does not have, compares values of different types, its payload
// cannot be decoded, or a limit is exceeded.
func (e *Evaluator) Match(m *Message) (bool, error) {
	size := m.weight()
	if size*e.filter.regexps > maxRegexpWork {
		return false, errRegexpWork
	}
	e.m, e.budget = m, newBudget(size, e.filter)
	out, _, err := e.filter.program.Eval(variables{e})
	if err != nil {
		return false, err
	}
	if out.Type() != types.BoolType {
		return false, fmt.Errorf("expression must be true or false, but is of type %s", out.Type().TypeName())
	}
	return out == types.True, nil
}

// variables resolves the names of a message's variables. It avoids building a map.
type variables struct{ *Evaluator }

// Parent implements interpreter.Activation.
func (variables) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (v variables) ResolveName(name string) (any, bool) {
	m := v.m
	if err := v.spend(name); err != nil {
		return types.WrapErr(err), true
	}
	switch name {
	case varPayload:
		return v.payload(), true
	case varKey:
		return types.String(text(m.Key)), true
	case varProperties:
		return &object{source: properties{m.Headers}, budget: &v.budget}, true
	case varHeaders:
		return v.headers(), true
	case varPublishTime:
		return timestamp(m.PublishTime), true
	case varEventTime:
		if m.EventTime == 0 {
			return timestamp(m.PublishTime), true
		}
		return timestamp(m.EventTime), true
	case varProducer:
		return types.String(m.Producer), true
	case varSize:
		return types.Int(len(m.Payload)), true
	case varPartition:
		return types.Int(m.Partition), true
	case varOffset:
		return types.Int(m.Offset), true //nolint:gosec // offsets are less than 2^63
	}
	return nil, false
}

// spend takes the cost of reading a variable from the budget. The payload's is taken while it is
// decoded.
func (e *Evaluator) spend(name string) error {
	switch name {
	case varKey:
		return e.budget.spend(1 + len(e.m.Key))
	case varProperties:
		return e.budget.spend(1 + len(e.m.Headers))
	case varHeaders:
		if err := e.budget.element(4 * len(e.m.Headers)); err != nil {
			return err
		}
		return e.budget.spend(e.m.weight() - len(e.m.Payload))
	}
	return e.budget.spend(1)
}

// payload decodes the payload.
func (e *Evaluator) payload() ref.Val {
	if e.m.NullPayload {
		return types.NullValue
	}
	decode, data, err := e.schemas.decoderOf(e.ctx, e.m)
	if err != nil {
		return types.WrapErr(err)
	}
	return decode(&e.budget, data)
}

// headers returns the list of headers, each with name and value.
func (e *Evaluator) headers() ref.Val {
	list := make([]ref.Val, len(e.m.Headers))
	for i := range e.m.Headers {
		h := &e.m.Headers[i]
		value := ref.Val(types.NullValue)
		if !h.Null {
			value = types.String(text(h.Value))
		}
		list[i] = types.NewRefValMap(adapter, map[ref.Val]ref.Val{
			types.String("name"): types.String(text(h.Name)), types.String("value"): value,
		})
	}
	return types.NewRefValList(adapter, list)
}

func timestamp(millis int64) ref.Val { return types.Timestamp{Time: time.UnixMilli(millis).UTC()} }

// text returns bytes as text, or in base64 if they are not UTF-8, as the JSON form of a message does.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// properties are the headers as a map of texts. Of a repeated name the last one counts.
type properties struct{ headers []Header }

func (p properties) field(b *budget, name string) (ref.Val, bool) {
	for i := len(p.headers) - 1; i >= 0; i-- {
		if h := &p.headers[i]; !h.Null && string(h.Name) == name {
			if err := b.spend(len(h.Value)); err != nil {
				return types.WrapErr(err), true
			}
			return types.String(text(h.Value)), true
		}
	}
	return nil, false
}

func (p properties) each(b *budget, visit func(string, ref.Val) error) error {
	for i := range p.headers {
		if h := &p.headers[i]; !h.Null {
			if err := b.spend(len(h.Name) + len(h.Value)); err != nil {
				return err
			}
			if err := visit(text(h.Name), types.String(text(h.Value))); err != nil {
				return err
			}
		}
	}
	return nil
}
