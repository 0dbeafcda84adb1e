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
	minTimeout    = 400 * time.Millisecond // timeout of the first attempt; no server responds during a leader change
	maxTimeout    = 5 * time.Second        // timeout of later attempts, for slow servers
	minBackoff    = 5 * time.Millisecond
	maxBackoff    = 200 * time.Millisecond
	batchMessages = 256
	batchBytes    = 4 << 20
)

// errNoMessage is returned when the stream has no matching message.
var errNoMessage = errors.New("no message found")

// apiRequest sends a JetStream API request, which the leader of the stream serves.
func (s *Journals) apiRequest(ctx context.Context, subject string, request, response any) error {
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
		return fmt.Errorf("decoding the server's response: %w", err)
	}
	if refusal.Error != nil {
		return refusal.Error
	}
	return json.Unmarshal(msg.Data, response)
}

// info returns the leader's state of the stream. With a filter, it also returns the number
// of messages of each matching subject.
func (s *Journals) info(ctx context.Context, stream, filter string) (*natsjs.StreamInfo, error) {
	request := struct {
		Filter string `json:"subjects_filter,omitempty"`
	}{filter}
	info := new(natsjs.StreamInfo)
	return info, s.apiRequest(ctx, "STREAM.INFO."+stream, request, info)
}

type purgeRequest struct {
	Filter   string `json:"filter,omitempty"`
	Sequence uint64 `json:"seq,omitempty"`
}

// purge removes the messages of a subject before a sequence, or all of them when the
// sequence is 0.
func (s *Journals) purge(ctx context.Context, stream string, r purgeRequest) error {
	return s.apiRequest(ctx, "STREAM.PURGE."+stream, r, new(struct{}))
}

// getRequest selects a message: the one at a sequence, the next one of a subject from a
// sequence on, or the last one of a subject.
type getRequest struct {
	Seq     uint64 `json:"seq,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`

	Batch    int `json:"batch,omitempty"`
	MaxBytes int `json:"max_bytes,omitempty"`
}

// storedMessage is a message of a stream.
type storedMessage struct {
	seq  uint64
	data []byte
	sum  string // the value of sumHeader
}

// get reads a message from the leader. It returns errNoMessage when none matches.
func (s *Journals) get(ctx context.Context, stream string, r getRequest) (storedMessage, error) {
	var response struct {
		Message struct {
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := s.apiRequest(ctx, "STREAM.MSG.GET."+stream, r, &response)
	if hasAPICode(err, codeNoMessage) {
		err = errNoMessage
	}
	found := storedMessage{seq: response.Message.Seq, data: response.Message.Data}
	if err == nil && len(response.Message.Headers) > 0 {
		headers, err := nats.DecodeHeadersMsg(response.Message.Headers)
		if err != nil {
			return found, fmt.Errorf("decoding the headers of message %d: %w", found.seq, err)
		}
		found.sum = headers.Get(sumHeader)
	}
	return found, err
}

// getNearest reads messages of a subject from a sequence on from the nearest replica. When that
// replica returns none, one message is read from the leader. It returns errNoMessage
// when the leader has none either. The replica gets half of the attempt's time, which grows with each
// attempt (withRetry), so that a starved replica is not asked for megabytes that nobody waits for.
func (s *Journals) getNearest(ctx context.Context, stream, subject string, from uint64) ([]storedMessage, error) {
	share := minTimeout / 2
	if deadline, ok := ctx.Deadline(); ok {
		share = min(max(share, time.Until(deadline)/2), maxTimeout/2)
	}
	part, cancel := context.WithTimeout(ctx, share)
	found, err := s.getDirect(part, stream,
		getRequest{Seq: from, NextFor: subject, Batch: batchMessages, MaxBytes: batchBytes})
	cancel()
	if err == nil && len(found) > 0 {
		return found, nil
	}
	one, err := s.get(ctx, stream, getRequest{Seq: from, NextFor: subject})
	if err != nil {
		return nil, err
	}
	return []storedMessage{one}, nil
}

// getDirect reads a batch of messages from any replica. When the response is cut short, direct
// returns the messages that arrived, which are the first ones of the batch.
func (s *Journals) getDirect(ctx context.Context, stream string, r getRequest) ([]storedMessage, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	inbox := s.conn.NewInbox()
	responses, err := s.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = responses.Unsubscribe() }()
	if err := s.conn.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, err
	}
	var found []storedMessage
	for {
		msg, err := responses.NextMsgWithContext(ctx)
		if err != nil {
			if len(found) > 0 {
				err = nil
			}
			return found, err
		}
		if msg.Header.Get("Status") != "" { // end of the batch, or no match
			return found, nil
		}
		seq, err := sequenceHeader(msg)
		if err != nil {
			return nil, err
		}
		found = append(found, storedMessage{seq, msg.Data, msg.Header.Get(sumHeader)})
	}
}

func sequenceHeader(msg *nats.Msg) (uint64, error) {
	seq, err := strconv.ParseUint(msg.Header.Get(nats.JSSequence), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parsing the message's sequence header: %w", err)
	}
	return seq, nil
}

// publish publishes a message and returns when the server has stored it.
func (s *Journals) publish(ctx context.Context, msg *nats.Msg) error {
	response, err := s.conn.RequestMsgWithContext(ctx, msg)
	if err == nil {
		_, err = parseAck(response)
	}
	return err
}
