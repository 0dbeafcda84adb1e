package messagecmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/client/schemas"
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
	linger              time.Duration

	propertyMap map[string]string
	at          time.Time
}

func newProduce(env *command.Env) *cobra.Command {
	var o produceOptions
	cmd := &cobra.Command{
		Use:   "produce TOPIC [MESSAGE]...",
		Short: "Send messages to a topic",
		Long: `Send messages to a topic: those on the command line, files, or else each line of
standard input. A message is stored when the command has ended without an error;
lost answers make no duplicates.

With --encode, the messages are JSON and are encoded by a schema: 'registry' takes
the latest version of the subject TOPIC-value, or --subject, and puts its id in
front, as serializers do; 'topic' takes the topic's own schema.

With --input json each line is an object as 'freshet consume -o json' prints it:
value, and where wanted key, properties, eventTime, encoding (text, json, base64),
nullValue.`,
		Example: `  # one message
  freshet produce orders '{"id": 7}' --key customer-7 --property source=shop

  # every line of a pipe
  seq 1 100 | freshet produce orders

  # JSON, stored as Avro by the latest schema of the subject orders-value
  echo '{"id": 7}' | freshet produce orders --encode registry`,
		Args:              argsAndMore("the topic's name"),
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
		"`file` whose whole content is one message, - for standard input; may be given several times")
	f.BoolVarP(&o.zero, "null", "0", false, "messages on standard input end with a zero byte instead of a line break")
	f.StringVar(&o.form, "input", inputLines,
		"what a line of standard input is: `lines` (a message) or json (an object)")
	f.StringVar(&o.separator, "key-separator", "", "`text` between the key and the message on each line")
	f.StringVarP(&o.key, "key", "k", "", "the key, which chooses the partition")
	f.StringArrayVar(&o.properties, "property", nil, "a property, as `name=value`; may be given several times")
	f.StringVar(&o.eventTime, "event-time", "", "when it happened, as RFC 3339 `time`")
	f.DurationVar(&o.delay, "delay", 0, "nobody gets the messages before this `duration` has passed")
	f.BoolVar(&o.nullValue, "null-value", false,
		"one message without a value, which deletes --key from a compacted topic")
	f.StringVar(&o.idempotencyKey, "idempotency-key", "",
		"`key` under which a second attempt is a duplicate; for one message")
	f.StringVar(&o.encode, "encode", codeNone, "encode JSON by a schema: `registry`, topic or none")
	f.StringVar(&o.subject, "subject", "", "`subject` of --encode registry; TOPIC-value by default")
	f.StringVar(&o.producer, "producer", "", "`name` of the producer, which consumers see")
	f.BoolVar(&o.ids, "ids", false, "print the id of every message that is stored")
	f.DurationVar(&o.linger, "linger", 5*time.Millisecond, "how long a message may wait for others to share a call")
}

// check looks at the flags before anything is sent.
func (o *produceOptions) check(cmd *cobra.Command, messages []string) (err error) {
	if o.propertyMap, err = pairs(cmd, "property", o.properties); err != nil {
		return err
	}
	if o.eventTime != "" {
		if o.at, err = time.Parse(time.RFC3339Nano, o.eventTime); err != nil {
			return command.Usagef(cmd, "--event-time: give a time such as 2026-01-31T12:00:00Z")
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
		return command.Usagef(cmd, "give --key or --key-separator, not both")
	case o.nullValue && (len(messages) > 0 || len(o.files) > 0):
		return command.Usagef(cmd, "--null-value is a message of its own: give no other")
	case len(messages) > 0 && len(o.files) > 0:
		return command.Usagef(cmd, "give messages or --file, not both")
	case o.idempotencyKey != "" && len(messages)+len(o.files) != 1 && !o.nullValue:
		return command.Usagef(cmd, "--idempotency-key is for one message: give it on the command line or as --file")
	}
	return nil
}

// encoder returns what makes payloads out of JSON, nil when they stay as they are.
func (o *produceOptions) encoder(c *client.Client, topic *client.Topic) func(context.Context, *client.Message) error {
	switch o.encode {
	case codeRegistry:
		subject := o.subject
		if subject == "" {
			subject = schemas.SubjectForValue(topic.ShortName())
		}
		codec := schemas.NewCodec(schemas.New(c))
		return func(ctx context.Context, m *client.Message) (err error) {
			m.Value, err = codec.EncodeJSON(ctx, subject, m.Value)
			var refused *client.Error
			if errors.As(err, &refused) && refused.Code == 40401 {
				return hint.Add(err, "'freshet schema register %s FILE' makes it; --subject names another.", subject)
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

// run sends the messages.
func (o *produceOptions) run(cmd *cobra.Command, env *command.Env, c *client.Client, topic *client.Topic,
	messages []string,
) (err error) {
	// A topic or a server that is not there is told before anything is read.
	if _, err := topic.Partitions(cmd.Context()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	sent := &sending{env: env, ids: o.ids, stop: cancel, progress: env.Progress(), meter: output.NewMeter()}
	if o.typed(env, messages) {
		sent.progress = &output.Progress{} // it would stand where the person types
		if output.IsTerminal(env.Err) {
			_, _ = fmt.Fprintln(env.Err, "Type messages, one a line; Ctrl-D ends.") // a courtesy
		}
	}
	p := topic.NewProducer(client.ProducerOptions{Name: o.producer, Linger: o.linger})
	defer func() {
		// What was handed over is sent also when reading failed.
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
		o.complete(&message.Message)
		if encode != nil && !message.NullValue {
			if err := encode(ctx, &message.Message); err != nil {
				return fmt.Errorf("%s: %w", message.place, err)
			}
		}
		if err := p.Send(ctx, message.Message, sent.done(message.place)); err != nil {
			return sent.first(err)
		}
	}
	return nil
}

// typed says that a person types the messages.
func (o *produceOptions) typed(env *command.Env, messages []string) bool {
	return len(messages) == 0 && len(o.files) == 0 && !o.nullValue && output.IsTerminal(env.In)
}

// complete adds what the flags say to a message.
func (o *produceOptions) complete(m *client.Message) {
	if o.key != "" {
		m.Key = o.key
	}
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

// sending counts what is stored, and remembers what went wrong first.
type sending struct {
	env      *command.Env
	ids      bool
	stop     context.CancelFunc
	progress *output.Progress

	mu     sync.Mutex // guards what follows, and progress
	meter  *output.Meter
	failed error
}

// done is what happens when a message is stored or given up.
func (s *sending) done(place string) func(client.Produced, error) {
	return func(produced client.Produced, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && s.ids {
			_, err = fmt.Fprintln(s.env.Out, produced.StringID)
		}
		if err != nil {
			if s.failed == nil {
				s.failed = fmt.Errorf("%s: %w", place, err)
				s.stop() // nothing is read any more
			}
			return
		}
		s.meter.Add(1)
		s.meter.Show(s.progress, "message")
	}
}

// first is the error of the first message that failed, else err.
func (s *sending) first(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil // end tells it
	}
	return err
}

// end says how it went, to a person.
func (s *sending) end(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Clear()
	if s.failed != nil {
		err = s.failed
	}
	if err != nil {
		if n := s.meter.Count(); n > 0 {
			return fmt.Errorf("%w (stored before: %s)", err, output.Number(n, "message"))
		}
		return err
	}
	if output.IsTerminal(s.env.Err) {
		_, err = fmt.Fprintf(s.env.Err, "%s stored\n", output.Number(s.meter.Count(), "message"))
	}
	return err
}
