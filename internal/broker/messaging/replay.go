package messaging

import (
	"context"
	"errors"
	"slices"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/storage/engine"
)

// ReplaySubscription is the subscription of a dead-letter topic that records which dead letters were
// replayed: those are acknowledged.
const ReplaySubscription = "freshet-replay"

// ErrOwnDeadLetters means that dead letters cannot be replayed to the topic in which they are.
var ErrOwnDeadLetters = errs.New(errs.Invalid, "dead letters cannot be replayed to the dead-letter topic itself")

// Replayer is the part of a broker that sends dead letters to a topic again.
type Replayer struct {
	searcher *Searcher
	producer *Producer
	limits   *Limits
}

// ReplayOptions selects the dead letters that a Replay sends.
type ReplayOptions struct {
	Source  names.Topic // whose messages the dead letters are; their payloads have its schemas
	Letters names.Topic // the dead-letter topic
	To      names.Topic
	Filter  *filter.Filter   // nil selects all
	After   *names.MessageID // nil means from the first dead letter
	Limit   int              // ends after this many matches
	DryRun  bool             // counts and changes nothing
}

// Replayed is the result of a Replay.
type Replayed struct {
	// Progress counts dead letters. Failed includes those that the target rejects.
	Progress Progress
	Sent     int64           // copies that are durable
	More     bool            // there may be more dead letters after Last
	Last     names.MessageID // the last dead letter that was read, if there are more
}

// Replay sends dead letters to a topic, oldest first, and acknowledges each one after its copy is durable.
// It reads a limited number. Those that the filter does not select, and those that the target rejects, stay
// dead letters. The letter's id identifies its copy, so that a retry stores no duplicate.
func (r *Replayer) Replay(ctx context.Context, opts ReplayOptions) (Replayed, error) {
	catalogue := r.producer.catalogue
	letters, err := catalogue.fresh(ctx, opts.Letters)
	if err != nil {
		return Replayed{}, err
	}
	source, err := catalogue.resolve(ctx, opts.Source)
	if err != nil {
		return Replayed{}, err
	}
	to, err := catalogue.resolve(ctx, opts.To)
	if err != nil {
		return Replayed{}, err
	}
	if to.id == letters.id {
		return Replayed{}, ErrOwnDeadLetters
	}
	subscription, err := r.subscription(ctx, &opts)
	if err != nil {
		return Replayed{}, err
	}
	consumer := r.searcher.consumer
	tail := &Tail{consumer: consumer, target: letters, next: []uint64{0}, subscription: subscription}
	if opts.After != nil {
		id, err := letters.engineID(*opts.After)
		if err != nil {
			return Replayed{}, err
		}
		tail.advancePast(id)
	}
	reading := r.searcher.selection(ctx, tail, opts.Filter)
	reading.schemas, reading.most = source.id, maxSelectingRead
	run := &replay{r: r, opts: &opts, reading: &reading, sameTopic: to.id == source.id}
	_, err = tail.untilDrain(ctx, func(waiting context.Context) ([]Received, error) { return nil, run.run(waiting) })
	if err != nil {
		return Replayed{}, err
	}
	out := Replayed{Progress: reading.progress, Sent: run.sent, More: run.more}
	if out.More {
		out.Last = letters.messageID(reading.last)
	}
	return out, nil
}

// subscription returns the subscription of the letters that were not replayed, and creates it. A dry run
// does not create it, and returns "" if it does not exist.
func (r *Replayer) subscription(ctx context.Context, opts *ReplayOptions) (string, error) {
	consumer := r.searcher.consumer
	_, err := consumer.SubscriptionProperties(ctx, opts.Letters, ReplaySubscription)
	switch {
	case err == nil:
		return ReplaySubscription, nil
	case !errors.Is(err, ErrNoSubscription):
		return "", err
	case opts.DryRun:
		return "", nil
	}
	err = consumer.Subscribe(ctx, opts.Letters, ReplaySubscription, Position{Kind: Earliest}, nil)
	if err != nil && !errors.Is(err, ErrSubscriptionExists) {
		return "", err
	}
	return ReplaySubscription, nil
}

// replay is the state of a Replay.
type replay struct {
	r         *Replayer
	opts      *ReplayOptions
	reading   *selection
	sameTopic bool // the copies go to the topic of the originals
	sent      int64
	more      bool
}

func (r *replay) run(ctx context.Context) error {
	most := min(deliveryBatch, r.r.limits.MaxBatch)
	for deadline := time.Now().Add(maxSelecting); time.Now().Before(deadline); {
		left := r.opts.Limit - int(r.reading.progress.Matched)
		if left <= 0 || r.reading.exhausted() {
			break
		}
		found, end, err := r.reading.slice(ctx, 0, min(left, most))
		if err != nil {
			return err
		}
		if len(found) > 0 && !r.opts.DryRun {
			if err := r.send(ctx, found); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
		if r.r.producer.quota.Pause() > 0 {
			break // the next call waits for the quota of bytes per second
		}
	}
	r.more = true
	return nil
}

// send stores copies of dead letters, and acknowledges those whose copies are durable. A letter that the
// target rejects counts as failed. Any other failure ends the call.
func (r *replay) send(ctx context.Context, letters []Received) error {
	copies := make([]Message, len(letters))
	for i := range letters {
		copies[i] = r.copyOf(&letters[i])
		// A client that consumes and produces pays for the bytes of both.
		r.r.producer.quota.Charge(2 * int64(len(letters[i].Payload)+len(letters[i].Key)))
	}
	results, err := r.r.producer.produceBatch(ctx, r.opts.To, copies, false)
	if err != nil {
		return err
	}
	var stored []Settlement
	var failure error
	for i := range results {
		switch kind := errs.KindOf(results[i].Err); {
		case results[i].Err == nil:
			stored = append(stored, Settlement{ID: letters[i].ID, Action: Ack})
		case kind == errs.Invalid || kind == errs.TooLarge || kind == errs.NotFound:
			r.reading.progress.fail(results[i].Err)
		default:
			failure = results[i].Err
		}
	}
	if len(stored) > 0 {
		consumer := r.r.searcher.consumer
		if err := consumer.Settle(ctx, r.opts.Letters, ReplaySubscription, stored...); err != nil {
			return err
		}
		r.sent += int64(len(stored))
	}
	return failure
}

// copyOf returns the original message of a dead letter.
func (r *replay) copyOf(letter *Received) Message {
	m := Message{
		Payload: letter.Payload, NullPayload: letter.NullPayload, Key: letter.Key, EmptyKey: letter.EmptyKey,
		BinaryKey: letter.BinaryKey, EventTime: letter.EventTime, SchemaVersion: NoSchema,
		replayOf: letter.ID.String(),
	}
	if r.sameTopic {
		m.SchemaVersion = letter.SchemaVersion
	}
	isOrigin := func(p Property) bool { return p.Key == engine.OriginProperty }
	m.Properties = slices.DeleteFunc(slices.Clone(letter.Properties), isOrigin)
	return m
}
