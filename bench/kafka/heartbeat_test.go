package kafka

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// heartbeatRow has members of classic consumer groups send heartbeats, as idle clients
// do, each on its own connection. The last variant is a server that sends the same
// response to every request and does nothing else.
func heartbeatRow(name string, groups, members int) row {
	return row{name: name, variants: func(brokers []*broker) (all []variant) {
		for _, k := range brokers {
			all = append(all, variant{
				k.name, k,
				func(t *trial) (outcome, error) { return t.heartbeats(groups, members, join) },
			})
		}
		bare := brokers[0]
		return append(all, variant{
			"bare Go server", bare,
			func(t *trial) (outcome, error) { return t.bareHeartbeats(groups, members) },
		})
	}}
}

// heartbeats measures so many groups, or as many as the limit of open files allows.
func (t *trial) heartbeats(groups, members int,
	join func(string, []*wire, []*kmsg.HeartbeatRequest) error,
) (outcome, error) {
	const every, length = 3 * time.Second, 12 * time.Second
	allowed, err := connectionLimit(groups * members)
	if err != nil {
		return outcome{}, err
	}
	groups = allowed / members
	beats := make([]*kmsg.HeartbeatRequest, groups*members)
	var conns []*wire
	err = t.prepare(func() (err error) {
		if conns, err = t.dialMany(len(beats)); err != nil {
			return err
		}
		const concurrency = 64
		return each(concurrency, func(part int) error {
			for g := part; g < groups; g += concurrency {
				first := g * members
				if err := join(fmt.Sprintf("%s-%d", t.topic, g), conns[first:first+members],
					beats[first:first+members]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return outcome{}, err
	}
	var sent sync.WaitGroup
	ends := time.Now().Add(length)
	failures := make(chan error, len(conns))
	count := make([]int, len(conns))
	for i := range conns {
		sent.Go(func() {
			<-time.After(every * time.Duration(i) / time.Duration(len(conns))) // spread over the interval
			beat := time.NewTicker(every)
			defer beat.Stop()
			for ; time.Now().Before(ends); <-beat.C {
				response, err := conns[i].roundTrip(beats[i])
				if got, ok := response.(*kmsg.HeartbeatResponse); err == nil && ok && got.ErrorCode != 0 {
					err = fmt.Errorf("heartbeat: code %d", got.ErrorCode)
				}
				if err != nil {
					failures <- err
					return
				}
				count[i]++
			}
		})
	}
	sent.Wait()
	close(failures)
	if err := <-failures; err != nil {
		return outcome{}, err
	}
	total := 0
	for _, n := range count {
		total += n
	}
	return outcome{records: total, note: fmt.Sprintf("%d groups", groups)}, nil
}

// join makes the connections members of a new consumer group.
func join(group string, conns []*wire, beats []*kmsg.HeartbeatRequest) error {
	return each(len(conns), func(i int) error {
		request := kmsg.NewPtrJoinGroupRequest()
		request.Version, request.Group, request.ProtocolType = 3, group, "consumer"
		request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 60_000, 60_000
		protocol := kmsg.NewJoinGroupRequestProtocol()
		protocol.Name, protocol.Metadata = "range", []byte("x")
		request.Protocols = append(request.Protocols, protocol)
		for {
			response, err := conns[i].roundTrip(request)
			if err != nil {
				return err
			}
			joined, _ := response.(*kmsg.JoinGroupResponse)
			if joined.ErrorCode != 0 && joined.ErrorCode != rebalancing {
				return fmt.Errorf("joining %s: code %d", group, joined.ErrorCode)
			}
			request.MemberID = joined.MemberID
			if joined.ErrorCode == rebalancing || len(joined.Members) > 0 && len(joined.Members) < len(conns) {
				continue // not all members have joined yet
			}
			sync := kmsg.NewPtrSyncGroupRequest()
			sync.Version, sync.Group, sync.Generation, sync.MemberID = 2, group, joined.Generation, joined.MemberID
			for _, m := range joined.Members {
				assigned := kmsg.NewSyncGroupRequestGroupAssignment()
				assigned.MemberID, assigned.MemberAssignment = m.MemberID, []byte("y")
				sync.GroupAssignment = append(sync.GroupAssignment, assigned)
			}
			response, err = conns[i].roundTrip(sync)
			if err != nil {
				return err
			}
			switch synced, _ := response.(*kmsg.SyncGroupResponse); synced.ErrorCode {
			case 0:
			case rebalancing:
				continue
			default:
				return fmt.Errorf("syncing %s: code %d", group, synced.ErrorCode)
			}
			beats[i] = newHeartbeat(group, joined.Generation, joined.MemberID)
			return nil
		}
	})
}

// rebalancing is the Kafka error code REBALANCE_IN_PROGRESS: the member has to join again.
const rebalancing = 27

func newHeartbeat(group string, generation int32, member string) *kmsg.HeartbeatRequest {
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.Generation, beat.MemberID = 2, group, generation, member
	return beat
}

// bareEnv is the environment variable that makes this test binary run as the bare server.
const bareEnv = "FRESHET_BENCH_BARE"

// bareHeartbeats measures heartbeats to a bare server, which it starts from this test binary.
func (t *trial) bareHeartbeats(groups, members int) (got outcome, err error) {
	self, err := os.Executable()
	if err != nil {
		return got, err
	}
	cmd := exec.CommandContext(t.ctx, self)
	cmd.Env = append(os.Environ(), bareEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // the bare server exits when its stdin closes
	if err != nil {
		return got, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return got, err
	}
	if err := cmd.Start(); err != nil {
		return got, err
	}
	t.closers = append(t.closers, func() { _ = errors.Join(in.Close(), cmd.Wait()) })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return got, fmt.Errorf("bare server did not start: %w", err)
	}
	if err := t.switchTo(&broker{pid: cmd.Process.Pid, address: strings.TrimSpace(address), bare: true}); err != nil {
		return got, err
	}
	return t.heartbeats(groups, members, func(group string, conns []*wire, beats []*kmsg.HeartbeatRequest) error {
		for i := range conns {
			beats[i] = newHeartbeat(group, 1, fmt.Sprintf("bench-%d-00000000-0000-0000-0000-000000000000", i))
		}
		return nil
	})
}

// serveBare runs the bare server until its stdin closes.
func serveBare() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent process exits
		_ = listener.Close()
	}()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return nil //nolint:nilerr // the parent process closed the listener
		}
		go func() {
			defer func() { _ = conn.Close() }()
			_ = respondBare(conn)
		}()
	}
}

// respondBare responds to every request as to a valid heartbeat.
func respondBare(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, 512)
	request := make([]byte, 4<<10)
	response := make([]byte, 4+4+6)
	binary.BigEndian.PutUint32(response, uint32(len(response)-4)) //nolint:gosec // a few bytes
	for {
		if _, err := io.ReadFull(in, request[:4]); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(request)
		if size < 8 || size > uint32(len(request)) { //nolint:gosec // a few kilobytes
			return io.ErrUnexpectedEOF
		}
		if _, err := io.ReadFull(in, request[:size]); err != nil {
			return err
		}
		copy(response[4:8], request[4:8]) // the correlation id
		if _, err := conn.Write(response); err != nil {
			return err
		}
	}
}
