package schemas

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"freshet.dev/client"
)

// Codec encodes and decodes payloads in the wire format of Confluent Schema Registry: a zero
// byte, the schema id as four bytes in big endian, and then Avro binary, JSON, or Protobuf with
// the indexes of the message in its file.
//
// It caches schemas, and the latest version of a subject for one minute. It is safe for
// concurrent use.
type Codec struct {
	r *Registry

	// mu protects the fields below. It is not held during calls, so two goroutines may
	// request the same schema.
	mu      sync.Mutex
	byID    map[int]format
	latests map[string]latest
}

type latest struct {
	id    int
	until time.Time
}

// latestTTL is how long the latest version of a subject is cached.
const latestTTL = time.Minute

// maxSchemas is the maximum number of entries of each cache.
const maxSchemas = 10_000

// format encodes and decodes payloads of one schema without the prefix of five bytes.
type format interface {
	encode(value any) ([]byte, error)
	encodeJSON(text []byte) ([]byte, error)
	decode(data []byte, into any) error
	decodeJSON(data []byte) ([]byte, error)
}

// NewCodec returns a Codec.
func NewCodec(r *Registry) *Codec {
	return &Codec{r: r, byID: make(map[int]format), latests: make(map[string]latest)}
}

// SubjectForValue returns the subject for the values of a topic: its name with the suffix
// -value.
func SubjectForValue(topic string) string { return topic + "-value" }

// Encode encodes a value with the latest version of a subject. For Avro the value is a struct
// with avro tags or a map, for JSON any value of encoding/json, for Protobuf a proto.Message of
// the schema, or a map for the schema's first message.
func (c *Codec) Encode(ctx context.Context, subject string, value any) ([]byte, error) {
	id, err := c.latest(ctx, subject)
	if err != nil {
		return nil, err
	}
	return c.EncodeWithID(ctx, id, value)
}

// ForSubject returns a client.Encoder that encodes values with the latest version of a subject.
func (c *Codec) ForSubject(subject string) client.Encoder { return subjectEncoder{c, subject} }

type subjectEncoder struct {
	codec   *Codec
	subject string
}

func (e subjectEncoder) EncodeMessage(ctx context.Context, value any, into *client.Message) (err error) {
	into.Value, err = e.codec.Encode(ctx, e.subject, value)
	return err
}

// EncodeWithID encodes a value with the schema of an id.
func (c *Codec) EncodeWithID(ctx context.Context, id int, value any) ([]byte, error) {
	f, err := c.format(ctx, id)
	if err != nil {
		return nil, err
	}
	payload, err := f.encode(value)
	return withID(id, payload, err)
}

// EncodeJSON encodes a JSON text with the latest version of a subject.
func (c *Codec) EncodeJSON(ctx context.Context, subject string, text []byte) ([]byte, error) {
	id, err := c.latest(ctx, subject)
	if err != nil {
		return nil, err
	}
	f, err := c.format(ctx, id)
	if err != nil {
		return nil, err
	}
	payload, err := f.encodeJSON(text)
	return withID(id, payload, err)
}

// Decode decodes a payload with the schema of its id.
func (c *Codec) Decode(ctx context.Context, data []byte, into any) error {
	id, payload, ok := SplitID(data)
	if !ok {
		return ErrNoID
	}
	f, err := c.format(ctx, id)
	if err != nil {
		return err
	}
	if err := f.decode(payload, into); err != nil {
		return fmt.Errorf("decoding by schema %d: %w", id, err)
	}
	return nil
}

// DecodeJSON decodes a payload with the schema of its id, and returns it as JSON with the id.
func (c *Codec) DecodeJSON(ctx context.Context, data []byte) (text []byte, id int, err error) {
	id, payload, ok := SplitID(data)
	if !ok {
		return nil, 0, ErrNoID
	}
	f, err := c.format(ctx, id)
	if err != nil {
		return nil, id, err
	}
	if text, err = f.decodeJSON(payload); err != nil {
		return nil, id, fmt.Errorf("decoding by schema %d: %w", id, err)
	}
	return text, id, nil
}

// ErrNoID is the error for a payload without a schema id prefix.
var ErrNoID = errors.New("payload does not start with a schema id")

// SplitID splits a payload into the schema id and the rest.
func SplitID(data []byte) (id int, payload []byte, ok bool) {
	if len(data) < 5 || data[0] != 0 {
		return 0, data, false
	}
	return int(binary.BigEndian.Uint32(data[1:5])), data[5:], true
}

func withID(id int, payload []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("encoding by schema %d: %w", id, err)
	}
	head := binary.BigEndian.AppendUint32([]byte{0}, uint32(id)) //nolint:gosec // ids end at 2^31-1
	return append(head, payload...), nil
}

func (c *Codec) latest(ctx context.Context, subject string) (int, error) {
	c.mu.Lock()
	known, ok := c.latests[subject]
	c.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.id, nil
	}
	v, err := c.r.Version(ctx, subject, Latest)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.latests) >= maxSchemas {
		clear(c.latests)
	}
	c.latests[subject] = latest{v.ID, time.Now().Add(latestTTL)}
	return v.ID, nil
}

func (c *Codec) format(ctx context.Context, id int) (format, error) {
	c.mu.Lock()
	f, ok := c.byID[id]
	c.mu.Unlock()
	if ok {
		return f, nil
	}
	schema, err := c.r.ByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if f, err = c.r.compile(ctx, schema); err != nil {
		return nil, fmt.Errorf("compiling schema %d: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byID) >= maxSchemas {
		clear(c.byID)
	}
	c.byID[id] = f
	return f, nil
}

// compile compiles a schema with its references.
func (r *Registry) compile(ctx context.Context, schema *Schema) (format, error) {
	imports, err := r.imports(ctx, schema)
	if err != nil {
		return nil, err
	}
	switch schema.Type {
	case Avro:
		return newAvro(schema.Text, imports)
	case JSON:
		return newJSON(schema.Text, imports)
	case Protobuf:
		return newProtobuf(schema.Text, imports)
	}
	return nil, fmt.Errorf("schema type %s is not supported", schema.Type)
}

// imported is the text of a reference with the name by which schemas import it.
type imported struct{ name, text string }

// maxImports is the maximum number of direct and indirect references of one schema.
const maxImports = 4000

// imports returns the direct and indirect references of a schema, dependencies first.
func (r *Registry) imports(ctx context.Context, schema *Schema) ([]imported, error) {
	seen := make(map[Reference]bool)
	var list []imported
	var walk func(*Schema) error
	walk = func(s *Schema) error {
		for _, reference := range s.References {
			if seen[reference] {
				continue
			}
			if seen[reference] = true; len(seen) > maxImports {
				return fmt.Errorf("schema has more than %d references", maxImports)
			}
			v, err := r.DeletedVersion(ctx, reference.Subject, reference.Version)
			if err != nil {
				return fmt.Errorf("loading the reference %s: %w", reference.Name, err)
			}
			if err := walk(&v.Schema); err != nil {
				return err
			}
			list = append(list, imported{reference.Name, v.Text})
		}
		return nil
	}
	return list, walk(schema)
}

// compact returns JSON on one line.
func compact(text []byte) ([]byte, error) {
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
