package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	minAnswer     = 400 * time.Millisecond // what the first try has for its answers: a leader that changes gives none
	maxAnswer     = 5 * time.Second        // what a later one has, since the servers may be slow
	minBackoff    = 5 * time.Millisecond
	maxBackoff    = 200 * time.Millisecond
	batchMessages = 256
	batchBytes    = 4 << 20
)

// errNoMessage says that there is no such message.
var errNoMessage = errors.New("no message found")

// call asks the leader of a stream.
func (s *Journals) call(ctx context.Context, subject string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	msg, err := s.conn.RequestWithContext(ctx, "$JS.API."+subject, body)
	if err != nil {
		return err
	}
	var refusal struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &refusal); err != nil {
		return fmt.Errorf("answer of a server: %w", err)
	}
	if refusal.Error != nil {
		return refusal.Error
	}
	return json.Unmarshal(msg.Data, response)
}

// info asks the leader what the stream is like. With a filter, it says how many
// messages each matching subject has.
func (s *Journals) info(ctx context.Context, stream, filter string) (*natsjs.StreamInfo, error) {
	request := struct {
		Filter string `json:"subjects_filter,omitempty"`
	}{filter}
	info := new(natsjs.StreamInfo)
	return info, s.call(ctx, "STREAM.INFO."+stream, request, info)
}

type purgeRequest struct {
	Filter   string `json:"filter,omitempty"`
	Sequence uint64 `json:"seq,omitempty"`
}

// purge removes messages of a subject up to but not including a sequence; all of
// them when that is 0.
func (s *Journals) purge(ctx context.Context, stream string, r purgeRequest) error {
	return s.call(ctx, "STREAM.PURGE."+stream, r, new(struct{}))
}

// getRequest names a message: at a sequence; the next of a subject from a sequence
// on; or the last of a subject.
type getRequest struct {
	Seq     uint64 `json:"seq,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`

	Batch    int `json:"batch,omitempty"`
	MaxBytes int `json:"max_bytes,omitempty"`
}

// stored is a message as it lies in a stream.
type stored struct {
	seq  uint64
	data []byte
}

// get asks the leader for a message; errNoMessage when there is none.
func (s *Journals) get(ctx context.Context, stream string, r getRequest) (stored, error) {
	var response struct {
		Message struct {
			Seq  uint64 `json:"seq"`
			Data []byte `json:"data"`
		} `json:"message"`
	}
	err := s.call(ctx, "STREAM.MSG.GET."+stream, r, &response)
	if refused(err, codeNoMessage) {
		err = errNoMessage
	}
	return stored{response.Message.Seq, response.Message.Data}, err
}

// near asks the nearest replica for messages of a subject from a sequence on. It
// may have none yet, and then the leader is asked for one; errNoMessage when there
// is none.
func (s *Journals) near(ctx context.Context, stream, subject string, from uint64) ([]stored, error) {
	part, cancel := context.WithTimeout(ctx, minAnswer/2)
	found, err := s.direct(part, stream,
		getRequest{Seq: from, NextFor: subject, Batch: batchMessages, MaxBytes: batchBytes})
	cancel()
	if err == nil && len(found) > 0 {
		return found, nil
	}
	one, err := s.get(ctx, stream, getRequest{Seq: from, NextFor: subject})
	if err != nil {
		return nil, err
	}
	return []stored{one}, nil
}

// direct asks any replica for a batch. What it returns is the beginning of what
// was asked for, whatever cut it short.
func (s *Journals) direct(ctx context.Context, stream string, r getRequest) ([]stored, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	inbox := s.conn.NewInbox()
	answers, err := s.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := s.conn.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, err
	}
	var found []stored
	for {
		msg, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			if len(found) > 0 {
				err = nil
			}
			return found, err
		}
		if msg.Header.Get("Status") != "" { // the end of the batch, or nothing found
			return found, nil
		}
		seq, err := sequence(msg)
		if err != nil {
			return nil, err
		}
		found = append(found, stored{seq, msg.Data})
	}
}

func sequence(msg *nats.Msg) (uint64, error) {
	seq, err := strconv.ParseUint(msg.Header.Get(nats.JSSequence), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("message without a sequence: %w", err)
	}
	return seq, nil
}

// put publishes a message and returns the sequence that it got.
func (s *Journals) put(ctx context.Context, msg *nats.Msg) (uint64, error) {
	answer, err := s.conn.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error  *apiError `json:"error"`
		Stream string    `json:"stream"`
		Seq    uint64    `json:"seq"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("acknowledgement of a publish: %w", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	if ack.Stream == "" || ack.Seq == 0 {
		return 0, errors.New("acknowledgement of a publish says nothing")
	}
	return ack.Seq, nil
}
