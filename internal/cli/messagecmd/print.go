package messagecmd

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// The values of --decode and --encode.
const (
	codeNone     = "none"
	codeRegistry = "registry"
	codeTopic    = "topic"
)

// formatValue prints only the payload of a message.
const formatValue output.Format = "value"

// printOptions are the flags of commands that print messages.
type printOptions struct {
	format output.Format
	decode string
	null   bool
}

func (o *printOptions) addFlags(cmd *cobra.Command) {
	output.AddFlag(cmd.Flags(), &o.format, formatValue, output.FormatWide, output.FormatJSON, output.FormatName)
	cmd.Flags().StringVar(&o.decode, "decode", codeNone, "`source` of the schema with which payloads are decoded "+
		"to JSON: registry (by the id in the payload), topic (the topic's own schema) or none")
	cmd.Flags().BoolVarP(&o.null, "null", "0", false, "end messages with a zero byte instead of a line break")
}

// printer prints messages of a topic.
type printer struct {
	w        io.Writer
	end      string
	format   output.Format
	terminal bool
	decode   func(context.Context, *client.Received) ([]byte, error) // nil for --decode none
}

func (o *printOptions) printer(cmd *cobra.Command, env *command.Env, c *client.Client,
	topic *client.Topic,
) (*printer, error) {
	p := &printer{w: env.Out, end: "\n", format: o.format, terminal: output.IsTerminal(env.Out)}
	if o.null {
		p.end = "\x00"
	}
	switch o.decode {
	case codeNone:
	case codeRegistry:
		codec := schemas.NewCodec(schemas.New(c))
		p.decode = func(ctx context.Context, r *client.Received) ([]byte, error) {
			text, _, err := codec.DecodeJSON(ctx, r.Value)
			return text, err
		}
	case codeTopic:
		codec := schemas.NewTopicCodec(topic)
		p.decode = func(ctx context.Context, r *client.Received) ([]byte, error) {
			if r.SchemaVersion == nil {
				return nil, fmt.Errorf("message has no version of the topic's schema")
			}
			return codec.DecodeJSON(ctx, *r.SchemaVersion, r.Value)
		}
	default:
		return nil, command.Usagef(cmd, "--decode takes registry, topic or none")
	}
	return p, nil
}

// print prints one message.
func (p *printer) print(ctx context.Context, r *client.Received) error {
	value, decoded := r.Value, false
	if p.decode != nil && !r.NullValue {
		text, err := p.decode(ctx, r)
		if err != nil {
			return fmt.Errorf("message %s: %w", r.StringID, err)
		}
		value, decoded = text, true
	}
	if p.format.IsData() && p.format != output.FormatJSON {
		return output.Value(p.w, p.format, newJSONMessage(r, value, decoded))
	}
	var line []byte
	switch p.format {
	case output.FormatJSON:
		text, err := marshal(newJSONMessage(r, value, decoded))
		if err != nil {
			return err
		}
		line = text
	case output.FormatWide:
		line = fmt.Appendf(nil, "%s  %s  %s  %s", r.PublishTime.UTC().Format("2006-01-02T15:04:05.000Z"), r.StringID,
			keyText(r), value)
	case output.FormatName:
		line = []byte(r.StringID)
	default:
		line = value
	}
	if p.terminal {
		line = []byte(output.Clean(string(line)))
	}
	_, err := p.w.Write(append(line[:len(line):len(line)], p.end...))
	return err
}

func keyText(r *client.Received) string {
	if r.Key == "" {
		return "-"
	}
	return r.Key
}

// jsonMessage is the JSON form of a message that commands print and read.
type jsonMessage struct {
	ID            string            `json:"id,omitempty"`
	Key           string            `json:"key,omitempty"`
	Value         json.RawMessage   `json:"value,omitempty"`
	Encoding      string            `json:"encoding,omitempty"` // text, json or base64
	NullValue     bool              `json:"nullValue,omitempty"`
	Properties    map[string]string `json:"properties,omitempty"`
	PublishTime   *time.Time        `json:"publishTime,omitempty"`
	EventTime     *time.Time        `json:"eventTime,omitempty"`
	Partition     *int              `json:"partition,omitempty"`
	Redeliveries  int               `json:"redeliveries,omitempty"`
	Producer      string            `json:"producer,omitempty"`
	SchemaVersion *int64            `json:"schemaVersion,omitempty"`
	SchemaID      int               `json:"schemaId,omitempty"`
	Receipt       string            `json:"receipt,omitempty"` // id of the delivery, for ack and nack
}

func newJSONMessage(r *client.Received, value []byte, decoded bool) *jsonMessage {
	m := &jsonMessage{
		ID: r.StringID, Key: r.Key, NullValue: r.NullValue, Properties: r.Properties,
		PublishTime: new(r.PublishTime.UTC()), Redeliveries: r.Redeliveries, Producer: r.Producer,
		SchemaVersion: r.SchemaVersion, SchemaID: r.SchemaID,
	}
	if r.ID != r.StringID {
		m.Receipt = r.ID
	}
	if !r.EventTime.IsZero() {
		m.EventTime = new(r.EventTime.UTC())
	}
	if partition := r.Partition(); partition >= 0 {
		m.Partition = &partition
	}
	switch {
	case r.NullValue:
	case decoded:
		m.Value, m.Encoding = value, "json"
	case utf8.Valid(value):
		m.Value, m.Encoding = quote(string(value)), "text"
	default:
		m.Value, m.Encoding = quote(base64.StdEncoding.EncodeToString(value)), "base64"
	}
	return m
}

func quote(text string) json.RawMessage {
	quoted, err := marshal(text)
	if err != nil {
		return nil // encoding a string cannot fail
	}
	return quoted
}

// marshal encodes JSON on one line without escaping <, > and &.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
