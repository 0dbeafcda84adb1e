package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
	"freshet/test/ensemble/simulation/etcdsim"
	"freshet/test/ensemble/simulation/natssim"
)

var names = []string{"a", "b", "c"}

// world is one simulated ensemble with its clients.
type world struct {
	seed   uint64
	random *rand.Rand // used by the goroutine that injects faults only
	dir    string
	log    *slog.Logger
	nats   *natssim.Servers
	etcd   *etcdsim.Store
	disks  map[string]*vfs.MemFS
	ending sync.WaitGroup // members that end after a crash
	faults []string

	mu      sync.Mutex // protects the fields below
	members map[string]*member
	acked   []map[engine.MessageID]string // by shard
	sent    []map[string]bool             // by shard: texts whose append was tried
	records map[uint64]string             // acknowledged journal records by position
	wrong   []string                      // violations
}

func newWorld(seed uint64, dir string, log *slog.Logger) *world {
	w := &world{
		seed: seed, random: rand.New(rand.NewPCG(seed, 3)), dir: dir, log: log, //nolint:gosec // a simulation
		nats: natssim.New(seed), etcd: etcdsim.New(seed), disks: map[string]*vfs.MemFS{},
		members: map[string]*member{}, records: map[uint64]string{},
	}
	for range shardCount {
		w.acked = append(w.acked, map[engine.MessageID]string{})
		w.sent = append(w.sent, map[string]bool{})
	}
	return w
}

// fault notes an injected fault.
func (w *world) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.faults = append(w.faults, text)
	w.log.Info("FAULT " + text)
}

// violation notes something that must not happen.
func (w *world) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) < 20 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

// running returns the members that run, in order.
func (w *world) running() []*member {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*member
	for _, name := range names {
		if m := w.members[name]; m != nil {
			list = append(list, m)
		}
	}
	return list
}

// up starts a member on its disk.
func (w *world) up(ctx context.Context, name string) error {
	if w.disks[name] == nil {
		w.disks[name] = w.newFS(name)
	}
	m, err := w.start(ctx, name, w.disks[name])
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members[name] = m
	return nil
}

// remove takes a member out of the running ones.
func (w *world) remove(name string) *member {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.members[name]
	delete(w.members, name)
	return m
}

// owner returns a member that serves a shard, with its engine.
func (w *world) owner(shard int) (*member, engine.Engine) {
	for _, m := range w.running() {
		if e, err := m.shards[shard].Engine(); err == nil && m.lease.Alive() {
			return m, e
		}
	}
	return nil, nil
}

// topic is the id of the topic of a shard.
const topic = engine.TopicID(1)

// retainAll keeps all messages, so that every one can be checked.
var retainAll = engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}

// write appends messages to a shard until the context ends.
func (w *world) write(ctx context.Context, shard, writer int, random *rand.Rand) {
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(random.Int64N(int64(40 * time.Millisecond))))
		m, e := w.owner(shard)
		if m == nil {
			continue
		}
		text := fmt.Sprintf("%d/%d/%d/%s", shard, writer, i, strings.Repeat("x", random.IntN(400)))
		w.mu.Lock()
		w.sent[shard][text] = true
		w.mu.Unlock()
		call, cancel := context.WithTimeout(ctx, 20*time.Second)
		out, err := e.Append(call, topic, 0, []engine.Message{{Payload: []byte(text)}})
		cancel()
		switch {
		case errors.Is(err, engine.ErrNoTopic):
			_ = e.CreateTopic(ctx, topic, retainAll) // the next append shows whether it exists
		case err == nil && !m.crashed.Load():
			w.acknowledge(shard, out[0].ID, text)
		}
	}
}

// acknowledge notes an acknowledged message.
func (w *world) acknowledge(shard int, id engine.MessageID, text string) {
	w.mu.Lock()
	was, ok := w.acked[shard][id]
	if !ok {
		w.acked[shard][id] = text
	}
	w.mu.Unlock()
	if ok {
		w.violation("shard %d: message %v was acknowledged as %.20q and as %.20q", shard, id, was, text)
	}
}

// read reads a whole shard from its owner until the context ends, and checks that everything is there
// that was acknowledged before.
func (w *world) read(ctx context.Context, shard int, random *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
		m, e := w.owner(shard)
		if m == nil {
			continue
		}
		w.mu.Lock()
		want := make(map[engine.MessageID]string, len(w.acked[shard]))
		for id, text := range w.acked[shard] {
			want[id] = text
		}
		w.mu.Unlock()
		alive := m.lease.Alive()
		got, err := e.Read(ctx, topic, engine.ReadRequest{Max: 1 << 20})
		if err != nil || !alive || !m.lease.Alive() || m.crashed.Load() {
			continue
		}
		w.compare(shard, "read at "+m.name, want, got)
	}
}

// compare checks messages that were read.
func (w *world) compare(shard int, where string, want map[engine.MessageID]string, got []engine.Record) {
	found := make(map[engine.MessageID]string, len(got))
	once := map[string]bool{}
	w.mu.Lock()
	sent := w.sent[shard]
	for i := range got {
		text := string(got[i].Payload)
		if !sent[text] || once[text] {
			w.wrong = append(w.wrong, fmt.Sprintf("shard %d, %s: message %v %.20q is invented or doubled",
				shard, where, got[i].ID, text))
		}
		once[text] = true
		found[got[i].ID] = text
	}
	w.mu.Unlock()
	lost := 0
	for id, text := range want {
		switch have, ok := found[id]; {
		case !ok:
			lost++
		case have != text:
			w.violation("shard %d, %s: message %v is %.20q, acknowledged as %.20q", shard, where, id, have, text)
		}
	}
	if lost > 0 {
		w.violation("shard %d, %s: %d of %d acknowledged messages are lost", shard, where, lost, len(want))
	}
}

// record appends to the journal at any member until the context ends.
func (w *world) record(ctx context.Context, writer int, random *rand.Rand) {
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
		list := w.running()
		if len(list) == 0 {
			continue
		}
		m := list[random.IntN(len(list))]
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		after, err := m.journal.Last(call)
		text := fmt.Sprintf("%d/%d", writer, i)
		var last uint64
		if err == nil {
			last, err = m.journal.Append(call, after, []byte(text))
		}
		cancel()
		if err != nil || m.crashed.Load() {
			continue
		}
		w.mu.Lock()
		was, ok := w.records[last]
		w.records[last] = text
		w.mu.Unlock()
		if ok {
			w.violation("journal: position %d was acknowledged as %q and as %q", last, was, text)
		}
	}
}

// finish ends all faults, starts all members and checks the final state.
func (w *world) finish(ctx context.Context, lostEnd bool) {
	w.nats.SetChances(natssim.Chances{})
	w.etcd.SetSilent(0)
	for _, name := range w.nats.Names() {
		w.nats.Heal(name)
	}
	for _, m := range w.running() {
		m.etcd.Restore()
		m.nats.Restore()
	}
	for _, name := range names {
		if !slices.ContainsFunc(w.running(), func(m *member) bool { return m.name == name }) {
			if err := w.up(ctx, name); err != nil {
				w.violation("member %s does not start: %v", name, err)
			}
		}
	}
	for shard := range shardCount {
		w.finishShard(ctx, shard, lostEnd)
	}
	w.finishJournal(ctx)
}

// finishShard checks a shard. If its log has lost its end, it may also be closed for that reason.
func (w *world) finishShard(ctx context.Context, shard int, lostEnd bool) {
	for range 600 {
		time.Sleep(100 * time.Millisecond)
		m, e := w.owner(shard)
		if m == nil {
			closed := 0
			for _, m := range w.running() {
				if errors.Is(m.shards[shard].Status().Err, engine.ErrLogLost) {
					closed++
				}
			}
			if lostEnd && closed == len(names) {
				return
			}
			continue
		}
		got, err := e.Read(ctx, topic, engine.ReadRequest{Max: 1 << 20})
		if err != nil && (!errors.Is(err, engine.ErrNoTopic) || len(w.acked[shard]) > 0) {
			continue
		}
		w.mu.Lock()
		want := w.acked[shard]
		w.mu.Unlock()
		w.compare(shard, "in the end at "+m.name, want, got)
		return
	}
	for _, m := range w.running() {
		w.violation("shard %d has no owner; at %s: %+v", shard, m.name, m.shards[shard].Status())
	}
}

// finishJournal checks the journal at every member.
func (w *world) finishJournal(ctx context.Context) {
	for _, m := range w.running() {
		found := map[uint64]string{}
		var err error
		for range 50 {
			call, cancel := context.WithTimeout(ctx, 10*time.Second)
			if _, err = m.journal.Last(call); err == nil {
				_, err = m.journal.Replay(call, 0, func(position uint64, record []byte) error {
					found[position] = string(record)
					return nil
				})
			}
			cancel()
			if err == nil {
				break
			}
			time.Sleep(time.Second)
		}
		if err != nil {
			w.violation("journal at %s: %v", m.name, err)
			continue
		}
		for position, text := range w.records {
			if found[position] != text {
				w.violation("journal at %s: position %d is %q, acknowledged as %q",
					m.name, position, found[position], text)
			}
		}
	}
}

// close stops all members and the servers.
func (w *world) close() {
	for _, m := range w.running() {
		w.remove(m.name)
		m.stop(w)
	}
	w.ending.Wait()
	w.nats.Close()
	w.etcd.Close()
}
