package journal_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
)

// journalsOnly is an engine that implements only Journal and Close.
type journalsOnly struct {
	engine.Engine
	*journal.Journals
}

func (j journalsOnly) Journal(ctx context.Context, name string) (engine.Journal, error) {
	return j.Journals.Journal(ctx, name)
}

// SelectWith implements engine.Engine; journals have no filters.
func (journalsOnly) SelectWith(engine.Selector) {}

func (j journalsOnly) Close() error {
	j.Journals.Close()
	return nil
}

var prefixes atomic.Int64

// store is the journals of one cluster; each Open uses the next member.
type store struct {
	natsCluster *natstest.Cluster
	prefix      string
	member      int
	restart     bool // whether Crash also restarts the servers
	open        *journal.Journals
}

func newStore(natsCluster *natstest.Cluster, restart bool) *store {
	return &store{natsCluster: natsCluster, prefix: fmt.Sprintf("c%d", prefixes.Add(1)), restart: restart}
}

func (s *store) Open(t testing.TB) engine.Engine {
	s.open = openJournals(t, s.natsCluster.Connect(s.member), s.natsCluster.Size(), s.prefix)
	s.member = (s.member + 1) % s.natsCluster.Size()
	return journalsOnly{Journals: s.open}
}

func (s *store) Crash(testing.TB) {
	if s.restart {
		for i := range s.natsCluster.Size() {
			s.natsCluster.Stop(i)
			s.natsCluster.Start(i)
		}
		s.natsCluster.Ready()
	}
	s.open.Close()
}

func openJournals(t testing.TB, conn *nats.Conn, replicas int, prefix string) *journal.Journals {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	j, err := journal.Open(ctx, conn, journal.Options{Prefix: prefix, Replicas: replicas, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatalf("opening journals: got error %v, want none", err)
	}
	t.Cleanup(j.Close)
	return j
}

func openJournal(t testing.TB, js *journal.Journals, name string) engine.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	j, err := js.Journal(ctx, name)
	if err != nil {
		t.Fatalf("opening journal %q: got error %v, want none", name, err)
	}
	return j
}

func TestConformanceWithOneServer(t *testing.T) {
	enginetest.RunJournals(t, enginetest.Options{RealTime: true}, func(t testing.TB) enginetest.Store {
		return newStore(natstest.New(t, 1), true)
	})
}

func TestConformanceWithThreeServers(t *testing.T) {
	natsCluster := natstest.New(t, 3)
	enginetest.RunJournals(t, enginetest.Options{RealTime: true}, func(testing.TB) enginetest.Store {
		return newStore(natsCluster, false)
	})
}
