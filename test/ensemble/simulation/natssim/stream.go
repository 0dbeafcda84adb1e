package natssim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stream is a stream. Its messages are what a majority has; damaged replaces them on a replica, with
// nil for a message that the replica does not have any more.
type stream struct {
	config      jetstream.StreamConfig
	created     time.Time
	first, last uint64 // no messages if last < first
	messages    map[uint64]*message
	ids         map[string]uint64 // Nats-Msg-Id of stored messages
	subjects    map[string]bool   // of all messages that were stored
	damaged     [Replicas]map[uint64]*message
	spoil       int // so many of the next messages are damaged on the replica spoiled
	spoiled     int
	leader      int
	leaderless  int           // elections that run; while there is one, nothing is answered
	grown       chan struct{} // closed and replaced when the stream grows
}

func noDamage() (none [Replicas]map[uint64]*message) {
	for i := range none {
		none[i] = map[uint64]*message{}
	}
	return none
}

// at returns a message as a replica has it.
func (st *stream) at(seq uint64, replica int) *message {
	if m, ok := st.damaged[replica][seq]; ok {
		return m
	}
	return st.messages[seq]
}

// next returns the first message of a subject at or after a sequence, as a replica has it.
func (st *stream) next(seq uint64, pattern string, replica int) *message {
	for seq = max(seq, st.first); seq <= st.last; seq++ {
		if m := st.at(seq, replica); m != nil && matches(pattern, m.subject) {
			return m
		}
	}
	return nil
}

// apiError is an error in the form of the JetStream API.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

var (
	errNoStream     = &apiError{http.StatusNotFound, 10059, "stream not found"}
	errNameInUse    = &apiError{http.StatusBadRequest, 10058, "stream name already in use"}
	errNoMessage    = &apiError{http.StatusNotFound, 10037, "no message found"}
	errWrongStream  = &apiError{http.StatusBadRequest, 10060, "expected stream does not match"}
	errBadRequest   = &apiError{http.StatusBadRequest, 10003, "bad request"}
	codeWrongEnd    = 10071
	noSuchOperation = &apiError{http.StatusNotImplemented, 10999, "operation is not simulated"}
)

// respondLocked sends a response as JSON.
func (s *Servers) respondLocked(to string, response any) {
	if to == "" {
		return
	}
	text, err := json.Marshal(response)
	if err != nil {
		panic(err)
	}
	s.deliverLocked(&message{subject: to, data: text})
}

// failLocked sends an error.
func (s *Servers) failLocked(to string, err *apiError) {
	s.respondLocked(to, map[string]any{"error": err})
}

// routeLocked sends a message of a client to the API, to a stream or to subscribers.
func (s *Servers) routeLocked(m *message) {
	if operation, ok := strings.CutPrefix(m.subject, "$JS.API."); ok {
		s.withFaultsLocked(m, func(m *message) { s.callLocked(operation, m) })
		return
	}
	for _, st := range s.streams {
		for _, pattern := range st.config.Subjects {
			if matches(pattern, m.subject) {
				s.withFaultsLocked(m, s.appendLocked)
				return
			}
		}
	}
	s.deliverLocked(m)
}

// withFaultsLocked handles a request, unless a fault loses, delays or repeats it.
func (s *Servers) withFaultsLocked(m *message, handle func(*message)) {
	silent := *m
	silent.reply = ""
	switch {
	case s.chanceLocked(s.chances.Drop):
	case s.chanceLocked(s.chances.Late):
		s.later(s.upToLocked(5*time.Second), func() { handle(m) })
	case s.chanceLocked(s.chances.Silent):
		handle(&silent)
	default:
		handle(m)
		if s.chanceLocked(s.chances.Repeat) {
			s.later(s.upToLocked(time.Second), func() { handle(m) })
		}
	}
}

// streamOfLocked returns the stream that stores a subject.
func (s *Servers) streamOfLocked(subject string) *stream {
	for _, st := range s.streams {
		for _, pattern := range st.config.Subjects {
			if matches(pattern, subject) {
				return st
			}
		}
	}
	return nil
}

// lastOf returns the sequence of the last message of a subject; 0 without one.
func (st *stream) lastOf(subject string) (last uint64) {
	if !st.subjects[subject] {
		return 0
	}
	for seq, m := range st.messages {
		if m.subject == subject {
			last = max(last, seq)
		}
	}
	return last
}

// appendLocked appends a message to its stream.
func (s *Servers) appendLocked(m *message) {
	st := s.streamOfLocked(m.subject)
	if st == nil || st.leaderless > 0 {
		return
	}
	header := parseHeader(m.header)
	if want := header.Get(nats.ExpectedStreamHdr); want != "" && want != st.config.Name {
		s.failLocked(m.reply, errWrongStream)
		return
	}
	id := header.Get(nats.MsgIdHdr)
	if seq, ok := st.ids[id]; ok && id != "" {
		s.respondLocked(m.reply, map[string]any{"stream": st.config.Name, "seq": seq, "duplicate": true})
		return
	}
	if want := header.Get(nats.ExpectedLastSeqHdr); want != "" && want != strconv.FormatUint(st.last, 10) {
		s.failLocked(m.reply, &apiError{
			http.StatusBadRequest, codeWrongEnd, fmt.Sprintf("wrong last sequence: %d", st.last),
		})
		return
	}
	if want := header.Get(nats.ExpectedLastSubjSeqHdr); want != "" {
		last := st.lastOf(cmp.Or(header.Get(jetstream.ExpectedLastSubjSeqSubjHeader), m.subject))
		if want != strconv.FormatUint(last, 10) {
			s.failLocked(m.reply, &apiError{
				http.StatusBadRequest, codeWrongEnd, fmt.Sprintf("wrong last sequence: %d", last),
			})
			return
		}
	}
	st.last++
	stored := &message{subject: m.subject, header: m.header, data: m.data, seq: st.last, at: time.Now()}
	st.messages[st.last] = stored
	st.subjects[m.subject] = true
	for i := range st.damaged {
		delete(st.damaged[i], st.last)
	}
	if st.spoil > 0 {
		st.spoil--
		s.damageLocked(st, st.last, st.spoiled)
	}
	if id != "" {
		st.ids[id] = st.last
	}
	s.respondLocked(m.reply, map[string]any{"stream": st.config.Name, "seq": st.last})
	if r := st.config.RePublish; r != nil {
		s.republishLocked(st, stored)
	}
	close(st.grown)
	st.grown = make(chan struct{})
}

// republishLocked publishes the headers of a stored message under the destination.
func (s *Servers) republishLocked(st *stream, m *message) {
	header := fmt.Sprintf("Nats-Stream: %s\r\nNats-Subject: %s\r\nNats-Sequence: %d\r\n",
		st.config.Name, m.subject, m.seq)
	s.deliverLocked(&message{
		subject: strings.TrimSuffix(st.config.RePublish.Destination, ">") + m.subject,
		header:  withHeader(m.header, header),
	})
}

// withHeader adds lines to a header.
func withHeader(header []byte, lines string) []byte {
	if header == nil {
		header = []byte("NATS/1.0\r\n\r\n")
	}
	return append(append([]byte{}, header[:len(header)-2]...), lines+"\r\n"...)
}

// parseHeader returns the lines of a header.
func parseHeader(header []byte) nats.Header {
	parsed := nats.Header{}
	for _, line := range bytes.Split(header, []byte("\r\n")) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok {
			parsed.Add(string(name), string(bytes.TrimSpace(value)))
		}
	}
	return parsed
}
