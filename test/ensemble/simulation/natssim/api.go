package natssim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// callLocked executes a call of the JetStream API.
func (s *Servers) callLocked(operation string, m *message) {
	parts := strings.Split(operation, ".")
	if operation == "STREAM.NAMES" {
		s.namesLocked(m)
		return
	}
	if len(parts) < 3 {
		s.failLocked(m.reply, noSuchOperation)
		return
	}
	kind, name := parts[0]+"."+parts[1], parts[2]
	switch kind {
	case "STREAM.CREATE":
		s.createLocked(name, m)
		return
	case "DIRECT.GET":
		name = parts[2]
	case "STREAM.MSG", "STREAM.LEADER":
		kind, name = kind+"."+parts[2], parts[3]
	}
	st := s.streams[name]
	if st == nil {
		s.failLocked(m.reply, errNoStream)
		return
	}
	if st.leaderless > 0 && kind != "DIRECT.GET" {
		return
	}
	switch kind {
	case "STREAM.INFO":
		s.infoLocked(st, m)
	case "STREAM.DELETE":
		delete(s.streams, name)
		s.respondLocked(m.reply, map[string]any{"success": true})
	case "STREAM.PURGE":
		s.purgeLocked(st, m)
	case "STREAM.MSG.GET":
		s.getLocked(st, m)
	case "DIRECT.GET":
		s.directLocked(st, m)
	case "STREAM.LEADER.STEPDOWN":
		s.stepDownLocked(st, m)
	default:
		s.failLocked(m.reply, noSuchOperation)
	}
}

// namesLocked sends the names of the streams, or of those with a subject that matches a pattern.
func (s *Servers) namesLocked(m *message) {
	var request struct {
		Subject string `json:"subject"`
	}
	_ = json.Unmarshal(m.data, &request) // an empty request is valid
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.streams)), func(name string) bool {
		return request.Subject != "" && !slices.ContainsFunc(s.streams[name].config.Subjects,
			func(subject string) bool { return matches(request.Subject, subject) })
	})
	s.respondLocked(m.reply, map[string]any{"total": len(names), "offset": 0, "limit": 1024, "streams": names})
}

// stepDownLocked makes the preferred replica of a request the leader of a stream.
func (s *Servers) stepDownLocked(st *stream, m *message) {
	var request struct {
		Placement struct {
			Preferred string `json:"preferred"`
		} `json:"placement"`
	}
	if json.Unmarshal(m.data, &request) != nil {
		s.failLocked(m.reply, errBadRequest)
		return
	}
	for i := range Replicas {
		if request.Placement.Preferred == serverName(i) {
			st.leader = i
		}
	}
	s.respondLocked(m.reply, map[string]any{"success": true})
}

func serverName(i int) string { return fmt.Sprintf("server-%d", i) }

// createLocked creates a stream.
func (s *Servers) createLocked(name string, m *message) {
	var config jetstream.StreamConfig
	if json.Unmarshal(m.data, &config) != nil {
		s.failLocked(m.reply, errBadRequest)
		return
	}
	if s.streams[name] != nil {
		s.failLocked(m.reply, errNameInUse)
		return
	}
	first := max(config.FirstSeq, 1)
	st := &stream{
		config: config, created: time.Now(), first: first, last: first - 1, messages: map[uint64]*message{},
		ids: map[string]uint64{}, subjects: map[string]bool{}, damaged: noDamage(),
		leader: s.random.IntN(Replicas), grown: make(chan struct{}),
	}
	s.streams[name] = st
	s.infoLocked(st, &message{reply: m.reply})
}

// infoLocked sends the description of a stream.
func (s *Servers) infoLocked(st *stream, m *message) {
	var request struct {
		Filter string `json:"subjects_filter"`
	}
	_ = json.Unmarshal(m.data, &request) // an empty request is valid
	info := jetstream.StreamInfo{
		Config: st.config, Created: st.created,
		State: jetstream.StreamState{
			Msgs: uint64(len(st.messages)), FirstSeq: st.first, LastSeq: st.last,
		},
		Cluster: &jetstream.ClusterInfo{Name: "sim", Leader: serverName(st.leader)},
	}
	for i := range Replicas {
		if i != st.leader {
			info.Cluster.Replicas = append(info.Cluster.Replicas,
				&jetstream.PeerInfo{Name: serverName(i), Current: true, Active: 1})
		}
	}
	for _, stored := range st.messages {
		info.State.Bytes += uint64(len(stored.data) + len(stored.header))
		if request.Filter != "" && matches(request.Filter, stored.subject) {
			if info.State.Subjects == nil {
				info.State.Subjects = map[string]uint64{}
			}
			info.State.Subjects[stored.subject]++
		}
	}
	s.respondLocked(m.reply, info)
}

// purgeLocked removes messages before a sequence, or all, of a subject or of all subjects.
func (s *Servers) purgeLocked(st *stream, m *message) {
	var request struct {
		Filter string `json:"filter"`
		Seq    uint64 `json:"seq"`
	}
	if len(m.data) > 0 && json.Unmarshal(m.data, &request) != nil {
		s.failLocked(m.reply, errBadRequest)
		return
	}
	purged := 0
	for seq, stored := range st.messages {
		if (request.Seq == 0 || seq < request.Seq) &&
			(request.Filter == "" || matches(request.Filter, stored.subject)) {
			delete(st.messages, seq)
			purged++
		}
	}
	for st.first <= st.last && st.messages[st.first] == nil {
		st.first++
	}
	for i := range st.damaged {
		maps.DeleteFunc(st.damaged[i], func(seq uint64, _ *message) bool { return st.messages[seq] == nil })
	}
	s.respondLocked(m.reply, map[string]any{"success": true, "purged": purged})
}

// getRequest selects messages.
type getRequest struct {
	Seq      uint64 `json:"seq"`
	NextFor  string `json:"next_by_subj"`
	LastFor  string `json:"last_by_subj"`
	Batch    int    `json:"batch"`
	MaxBytes int    `json:"max_bytes"`
}

// find returns the message that a request selects, as a replica has it.
func (st *stream) find(r getRequest, replica int) *message {
	switch {
	case r.LastFor != "":
		for seq := st.last; seq >= st.first && seq > 0; seq-- {
			if m := st.at(seq, replica); m != nil && matches(r.LastFor, m.subject) {
				return m
			}
		}
		return nil
	case r.NextFor != "":
		return st.next(r.Seq, r.NextFor, replica)
	}
	return st.at(r.Seq, replica)
}

// getLocked sends a message as the leader has it.
func (s *Servers) getLocked(st *stream, m *message) {
	var request getRequest
	if json.Unmarshal(m.data, &request) != nil {
		s.failLocked(m.reply, errBadRequest)
		return
	}
	found := st.find(request, st.leader)
	if found == nil {
		s.failLocked(m.reply, errNoMessage)
		return
	}
	s.respondLocked(m.reply, map[string]any{"message": map[string]any{
		"subject": found.subject, "seq": found.seq, "hdrs": found.header, "data": found.data, "time": found.at,
	}})
}

// directLocked sends messages as any replica has them.
func (s *Servers) directLocked(st *stream, m *message) {
	var request getRequest
	if json.Unmarshal(m.data, &request) != nil {
		s.statusLocked(m.reply, "408 Bad Request")
		return
	}
	replica := s.random.IntN(Replicas)
	sent, size := 0, 0
	for sent < max(1, request.Batch) && (request.MaxBytes == 0 || size < request.MaxBytes) {
		found := st.find(request, replica)
		if found == nil {
			break
		}
		s.deliverLocked(&message{subject: m.reply, data: found.data, header: withHeader(found.header,
			fmt.Sprintf("Nats-Stream: %s\r\nNats-Subject: %s\r\nNats-Sequence: %d\r\nNats-Time-Stamp: %s\r\n",
				st.config.Name, found.subject, found.seq, found.at.UTC().Format(time.RFC3339Nano)))})
		sent, size = sent+1, size+len(found.data)
		request.Seq = found.seq + 1
	}
	switch {
	case sent == 0:
		s.statusLocked(m.reply, "404 Message Not Found")
	case request.Batch > 0:
		s.statusLocked(m.reply, "204 EOB")
	}
}

// statusLocked sends a message that has a status only.
func (s *Servers) statusLocked(to, status string) {
	s.deliverLocked(&message{subject: to, header: []byte("NATS/1.0 " + status + "\r\n\r\n")})
}
