package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"freshet/internal/ensemble/journal"
	"freshet/internal/storage/engine"
)

// record appends to the journal at any member until the context ends.
func (w *world) record(ctx context.Context, writer int, random *rand.Rand) {
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
		list := w.running()
		if len(list) == 0 || w.quiet.Load() {
			continue
		}
		m := list[random.IntN(len(list))]
		text := fmt.Sprintf("%d/%d", writer, i)
		w.mu.Lock()
		w.tried[text] = true
		w.mu.Unlock()
		last, err := w.appendTo(ctx, m.journal, text)
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

// appendTo appends a record to the end of a journal.
func (w *world) appendTo(ctx context.Context, j engine.Journal, text string) (uint64, error) {
	w.appending.Add(1)
	defer w.appending.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	after, err := j.Last(ctx)
	if err != nil {
		return 0, err
	}
	return j.Append(ctx, after, []byte(text))
}

// snapshot saves snapshots of the journal at any member until the context ends. A snapshot contains the records
// by position.
func (w *world) snapshot(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.Int64N(int64(20 * time.Second))))
		list := w.running()
		if len(list) == 0 || w.quiet.Load() {
			continue
		}
		m := list[random.IntN(len(list))]
		w.appending.Add(1)
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		if found, at, err := readJournal(call, m.journal); err == nil {
			_ = m.journal.SaveSnapshot(call, at, func(out io.Writer) error { // the next one may succeed
				return json.NewEncoder(out).Encode(found)
			})
		}
		cancel()
		w.appending.Add(-1)
	}
}

// readJournal returns the records of a journal by position, and the last position.
func readJournal(ctx context.Context, j engine.Journal) (found map[uint64]string, last uint64, err error) {
	if _, err := j.Last(ctx); err != nil {
		return nil, 0, err
	}
	for {
		found = map[uint64]string{}
		last, err = loadSnapshot(ctx, j, &found)
		if err != nil {
			return nil, 0, err
		}
		last, err = j.Replay(ctx, last, func(position uint64, record []byte) error {
			found[position] = string(record)
			return nil
		})
		if !errors.Is(err, engine.ErrCompacted) { // another member has saved a snapshot meanwhile
			return found, last, err
		}
	}
}

func loadSnapshot(ctx context.Context, j engine.Journal, into *map[uint64]string) (uint64, error) {
	at, r, err := j.LoadSnapshot(ctx)
	if err != nil || r == nil {
		return at, err
	}
	return at, errors.Join(json.NewDecoder(r).Decode(into), r.Close())
}

// journalStream returns the stream of the journal, or "" while it is replaced with another one.
func (w *world) journalStream() string {
	var found []string
	for _, name := range w.nats.Names() {
		if strings.HasPrefix(name, "J_"+clusterID+"_"+journalName) {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// loseJournal makes the stream of the journal lose its end, records in its middle, or everything, at a moment
// at which two or all members have seen its records. So the journal must be rebuilt, from the copies of the members.
// The third member may have crashed before, or another one crashes meanwhile.
func (w *world) loseJournal(ctx context.Context) {
	if len(w.running()) < len(names) {
		return
	}
	name, early := names[w.random.IntN(len(names))], w.random.IntN(2) == 0
	if early {
		w.crash(name)
		defer w.again(ctx, name)
		time.Sleep(2*time.Second + w.upTo(2*time.Second)) // the other members append records that its copy lacks
	}
	w.quiet.Store(true)
	defer w.quiet.Store(false)
	for w.appending.Load() > 0 {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(6 * time.Second) // until nothing is on its way
	stream := w.journalStream()
	for _, m := range w.running() {
		if _, _, err := readJournal(ctx, m.journal); err != nil {
			return
		}
	}
	if stream == "" || stream != w.journalStream() {
		return
	}
	switch w.random.IntN(3) {
	case 0:
		w.fault("%s loses its last %d messages", stream, w.nats.LoseEnd(stream, 1+w.random.Uint64N(20)))
	case 1:
		w.fault("%s loses %d messages", stream, w.nats.LoseSome(stream, 1+w.random.IntN(5)))
	default:
		w.fault("%s is lost", stream)
		w.nats.Delete(stream)
	}
	w.journalsLost++
	w.quiet.Store(w.random.IntN(2) == 0)
	time.Sleep(w.upTo(3 * time.Second))
	if !early && w.random.IntN(3) == 0 {
		w.crash(name)
		w.again(ctx, name)
	}
	time.Sleep(w.upTo(10 * time.Second))
}

// moveHome gives the next run of a member the files of its home as they are now. What runs on after a crash writes to
// the old ones.
func (w *world) moveHome(m *member) {
	w.moves++
	next := fmt.Sprintf("%s/%s/home-%d", w.dir, m.name, w.moves)
	if err := os.CopyFS(next, os.DirFS(m.home)); err != nil {
		panic(err)
	}
	w.homes[m.name] = next
}

// spoilJournalCopy crashes a member and damages its copy of the journal.
func (w *world) spoilJournalCopy(ctx context.Context, name string) {
	if w.get(name) == nil {
		return
	}
	w.crash(name)
	defer w.again(ctx, name)
	found, err := filepath.Glob(w.homes[name] + "/journals/*" + journal.CopySuffix)
	if err != nil || len(found) == 0 {
		return
	}
	content, err := os.ReadFile(found[0])
	if err != nil || len(content) == 0 {
		return
	}
	kind := "deleted"
	if kinds := 4; w.random.IntN(kinds) == 0 {
		err = os.Remove(found[0])
	} else {
		kind, content = spoilContent(content, w.random)
		err = os.WriteFile(found[0], content, 0o600)
	}
	if err != nil {
		panic(err)
	}
	w.fault("copy of the journal at %s is damaged: %s", name, kind)
	w.spoils++
}

// finishJournal checks the journal at every member.
func (w *world) finishJournal(ctx context.Context) {
	for _, m := range w.running() {
		var found map[uint64]string
		var err error
		for range 50 {
			call, cancel := context.WithTimeout(ctx, 10*time.Second)
			found, _, err = readJournal(call, m.journal)
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
		at := map[string]uint64{}
		for position, text := range found {
			if other, doubled := at[text]; doubled || !w.tried[text] {
				w.violation("journal at %s: record %q at position %d is invented, or also at %d",
					m.name, text, position, other)
			}
			at[text] = position
		}
	}
}
