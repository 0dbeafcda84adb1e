package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
	"freshet/test/ensemble/simulation/etcdsim"
	"freshet/test/ensemble/simulation/natssim"
)

var names = []string{"a", "b", "c"}

// world is one simulated ensemble with its clients.
type world struct {
	seed         uint64
	random       *rand.Rand // used by the goroutine that injects faults only
	dir          string
	log          *slog.Logger
	nats         *natssim.Servers
	etcd         *etcdsim.Store
	disks        map[string]*vfs.MemFS
	homes        map[string]string // directories on a real disk, by member: copies of journals, quarantine
	quiet        atomic.Bool       // nobody appends to the journal
	appending    atomic.Int64      // appends to the journal that have not returned
	journalsLost int               // streams of the journal that have lost records
	transfers    transfers
	goneAfter    time.Duration  // how long the log is kept for a member that is away
	ending       sync.WaitGroup // members that end after a crash
	faults       []string
	endLost      [shardCount]bool     // shards whose log has lost its end
	spoiled      [shardCount]*spoiled // the last damage of a copy
	spoils       int                  // damaged files of copies
	healed       int                  // damaged parts that members have replaced
	closed       [shardCount]bool     // shards that are closed in the end, because their log has lost its end
	moves        int                  // how often a member has got another home
	rebuilt      int                  // shards that have everything although their log had lost its end

	mu          sync.Mutex // protects the fields below
	members     map[string]*member
	acked       []map[engine.MessageID]string // by shard
	sent        []map[string]bool             // by shard: texts whose append was tried
	records     map[uint64]string             // acknowledged journal records by position
	tried       map[string]bool               // journal records whose append was tried
	offsets     [groupCount]offsets
	commits     int                         // acknowledged commits of offsets
	partitions  map[groups.Partition]string // owners of the partitions of the group with members
	assignments int                         // partitions that consumers got
	wrong       []string                    // violations
}

func newWorld(seed uint64, dir string, log *slog.Logger) *world {
	w := &world{
		seed: seed, random: rand.New(rand.NewPCG(seed, 3)), dir: dir, log: log, //nolint:gosec // a simulation
		nats: natssim.New(seed), etcd: etcdsim.New(seed), disks: map[string]*vfs.MemFS{},
		transfers: transfers{random: rand.New(rand.NewPCG(seed, 4))}, //nolint:gosec // a simulation
		members:   map[string]*member{}, records: map[uint64]string{}, tried: map[string]bool{},
		homes:      map[string]string{},
		partitions: map[groups.Partition]string{},
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
	m, err := w.start(ctx, name, w.disks[name])
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members[name] = m
	return nil
}

// get returns a member if it runs.
func (w *world) get(name string) *member {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.members[name]
}

// remove takes a member out of the running ones.
func (w *world) remove(name string) *member {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.members[name]
	delete(w.members, name)
	return m
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
