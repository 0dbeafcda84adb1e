package kafka_test

import (
	bigendian "encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// member is a member of a consumer group with its own minimal protocol code: a thousand
// library clients would need too many resources.
type member struct {
	conn       net.Conn
	group      string
	id         string
	generation int32
	assignment string
}

// connect opens a connection from one of several loopback addresses, because the server
// allows a thousand connections per address.
func (m *member) connect(i int, address, token string) error {
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%4))}
	conn, err := (&net.Dialer{LocalAddr: local, Timeout: 10 * time.Second}).Dial("tcp", address)
	if err != nil {
		return err
	}
	m.conn = conn
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, "PLAIN"
	authenticate := kmsg.NewPtrSASLAuthenticateRequest()
	authenticate.Version, authenticate.SASLAuthBytes = 1, []byte("\x00user\x00"+token)
	for _, request := range []kmsg.Request{handshake, authenticate} {
		if _, err := m.request(request); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) request(request kmsg.Request) (kmsg.Response, error) {
	_ = m.conn.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := m.conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("m")).AppendRequest(nil, request,
		1)); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(m.conn, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, bigendian.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(m.conn, body); err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	if response.IsFlexible() {
		body = body[1:]
	}
	return response, response.ReadFrom(body)
}

// join joins the group and gets an assignment, which the leader makes up.
func (m *member) join() error {
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = 5, m.group,
		120_000, 60_000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("topics")}}
	for {
		response, err := m.request(join)
		if err != nil {
			return err
		}
		joined, _ := response.(*kmsg.JoinGroupResponse)
		m.id, join.MemberID = joined.MemberID, joined.MemberID
		if joined.ErrorCode == 79 {
			continue
		}
		if joined.ErrorCode != 0 {
			return fmt.Errorf("joining %s: code %d", m.group, joined.ErrorCode)
		}
		m.generation = joined.Generation
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, m.group, joined.Generation, m.id
		for _, other := range joined.Members {
			sync.GroupAssignment = append(sync.GroupAssignment,
				kmsg.SyncGroupRequestGroupAssignment{
					MemberID:         other.MemberID,
					MemberAssignment: []byte("for " + other.MemberID),
				})
		}
		response, err = m.request(sync)
		if err != nil {
			return err
		}
		synced, _ := response.(*kmsg.SyncGroupResponse)
		if synced.ErrorCode == 27 || synced.ErrorCode == 22 {
			continue // another member joined later
		}
		if m.assignment = string(synced.MemberAssignment); synced.ErrorCode != 0 || m.assignment != "for "+m.id {
			return fmt.Errorf("syncing %s: code %d, %q", m.group, synced.ErrorCode, m.assignment)
		}
		return nil
	}
}

func (m *member) heartbeat() (int16, error) {
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.Generation, beat.MemberID = 3, m.group, m.generation, m.id
	response, err := m.request(beat)
	if err != nil {
		return 0, err
	}
	got, _ := response.(*kmsg.HeartbeatResponse)
	return got.ErrorCode, nil
}

// all runs do for all members concurrently.
func all(members []*member, do func(i int, m *member) error) error {
	var wg sync.WaitGroup
	failed := make([]error, len(members))
	for i, m := range members {
		wg.Go(func() { failed[i] = do(i, m) })
	}
	wg.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
	}
	return nil
}

// TestFaultRestartWithMembers kills a server with a thousand members in a hundred consumer
// groups. After the restart every stable group continues without a rebalance.
func TestFaultRestartWithMembers(t *testing.T) {
	t.Parallel()
	groups, each := 100, 10
	if testing.Short() {
		groups = 10
	}
	dir := t.TempDir()
	s := start(t, testserver.Options{DataDir: dir, Env: []string{"FRESHET_STREAM_INITIAL_DELAY=1s"}})
	members := make([]*member, groups*each)
	for i := range members {
		members[i] = &member{group: fmt.Sprint("g", i/each)}
	}
	err := all(members, func(i int, m *member) error { return m.connect(i, s.Kafka, s.Token) })
	if err == nil {
		err = all(members, func(_ int, m *member) error { return m.join() })
	}
	if err != nil {
		t.Fatal(err)
	}
	// Members that joined late have caused rebalances: repeat until all groups are stable.
	for changed := true; changed; {
		changed = false
		var mu sync.Mutex
		err := all(members, func(_ int, m *member) error {
			code, err := m.heartbeat()
			if err == nil && code != 0 {
				mu.Lock()
				changed = true
				mu.Unlock()
				err = m.join()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Kill()
	fault := tally.Fault{Name: "kill -9 with 1,000 members of consumer groups", Injected: 1}
	for _, m := range members {
		_ = m.conn.Close()
	}
	began := time.Now()
	s = start(t, testserver.Options{DataDir: dir})
	defer stop(t, s)
	var mu sync.Mutex
	err = all(members, func(i int, m *member) error {
		if err := m.connect(i, s.Kafka, s.Token); err != nil {
			return err
		}
		code, err := m.heartbeat()
		mu.Lock()
		defer mu.Unlock()
		if fault.Checked++; code != 0 {
			fault.Lost++
		}
		return err
	})
	fault.Recovery = time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	fault.Record(t)
	for _, m := range members {
		_ = m.conn.Close()
	}
}
