package messagecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// produceOptions are the flags of produce.
type produceOptions struct {
	input

	key, idempotencyKey string
	properties          []string
	eventTime           string
	delay               time.Duration
	nullValue           bool
	encode, subject     string
	producer            string
	ids                 bool
	format              output.Format
	linger              time.Duration

	propertyMap map[string]string
	at          time.Time
}

func newProduce(env *command.Env) *cobra.Command {
	var o produceOptions
	cmd := &cobra.Command{
		Use:   "produce TOPIC [MESSAGE]...",
		Short: "Send messages to a topic",
		Long: `Send messages to a topic: those on the command line, files, or each line of standard
input. Exit code 0 means that every message is stored. Retries do not create duplicates.

With --encode, the messages are JSON and are encoded with a schema: 'registry' uses the
latest version of the subject TOPIC-value, or --subject, and puts its id in front of the
payload, as Confluent serializers do; 'topic' uses the topic's own schema.

With --input json each line is an object in the format of 'freshet consume -o json':
value, and optionally key, properties, eventTime, encoding (text, json, base64) and
nullValue.

With -o json the command prints a line of JSON with the id of every stored message, in the
order in which they were stored.`,
		Example: `  # one message
  freshet produce orders '{"id": 7}' --key customer-7 --property source=shop

  # each line of a pipe
  seq 1 100 | freshet produce orders

  # JSON, stored as Avro with the latest schema of the subject orders-value
  echo '{"id": 7}' | freshet produce orders --encode registry`,
		Args:              command.Args(command.Any, "the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := o.check(cmd, given[1:]); err != nil {
				return err
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return o.run(cmd, env, c, c.Topic(given[0]), given[1:])
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *produceOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil,
		"`file` whose content is one message, - for standard input; may be repeated")
	f.BoolVarP(&o.zero, "null", "0", false, "split standard input into messages at zero bytes instead of line breaks")
	f.StringVar(&o.form, "input", inputLines,
		"`format` of a line of standard input: lines (a message) or json (an object)")
	f.StringVar(&o.separator, "key-separator", "", "`text` between the key and the message on each line")
	f.StringVarP(&o.key, "key", "k", "", "`key` of the messages, which selects the partition")
	f.StringArrayVar(&o.properties, "property", nil, "property of the messages, as `name=value`; may be repeated")
	f.StringVar(&o.eventTime, "event-time", "", "event `time` of the messages, in RFC 3339")
	f.DurationVar(&o.delay, "delay", 0, "`duration` by which the delivery is delayed")
	f.BoolVar(&o.nullValue, "null-value", false,
		"send one message without a value (a tombstone); the server keeps the earlier messages of its key")
	f.StringVar(&o.idempotencyKey, "idempotency-key", "",
		"`key` by which the server recognizes a repeated message; for one message")
	f.StringVar(&o.encode, "encode", codeNone,
		"`source` of the schema with which JSON is encoded: registry, topic or none")
	f.StringVar(&o.subject, "subject", "", "`subject` for --encode registry (default: TOPIC-value)")
	f.StringVar(&o.producer, "producer", "", "producer `name`, which consumers see")
	f.BoolVar(&o.ids, "ids", false, "print the id of every stored message; the same as -o name")
	output.AddFlag(f, &o.format, output.FormatText, output.FormatJSON, output.FormatName)
	f.DurationVar(&o.linger, "linger", 5*time.Millisecond,
		"how long a message may wait to be sent in one batch with others")
}

// check validates the flags before anything is sent.
func (o *produceOptions) check(cmd *cobra.Command, messages []string) (err error) {
	if o.propertyMap, err = pairs(cmd, "property", o.properties); err != nil {
		return err
	}
	if o.eventTime != "" {
		if o.at, err = time.Parse(time.RFC3339Nano, o.eventTime); err != nil {
			return command.Usagef(cmd, "--event-time is not valid; use a time such as 2026-01-31T12:00:00Z")
		}
	}
	switch {
	case o.form != inputLines && o.form != inputJSON:
		return command.Usagef(cmd, "--input takes lines or json")
	case o.encode != codeNone && o.encode != codeRegistry && o.encode != codeTopic:
		return command.Usagef(cmd, "--encode takes registry, topic or none")
	case o.subject != "" && o.encode != codeRegistry:
		return command.Usagef(cmd, "--subject is for --encode registry")
	case o.key != "" && o.separator != "":
		return command.Usagef(cmd, "--key and --key-separator cannot be combined")
	case o.nullValue && (len(messages) > 0 || len(o.files) > 0):
		return command.Usagef(cmd, "--null-value cannot be combined with other messages")
	case len(messages) > 0 && len(o.files) > 0:
		return command.Usagef(cmd, "messages and --file cannot be combined")
	case o.idempotencyKey != "" && len(messages)+len(o.files) != 1 && !o.nullValue:
		return command.Usagef(cmd, "--idempotency-key is for one message; pass it as an argument or with --file")
	}
	return nil
}

// encoder returns the function that encodes a message's JSON with a schema, nil for --encode
// none.
func (o *produceOptions) encoder(c *client.Client, topic *client.Topic) func(context.Context, *client.Message) error {
	switch o.encode {
	case codeRegistry:
		subject := cmp.Or(o.subject, schemas.SubjectForValue(topic.ShortName()))
		codec := schemas.NewCodec(schemas.New(c))
		return func(ctx context.Context, m *client.Message) (err error) {
			m.Value, err = codec.EncodeJSON(ctx, subject, m.Value)
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == 40401 {
				return hint.Add(err,
					"Register it with 'freshet schema register %s FILE', or set another with --subject.", subject)
			}
			return err
		}
	case codeTopic:
		codec := schemas.NewTopicCodec(topic)
		return func(ctx context.Context, m *client.Message) error {
			data, version, err := codec.EncodeJSON(ctx, m.Value)
			m.Value, m.SchemaVersion = data, &version
			return err
		}
	}
	return nil
}

// run sends the messages and waits until they are stored.
func (o *produceOptions) run(cmd *cobra.Command, env *command.Env, c *client.Client, topic *client.Topic,
	messages []string,
) (err error) {
	// Report a missing topic or an unreachable server before reading messages.
	if _, err := topic.Partitions(cmd.Context()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	sent := &sendState{env: env, format: o.format, stop: cancel, progress: env.Progress(), meter: output.NewMeter()}
	if o.ids && o.format == output.FormatText {
		sent.format = output.FormatName
	}
	if o.isInteractive(env, messages) {
		sent.progress = &output.Progress{} // a progress line would overwrite the user's input
		if output.IsTerminal(env.Err) {
			_, _ = fmt.Fprintln(env.Err, "Type messages, one per line; end with Ctrl-D.")
		}
	}
	p := topic.NewProducer(client.ProducerOptions{Name: o.producer, Linger: o.linger})
	defer func() {
		// Send the messages that were read, even if reading failed.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, p.Close(closing))
		err = sent.end(err)
	}()
	encode := o.encoder(c, topic)
	for message, err := range o.read(ctx, env.In, messages, o.nullValue) {
		if err != nil {
			return err
		}
		o.applyFlags(&message.Message)
		if encode != nil && !message.NullValue {
			if err := encode(ctx, &message.Message); err != nil {
				return fmt.Errorf("%s: %w", message.location, err)
			}
		}
		if err := p.Send(ctx, message.Message, sent.done(message.location)); err != nil {
			return sent.unlessFailed(err)
		}
	}
	return nil
}

// isInteractive reports whether the messages are typed on a terminal.
func (o *produceOptions) isInteractive(env *command.Env, messages []string) bool {
	return len(messages) == 0 && len(o.files) == 0 && !o.nullValue && output.IsTerminal(env.In)
}

// applyFlags applies the flags to a message.
func (o *produceOptions) applyFlags(m *client.Message) {
	m.Key = cmp.Or(o.key, m.Key)
	if m.Properties == nil {
		m.Properties = o.propertyMap
	} else {
		for name, value := range o.propertyMap {
			m.Properties[name] = value
		}
	}
	if !o.at.IsZero() {
		m.EventTime = o.at
	}
	m.DeliverAfter, m.IdempotencyKey = o.delay, o.idempotencyKey
}

// sendState counts the stored messages and records the first error.
type sendState struct {
	env      *command.Env
	format   output.Format
	stop     context.CancelFunc
	progress *output.Progress

	mu         sync.Mutex // protects the fields below, and progress
	meter      *output.Meter
	firstError error
}

// done returns the callback for a message that was stored or has failed.
func (s *sendState) done(location string) func(client.Produced, error) {
	return func(produced client.Produced, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			err = s.print(produced)
		}
		if err != nil {
			if s.firstError == nil {
				s.firstError = fmt.Errorf("%s: %w", location, err)
				s.stop() // stops reading
			}
			return
		}
		s.meter.Add(1)
		s.meter.Show(s.progress, "message")
	}
}

// print prints a stored message in the format of -o.
func (s *sendState) print(produced client.Produced) error {
	switch {
	case s.format.IsData():
		return output.Line(s.env.Out, s.format, storedMessage{produced.StringID})
	case s.format == output.FormatName:
		return s.env.Println(produced.StringID)
	}
	return nil
}

// storedMessage is a stored message in the form of -o json.
type storedMessage struct {
	ID string `json:"id"`
}

// unlessFailed returns err, or nil if a message failed before: end returns that first error.
func (s *sendState) unlessFailed(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.firstError != nil {
		return nil
	}
	return err
}

// end returns the first error, or prints a summary on a terminal.
func (s *sendState) end(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Clear()
	if s.firstError != nil {
		err = s.firstError
	}
	if err != nil {
		if n := s.meter.Count(); n > 0 {
			return fmt.Errorf("%w (%s stored before the failure)", err, output.Number(n, "message"))
		}
		return err
	}
	if output.IsTerminal(s.env.Err) {
		_, err = fmt.Fprintf(s.env.Err, "%s stored\n", output.Number(s.meter.Count(), "message"))
	}
	return err
}
