package pebble

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"freshet/internal/storage/engine"
)

// TestKill repeatedly kills a process with a store under load, and checks that every write
// that the process has acknowledged is in the store.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 4
	if s := os.Getenv("FRESHET_KILLS"); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	acknowledged := &acknowledgedWrites{
		messages: map[uint64]string{}, acked: map[uint64]bool{}, records: map[uint64]string{},
	}
	for round := range rounds {
		acknowledged.record(t, dir, round)
		acknowledged.check(t, dir)
	}
	t.Logf("%d messages, %d acknowledgements, %d records", len(acknowledged.messages), len(acknowledged.acked),
		len(acknowledged.records))
	if len(acknowledged.messages) == 0 || len(acknowledged.acked) == 0 || len(acknowledged.records) == 0 {
		t.Error("acknowledged writes of the child processes: got none of a kind, want some of each")
	}
}

// acknowledgedWrites contains the writes that the child processes acknowledged before they were
// killed.
type acknowledgedWrites struct {
	messages map[uint64]string
	acked    map[uint64]bool
	records  map[uint64]string
}

// record runs a child process until it is killed and parses each complete line of its output.
func (s *acknowledgedWrites) record(t *testing.T, dir string, round int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKillChild$", "-test.v=false")
	child.Env = append(os.Environ(), "FRESHET_KILL_DIR="+dir, fmt.Sprintf("FRESHET_KILL_ROUND=%d", round))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var timer *time.Timer
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // the kill may have truncated the last line
		}
		if timer == nil { // the store is open
			timer = time.AfterFunc(time.Duration(50+rand.IntN(250))*time.Millisecond, func() {
				_ = child.Process.Kill()
			})
		}
		s.parseLine(t, line)
	}
	if err := child.Wait(); err == nil || child.ProcessState.Exited() {
		t.Fatalf("child process: got exit with error %v, want it killed", err)
	}
}

func (s *acknowledgedWrites) parseLine(t *testing.T, line string) {
	t.Helper()
	var n uint64
	var text string
	switch {
	case scan(line, "message %d %s", &n, &text):
		s.messages[n] = text
	case scan(line, "ack %d", &n):
		s.acked[n] = true
	case scan(line, "record %d %s", &n, &text):
		s.records[n] = text
	case line == "open\n":
	default:
		t.Fatalf("output of the child process: got %q, want a known line", line)
	}
}

func scan(line, format string, args ...any) bool {
	n, err := fmt.Sscanf(line, format, args...)
	return err == nil && n == len(args)
}

func (s *acknowledgedWrites) check(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	e, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for entry, text := range s.messages {
		r, err := e.Read(ctx, 1, engine.ReadRequest{From: entry, Max: 1})
		if err != nil || len(r) != 1 || r[0].ID.Entry != entry || string(r[0].Payload) != text {
			t.Fatalf("message %d: got %v, %v; want %s", entry, r, err, text)
		}
	}
	for {
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1000, Partition: 0})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for _, d := range got {
			if s.acked[d.ID.Entry] {
				t.Fatalf("receive: got message %d, want it never again: it was acknowledged", d.ID.Entry)
			}
		}
	}
	j, err := e.Journal(ctx, "j")
	if err != nil {
		t.Fatal(err)
	}
	found := map[uint64]string{}
	if _, err := j.Replay(ctx, 0, func(n uint64, r []byte) error { found[n] = string(r); return nil }); err != nil {
		t.Fatal(err)
	}
	for n, text := range s.records {
		if found[n] != text {
			t.Fatalf("record %d: got %q, want %s", n, found[n], text)
		}
	}
}

// TestKillChild is the process that is killed.
func TestKillChild(t *testing.T) {
	dir := os.Getenv("FRESHET_KILL_DIR")
	if dir == "" {
		t.Skip("run by TestKill")
	}
	ctx := context.Background()
	e, err := Open(dir, Options{MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.CreateTopic(ctx, 1, keepAll); err == nil {
		err = e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{})
		if err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	printLine := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
			os.Exit(1) // the parent is gone
		}
	}
	printLine("open")
	round := os.Getenv("FRESHET_KILL_ROUND")
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("%s/%d/%d", round, w, i)
				out, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte(text)}})
				if err != nil {
					panic(err)
				}
				printLine("message %d %s", out[0].ID.Entry, text)
			}
		}()
	}
	go func() {
		for {
			got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 5, Wait: time.Minute, Partition: 0})
			if err != nil {
				panic(err)
			}
			for _, d := range got {
				if d.ID.Entry%3 == 0 {
					continue
				}
				if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: d.ID}}); err != nil {
					panic(err)
				}
				printLine("ack %d", d.ID.Entry)
			}
		}
	}()
	j, err := e.Journal(ctx, "j")
	if err != nil {
		t.Fatal(err)
	}
	last, err := j.Last(ctx)
	for i := 0; err == nil; i++ {
		text := fmt.Sprintf("%s/%d", round, i)
		if last, err = j.Append(ctx, last, []byte(text)); err == nil {
			printLine("record %d %s", last, text)
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
