package replicated

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/storage/pebble"
)

// The copies of a shard compare their contents, because checksums of tables and records do not find a copy
// that lost a whole table, or has an older one: its files are intact, and its content is wrong.
//
// The owner divides a comparison into steps and writes each one into a key in etcd: a range of keys, and a
// message of the log. Every copy takes its content right after it has applied that message (pebble.Content),
// computes the checksum of the range, and publishes it with the position of the content. On an idle shard
// the message is the last one. Under load it is a few seconds ahead, so that all members know the step
// before they apply the message. A copy that was too late has another position, and the owner repeats the
// step.
//
// Every member judges its own copy (judge). It counts only checksums of the same step and of exactly the
// same position, which includes the identity of the log, the epoch and the sum of the log. A missing
// checksum, such as that of an earlier version, means nothing. If more than half of all copies have the same
// content and this one has another, and does so again when the owner repeats the step, the copy is damaged
// and is replaced like one with a damaged file (damage.go). If no content has a majority, nobody knows which
// copy is right: all are kept, and the owner reports it. A copy that was fetched has the content of another
// one, whether that is right or wrong. So it is no part of a majority until a comparison of all ranges has
// found no difference (fetchedName).
//
// The bounds: a step reads stepTime at the rate of the periodic verification, so the snapshot of Pebble that
// it needs keeps replaced tables on the disk for seconds, and never longer than stepTimeout. A member leads
// the comparison of one shard at a time.

const (
	// contentVersion is the version of the checksum of a content. Others are not compared with it.
	contentVersion = 1
	// stepTime is how long a step reads.
	stepTime = 4 * time.Second
	// stepTimeout is how long a member works on a step, and how long the owner waits for the others.
	stepTimeout = 2 * time.Minute
	// takeTimeout is how long a copy waits for the message of a step before it takes its content as it is. It
	// is the end of the log then, unless the copy lags.
	takeTimeout = 15 * time.Second
	// aheadSeconds is how far the message of a step is ahead under load.
	aheadSeconds = 3
	// maxSteps is how often a step is done at most, while positions or contents differ.
	maxSteps = 4
	// maxSumBytes is the number of bytes that are read while the store cannot be closed.
	maxSumBytes = 1 << 20
	// comparePoll is how often the owner checks whether a comparison, or its next step, is due.
	comparePoll = 10 * time.Second
	// comparePause is how long the owner waits when no two copies could be compared.
	comparePause = 10 * time.Minute
)

// Turns makes the shards of a member lead one comparison at a time. All shards of a member share one.
type Turns struct{ holder atomic.Pointer[Shard] }

// take reports whether it is the shard's turn.
func (t *Turns) take(s *Shard) bool { return t.holder.CompareAndSwap(nil, s) || t.holder.Load() == s }

// leave ends the turn of the shard, if it has it.
func (t *Turns) leave(s *Shard) { t.holder.CompareAndSwap(s, nil) }

// step is the value of the key that the owner writes: the present step of a comparison, or the result of
// the last comparison.
type step struct {
	ID      string    `json:"id"` // different for each value
	Version int       `json:"version"`
	Running bool      `json:"running,omitempty"`
	Seq     uint64    `json:"seq,omitempty"`     // message of the log
	From    []byte    `json:"from,omitempty"`    // first key of the range
	Bytes   int64     `json:"bytes,omitempty"`   // of keys and values after which the range ends
	Times   int       `json:"times,omitempty"`   // how often the range was compared in this comparison
	Found   string    `json:"found,omitempty"`   // what cannot be decided, in this comparison
	Missing []string  `json:"missing,omitempty"` // members of which a range was not compared
	Problem string    `json:"problem,omitempty"` // what could not be decided, in the last comparison
	Ended   time.Time `json:"ended,omitzero"`    // the last comparison; zero before the first
	Since   time.Time `json:"since,omitzero"`    // when the first owner knew that there was no comparison yet
}

// contentSum is what a member publishes about a step.
type contentSum struct {
	ID      string `json:"id"` // of the step
	Version int    `json:"version"`
	At      string `json:"at,omitempty"`  // position of the content, encoded and in hexadecimal digits
	Sum     string `json:"sum,omitempty"` // "" when the copy had applied the message of the step before
	Keys    int64  `json:"keys,omitempty"`
	Last    []byte `json:"last,omitempty"` // key of the range
	End     bool   `json:"end,omitempty"`  // there are no keys after the range
	Fetched bool   `json:"fetched,omitempty"`
}

// sums reports whether the value has a checksum for a step.
func (c *contentSum) sums(of *step) bool {
	return c.ID == of.ID && c.Version == of.Version && c.Sum != ""
}

// equals reports whether two contents are equal. Their positions must be.
func (c *contentSum) equals(o *contentSum) bool {
	return c.Sum == o.Sum && c.Keys == o.Keys && c.End == o.End && bytes.Equal(c.Last, o.Last)
}

// verdict is the result of a step.
type verdict struct {
	odd       []string // members whose content is not that of a majority
	good      []string // the majority
	undecided []string // members that differ without a majority
	compared  []string // members whose contents were compared
}

// judge compares the contents of a step at each position that members have. copies are all members that
// should have a copy: a majority is one of them, not of those that have responded.
func judge(of *step, sums map[string]contentSum, copies []string) (v verdict) {
	at := make(map[string][]string)
	for _, name := range copies {
		if c := sums[name]; c.sums(of) {
			at[c.At] = append(at[c.At], name)
		}
	}
	for _, members := range at {
		if len(members) > len(v.compared) {
			v.compared = members
		}
		for _, name := range members {
			same, other, votes := split(members, sums, sums[name])
			switch {
			case len(other) == 0:
			case 2*votes > len(copies):
				v.odd, v.good, v.undecided = other, same, nil
			case len(v.odd) == 0:
				v.undecided = members
			}
		}
	}
	return v
}

// split divides members into those with a content and the others, and counts the former that were not fetched.
func split(members []string, sums map[string]contentSum, as contentSum) (same, other []string, votes int) {
	for _, name := range members {
		theirs := sums[name]
		if !theirs.equals(&as) {
			other = append(other, name)
			continue
		}
		same = append(same, name)
		if !theirs.Fetched {
			votes++
		}
	}
	return same, other, votes
}

// fetchedName is the name of a file in the directory of a copy that was fetched and not compared since.
const fetchedName = "FETCHED"

// markFetched marks the copy in a directory as fetched.
func (s *Shard) markFetched(dir string) error {
	empty := func(io.Writer, int64) error { return nil }
	return errors.Join(s.disk.Continue(filepath.Join(dir, fetchedName), 0, empty), s.disk.SyncDir(dir))
}

// fetched reports whether this member's copy was fetched and not compared since.
func (s *Shard) fetched() bool {
	names, err := s.disk.List(s.o.Dir)
	return err != nil || slices.Contains(names, fetchedName)
}

// setCompared records that a comparison of all ranges has found no difference.
func (s *Shard) setCompared() error {
	s.storeMu.RLock() // the copy is not replaced meanwhile
	defer s.storeMu.RUnlock()
	return s.disk.Remove(filepath.Join(s.o.Dir, fetchedName))
}

// holderNamesLocked returns the members that should have a copy.
func (s *Shard) holderNamesLocked() []string {
	switch {
	case s.view.holders != nil:
		return slices.Clone(s.view.holders)
	case len(s.o.All) > 0:
		return slices.Clone(s.o.All)
	}
	names := make([]string, 0, len(s.view.copies))
	for name := range s.view.copies {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// summedStep is a step of a comparison, and the store whose checksum was computed.
type summedStep struct {
	id    string
	store *pebble.Store
}

// suspectCopy is a store whose content is not that of a majority.
type suspectCopy struct {
	store *pebble.Store
	from  string // range
	id    string // of the step that has found it
	times int
	err   error // set when the store is damaged
}

// judgeLocked judges this member's copy. The watch calls it with each value that it receives, because the
// next step overwrites the values of the last one.
func (s *Shard) judgeLocked() {
	of, copies := &s.view.step, s.holderNamesLocked()
	if !of.Running || s.summed.id != of.ID {
		return
	}
	v := judge(of, s.view.sums, copies)
	if !slices.Contains(v.odd, s.o.Member) || s.suspect.id == of.ID {
		return
	}
	if s.suspect.store != s.summed.store || s.suspect.from != string(of.From) {
		s.suspect = suspectCopy{store: s.summed.store, from: string(of.From)}
	}
	s.suspect.id = of.ID
	// It is the content, and not a fault of one computation, if the owner has repeated the step.
	if s.suspect.times++; s.suspect.times > 1 && of.Times > 1 {
		s.suspect.err = fmt.Errorf("content differs from that of %s, which is the same, at message %s of the log, "+
			"in the keys from %x on", strings.Join(v.good, " and "), messageOf(s.view.sums[s.o.Member].At), of.From)
	}
}

// messageOf returns the message of an encoded position, for messages.
func messageOf(at string) string {
	text, err := hex.DecodeString(at)
	if err != nil {
		return at
	}
	p, err := decodeLogPosition(text)
	if err != nil {
		return at
	}
	return fmt.Sprint(p.seq)
}

// sumStep computes the checksum of this member's copy for a step, and publishes it. It reports whether it did.
func (s *Shard) sumStep(of step) (bool, error) {
	ctx, cancel := context.WithTimeout(s.ctx, stepTimeout)
	defer cancel()
	s.storeMu.RLock()
	store := s.store
	s.storeMu.RUnlock()
	if store == nil {
		return false, errReplaced
	}
	mine, err := s.sumContent(ctx, store, of)
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	s.summed = summedStep{of.ID, store}
	s.mu.Unlock()
	ctx, cancel = context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := s.o.Etcd.Put(ctx, s.keys.sums+s.o.Member, string(text)); err != nil {
		return false, fmt.Errorf("publishing the checksum of the copy: %w", err)
	}
	return mine.Sum != "", nil
}

// sumContent takes the content of the store for a step and computes its checksum. Whatever moment it takes,
// the result has the exact position of the content.
func (s *Shard) sumContent(ctx context.Context, store *pebble.Store, of step) (mine contentSum, err error) {
	mine = contentSum{ID: of.ID, Version: contentVersion, Fetched: s.fetched()}
	var content *pebble.Content
	passed := false
	err = s.withStore(store, func() error {
		content = store.AwaitContent(func(position []byte) bool {
			at, err := decodeLogPosition(position)
			return err == nil && at.seq >= of.Seq
		})
		stored, err := store.LogPosition()
		if err != nil {
			return err
		}
		at, err := decodeLogPosition(stored)
		if err == nil && at.seq == of.Seq {
			content.Take()
		}
		passed = at.seq > of.Seq
		return err
	})
	if content != nil {
		defer content.Close()
	}
	if err != nil || passed {
		return mine, err
	}
	s.await(ctx, content.Taken(), takeTimeout)
	err = s.withStore(store, func() error {
		content.Take()
		at, err := content.Position()
		mine.At = hex.EncodeToString(at)
		return err
	})
	if err != nil {
		return mine, err
	}
	rate := max(1, s.o.VerifyBytes/backgroundShare)
	p, sum, from, left := pacer{perSecond: rate, begin: time.Now()}, sha256.New(), of.From, of.Bytes
	for left > 0 && !mine.End {
		limit, size := min(left, maxSumBytes), int64(0)
		err := s.withStore(store, func() error {
			last, keys, n, err := content.Sum(sum, from, limit)
			mine.Keys, size, mine.End = mine.Keys+keys, n, n < limit
			if last != nil {
				mine.Last, from = last, append(bytes.Clone(last), 0)
			}
			return err
		})
		if err != nil {
			return mine, err
		}
		left -= size
		if err := p.done(ctx, size); err != nil {
			return mine, err
		}
	}
	mine.Sum = hex.EncodeToString(sum.Sum(nil))
	return mine, nil
}

// writeStep writes a step on the condition that this member is the owner.
func (s *Shard) writeStep(next step) error {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	next.ID, next.Version = hex.EncodeToString(random[:]), contentVersion
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	s.mu.Lock()
	rev, mine := s.view.ownerRev, s.view.owner.Instance == s.instance
	s.mu.Unlock()
	if !mine {
		return errNoClaim
	}
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	response, err := s.o.Etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", rev)).
		Then(clientv3.OpPut(s.keys.step, string(text))).Commit()
	if err != nil {
		return fmt.Errorf("writing a step of the comparison: %w", err)
	}
	if !response.Succeeded {
		return errNoClaim
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.step = next // before the watch delivers it
	return nil
}
