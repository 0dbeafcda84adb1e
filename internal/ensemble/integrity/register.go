package integrity

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/lograte"
)

// Part is what a member knows about a part of its files.
type Part struct {
	// Name identifies the part: "logs", "shard <cluster>/<number>", "journal <cluster>/<name>".
	Name string `json:"name"`
	// Verified is when all files of the part were last found intact. Zero means never.
	Verified time.Time `json:"verified,omitzero"`
	// Damaged is when the present damage was found. Zero means that no damage is known.
	Damaged time.Time `json:"damaged,omitzero"`
	// File is the file that is, or was last, damaged. It can be empty.
	File string `json:"file,omitempty"`
	// Problem describes the present or the last damage.
	Problem string `json:"problem,omitempty"`
	// Healed is when a good copy last replaced the part.
	Healed time.Time `json:"healed,omitzero"`
	// Compared is when the contents of all copies of the part were last compared. Zero means never.
	Compared time.Time `json:"compared,omitzero"`
	// Differs describes a difference between copies that no majority decides. Nothing is closed then.
	Differs string `json:"differs,omitempty"`
	// Damages is how many times damage was found.
	Damages int `json:"damages,omitempty"`
}

// Fetched reports whether a member fetches a part again without an operator when it is damaged. Other
// parts, such as etcd, need a command.
func (p *Part) Fetched() bool {
	return p.Name == "logs" || strings.HasPrefix(p.Name, "shard ") || strings.HasPrefix(p.Name, "journal ")
}

// Options configure a Register.
type Options struct {
	// Logger receives a line when damage is found and when it is healed.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Keep is how long quarantined files are kept; 0 means a day.
	Keep time.Duration
}

// defaultKeep is how long quarantined files are kept.
const defaultKeep = 24 * time.Hour

// Register records the state of a member's parts. A nil Register accepts all calls and records
// nothing. It is safe for concurrent use.
type Register struct {
	dir   string
	log   *slog.Logger
	now   func() time.Time
	keep  time.Duration
	lines *lograte.Limiter

	mu      sync.Mutex // protects the fields below and the file partsFile
	parts   map[string]Part
	changed chan struct{} // closed and replaced when a part changes
}

const (
	partsFile     = "parts.json"
	quarantineDir = "quarantine"
	dirPermission = 0o700
)

// Open opens the register in a directory, which it creates. A damaged file of the register is
// logged and replaced by a new one: it contains nothing that verification does not find again.
func Open(dir string, o Options) (*Register, error) {
	r := &Register{
		dir: dir, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), now: o.Now, keep: cmp.Or(o.Keep, defaultKeep),
		lines: lograte.New(lograte.Policy{Interval: time.Minute, Forget: time.Minute}),
		parts: map[string]Part{}, changed: make(chan struct{}),
	}
	if r.now == nil {
		r.now = time.Now
	}
	if err := os.MkdirAll(filepath.Join(dir, quarantineDir), dirPermission); err != nil {
		return nil, fmt.Errorf("opening the register of verified files: %w", err)
	}
	parts, err := readParts(dir)
	if err != nil {
		r.log.Warn("register of verified files cannot be read; beginning a new one", slog.Any("error", err))
	}
	for _, p := range parts {
		r.parts[p.Name] = p
	}
	return r, nil
}

// Verified records that all files of a part were found intact now.
func (r *Register) Verified(part string) {
	r.change(part, func(p *Part) {
		p.Verified, p.Damaged = r.now(), time.Time{}
	})
}

// Damaged records damage of a part. It logs at most one line a minute for each part.
func (r *Register) Damaged(part, file string, cause error) {
	if r == nil {
		return
	}
	r.change(part, func(p *Part) {
		if p.Damaged.IsZero() {
			p.Damaged = r.now()
			p.Damages++
		}
		p.File, p.Problem = cmp.Or(file, p.File), cause.Error()
	})
	if ok, _ := r.lines.Allow(part); ok {
		text := "damaged files; this member does not use them; freshet check names the command that replaces them"
		if p := (&Part{Name: part}); p.Fetched() {
			text = "damaged files; this member does not use them and fetches a good copy"
		}
		r.log.Error(text, slog.String("part", part), slog.String("file", file),
			slog.Any("error", cause))
	}
}

// Compared records when the copies of a part were last compared, zero for unchanged, and a difference that
// nobody can decide, "" for none.
func (r *Register) Compared(part string, at time.Time, differs string) {
	r.change(part, func(p *Part) {
		p.Differs = differs
		if !at.IsZero() {
			p.Compared = at
		}
	})
}

// Healed records that a verified copy has replaced a damaged part.
func (r *Register) Healed(part string) {
	if r == nil {
		return
	}
	wasDamaged := false
	r.change(part, func(p *Part) {
		wasDamaged = !p.Damaged.IsZero()
		p.Verified, p.Damaged = r.now(), time.Time{}
		if wasDamaged {
			p.Healed = p.Verified
		}
	})
	if wasDamaged {
		r.log.Info("good copy has replaced the damaged files", slog.String("part", part))
	}
}

// Forget removes a part that this member does not have any more.
func (r *Register) Forget(part string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.parts[part]; ok {
		delete(r.parts, part)
		r.storeLocked()
	}
}

// Part returns what is known about one part; the zero value if nothing is.
func (r *Register) Part(name string) Part {
	if r == nil {
		return Part{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts[name]
}

// Parts returns all parts in the order of their names, and a channel that is closed at the next
// change.
func (r *Register) Parts() ([]Part, <-chan struct{}) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sortedLocked(), r.changed
}

func (r *Register) sortedLocked() []Part {
	parts := make([]Part, 0, len(r.parts))
	for _, name := range slices.Sorted(maps.Keys(r.parts)) {
		parts = append(parts, r.parts[name])
	}
	return parts
}

// change changes a part and stores all of them.
func (r *Register) change(name string, edit func(*Part)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.parts[name]
	p := before
	p.Name = name
	edit(&p)
	if p == before {
		return
	}
	r.parts[name] = p
	r.storeLocked()
}

// storeLocked stores the parts. A failure is only logged: the file saves repeated verification.
func (r *Register) storeLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
	err := writeParts(r.dir, r.sortedLocked())
	if err != nil {
		r.log.Warn("storing the register of verified files failed", slog.Any("error", err))
	}
}
