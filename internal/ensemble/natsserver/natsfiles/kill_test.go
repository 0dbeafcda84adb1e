package natsfiles_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver/natsfiles"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/test/tally"
)

func TestMain(m *testing.M) {
	if natstest.Served() {
		return
	}
	os.Exit(m.Run())
}

// writer writes to streams in all ways that a server of an ensemble sees, until its context ends.
type writer struct {
	js     jetstream.JetStream
	number int
}

// run ignores errors: the servers elect leaders when one of them is killed.
func (w *writer) run(ctx context.Context) {
	for round := 0; ctx.Err() == nil; round++ {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		log, journal := fmt.Sprintf("LOG%d", w.number), fmt.Sprintf("JOURNAL%d", w.number)
		size := []int{10, 500, 70_000, 3}[round%4]
		if ack, err := w.js.Publish(try, log, make([]byte, size)); err == nil && round%50 == 49 {
			if s, err := w.js.Stream(try, log); err == nil {
				_ = s.Purge(try, jetstream.WithPurgeSequence(ack.Sequence-5))
			}
		}
		_, _ = w.js.Publish(try, journal+".r", []byte("record"))
		if round%20 == 19 {
			ack, err := w.js.Publish(try, journal+".s", make([]byte, 2000))
			if s, streamErr := w.js.Stream(try, journal); err == nil && streamErr == nil {
				_ = s.Purge(try, jetstream.WithPurgeSubject(journal+".r"), jetstream.WithPurgeSequence(ack.Sequence))
			}
		}
		if round%60 == 30 {
			name := fmt.Sprintf("SHORT%d", w.number)
			_, _ = w.js.CreateStream(try, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Replicas: 3})
			_, _ = w.js.Publish(try, name, []byte("x"))
			_ = w.js.DeleteStream(try, name)
		}
		cancel()
	}
}

func startWriters(t *testing.T, c *natstest.Cluster, number int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for i := range number {
		js, err := jetstream.New(c.Connect(i % 2))
		if err != nil {
			t.Fatal(err)
		}
		for _, config := range []jetstream.StreamConfig{
			{Name: fmt.Sprintf("LOG%d", i), Subjects: []string{fmt.Sprintf("LOG%d", i)}, DenyDelete: true, Replicas: 3},
			{
				Name: fmt.Sprintf("JOURNAL%d", i), Subjects: []string{fmt.Sprintf("JOURNAL%d.*", i)}, DenyDelete: true,
				Replicas: 3,
			},
		} {
			c.CreateStream(ctx, js, config)
		}
		w := &writer{js: js, number: i}
		writers.Go(func() { w.run(ctx) })
	}
	return func() {
		cancel()
		writers.Wait()
	}
}

// verify returns what verification finds in the files of a server, also compared with its floors.
func verify(t *testing.T, c *natstest.Cluster, i int) (*natsfiles.Report, []natsfiles.Finding) {
	t.Helper()
	report, err := natsfiles.Verify(t.Context(), c.Files(i), natsfiles.Options{})
	if err != nil {
		t.Fatal(err)
	}
	floors, err := natsfiles.ReadFloors(filepath.Join(c.State(i), "floors"))
	if err != nil {
		t.Fatal(err)
	}
	return report, append(report.Findings, report.Below(floors, "$SYS/_js_")...)
}

// TestFaultKilled kills a server again and again while others write. What it leaves behind is no damage.
func TestFaultKilled(t *testing.T) {
	const killed, kills = 2, 8
	c := natstest.New(t, 3, natstest.Processes(killed))
	stop := startWriters(t, c, 4)
	defer stop()
	floors := filepath.Join(c.State(killed), "floors")
	started := time.Now()
	for i := range kills {
		// The server has recorded floors in this run, and is killed at some moment after that.
		await(t, "floors", func() bool {
			info, err := os.Stat(floors)
			if err != nil || info.ModTime().Before(started) {
				return false
			}
			f, err := natsfiles.ReadFloors(floors)
			return err == nil && len(f.Groups) > 8
		})
		<-time.After(time.Duration(i*37%100) * time.Millisecond) // another moment each time
		c.Stop(killed)
		report, found := verify(t, c, killed)
		for _, f := range found {
			t.Errorf("kill %d: got %v, want no damage", i, f)
		}
		if len(report.Groups) < 9 || len(report.Streams) < 8 {
			t.Errorf("kill %d: got %d groups and %d streams, want all", i, len(report.Groups), len(report.Streams))
		}
		if t.Failed() {
			return
		}
		started = time.Now()
		c.Start(killed)
	}
	tally.Fault{Name: "server killed while its files change", Injected: kills, Checked: kills}.Record(t)
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-timeout:
			t.Fatalf("got no %s within two minutes", what)
		}
	}
}
