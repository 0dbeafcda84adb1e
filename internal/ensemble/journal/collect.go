package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Path is the path on the internal listener under which Handler serves copies.
const Path = "/journals"

const (
	collectTimeout = 10 * time.Second
	syncTimeout    = 5 * time.Second
	maxReportBytes = 64 << 10
)

// MemberReport is what a member's copy of a journal contains.
type MemberReport struct {
	Member   string `json:"member"`
	Position uint64 `json:"position"`          // of the last record in the copy
	Sum      string `json:"sum,omitempty"`     // of the records up to there
	Base     uint64 `json:"base,omitempty"`    // position of the snapshot with which the copy begins
	Seen     uint64 `json:"seen,omitempty"`    // last position that the member knows to have been committed
	Problem  string `json:"problem,omitempty"` // why the copy cannot be used or the member did not respond
	Missing  bool   `json:"missing,omitempty"` // the member did not respond
}

// report brings this member's copy up to date, as far as the stream can be read, and describes it.
func (g *guarded) report(ctx context.Context) MemberReport {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	j, _ := g.healthy()
	// A closed stream shows no tail, but the last messages before its end.
	_, _ = j.shownEnd(ctx) // what cannot be read is taken from the copies
	err := g.keeper.sync(ctx, j, true)
	r := g.keeper.report()
	if r.Sum == "" { // the journals are being closed, or there is no copy
		r = storedReport(g.keeper.path)
	}
	r.Member, r.Seen = g.s.opts.Member, g.seen()
	if err != nil && r.Position < r.Seen {
		r.Problem = err.Error()
	}
	return r
}

// storedReport describes the copy of a journal that is not open on this member.
func storedReport(path string) (r MemberReport) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	defer func() { _ = f.Close() }() // opened for reading only
	state, err := scanCopy(f, copyVisitor{})
	if err != nil {
		r.Problem = err.Error()
	}
	if state.link.known() {
		r.Position, r.Sum, r.Base = state.end, state.link.String(), state.start.Position
	}
	return r
}

// collect returns the reports of all members. own returns this member's.
func (o *Options) collect(ctx context.Context, name string, own func(context.Context) MemberReport) []MemberReport {
	reports := make([]MemberReport, len(o.All))
	var wg sync.WaitGroup
	for i, member := range o.All {
		wg.Go(func() {
			if member == o.Member {
				reports[i] = own(ctx)
			} else if err := o.ask(ctx, member, name, &reports[i]); err != nil {
				reports[i] = MemberReport{Problem: err.Error(), Missing: true}
			}
			reports[i].Member = member
		})
	}
	wg.Wait()
	return reports
}

func (o *Options) peer(ctx context.Context, member, name, what string) (*http.Response, error) {
	client, base, err := o.Peers.Call(member)
	if err != nil {
		return nil, err
	}
	at := base + Path + "/" + url.PathEscape(o.Prefix) + "/" + url.PathEscape(name) + "/" + what
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close()
		return nil, fmt.Errorf("member returned %s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return response, nil
}

func (o *Options) ask(ctx context.Context, member, name string, r *MemberReport) error {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	response, err := o.peer(ctx, member, name, "position")
	if err != nil {
		return err
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxReportBytes)).Decode(r)
	return errors.Join(err, response.Body.Close())
}

// chosenCopy is the copy from which a journal is rebuilt.
type chosenCopy struct {
	MemberReport
	path string // of the copy on this member
}

// choose returns the copy from which the journal is rebuilt. end is the last position that the old
// stream shows.
func (g *guarded) choose(ctx context.Context, keys *journalKeys, end uint64) (*chosenCopy, error) {
	reports := g.s.opts.collect(ctx, g.name, g.report)
	best, err := decide(reports, keys, end)
	if err != nil {
		return nil, err
	}
	c := &chosenCopy{MemberReport: best, path: g.keeper.path}
	if best.Member != g.s.opts.Member {
		c.path += ".fetch"
		if err := g.fetch(ctx, best, c.path); err != nil {
			return nil, fmt.Errorf("fetching the copy of member %q: %w", best.Member, err)
		}
	}
	return c, g.confirmChoice(c, reports, keys)
}

// decide returns the longest copy, if a majority of the members has responded and the copy has every
// record that is known to have existed; or the copy that an operator has accepted.
func decide(reports []MemberReport, keys *journalKeys, end uint64) (MemberReport, error) {
	if a := keys.accepted; a != nil && a.Stream == keys.stream.ID {
		for _, r := range reports {
			if r.Member == a.Member && r.Position >= a.Position && r.Sum != "" {
				return r, nil
			}
		}
		return MemberReport{}, fmt.Errorf("operator let the journal continue from the copy of member %q up to "+
			"position %d, but that member does not have it now; repeat freshet ensemble repair", a.Member, a.Position)
	}
	needed, of := keys.needed()
	if end > needed {
		needed, of = end, ""
	}
	answered := 0
	var best MemberReport
	var missing []string
	for _, r := range reports {
		if r.Missing {
			missing = append(missing, fmt.Sprintf("%q", r.Member))
			continue
		}
		answered++
		if r.Seen > needed {
			needed, of = r.Seen, r.Member
		}
		if r.Sum != "" && (best.Sum == "" || r.Position > best.Position) {
			best = r
		}
	}
	absent := "; no member is missing, so review the loss with: freshet ensemble repair"
	if len(missing) > 0 {
		absent = "; start member " + strings.Join(missing, " and ") +
			", or review the loss with: freshet ensemble repair"
	}
	switch {
	case 2*answered <= len(reports):
		return best, fmt.Errorf("only %d of %d members responded%s", answered, len(reports), absent)
	case best.Sum == "":
		return best, fmt.Errorf("no member that responded has a copy%s", absent)
	case best.Position < needed:
		where := "the stream"
		if of != "" {
			where = "member " + of
		}
		return best, fmt.Errorf("longest copy ends at position %d, but position %d existed (known from %s)%s",
			best.Position, needed, where, absent)
	}
	return best, nil
}

// confirmChoice verifies the chosen copy as a whole, and that most members' copies do not contradict it.
// An operator's choice only has to verify.
func (g *guarded) confirmChoice(c *chosenCopy, reports []MemberReport, keys *journalKeys) error {
	f, err := os.Open(c.path)
	if err != nil {
		return err
	}
	at := map[uint64]link{}
	for _, r := range reports {
		at[r.Position] = link{}
	}
	state, err := scanCopy(f, copyVisitor{message: func(m *message, before link) error {
		if _, asked := at[m.first-1]; asked {
			at[m.first-1] = before
		}
		return nil
	}})
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("copy of member %q cannot be used: %w", c.Member, err)
	}
	if state.end < c.Position {
		return fmt.Errorf("copy of member %q ends at position %d, want %d", c.Member, state.end, c.Position)
	}
	at[state.end] = state.link
	c.Position, c.Sum = state.end, state.link.String()
	if keys.accepted != nil {
		return nil
	}
	var differ []string
	agree := 0
	for _, r := range reports {
		theirs, err := parseLink(r.Sum)
		if r.Missing || err != nil {
			continue
		}
		if theirs.known() && r.Position >= state.start.Position && theirs != at[r.Position] {
			differ = append(differ, r.Member)
			continue
		}
		agree++
	}
	if 2*agree <= len(reports) {
		slices.Sort(differ)
		return fmt.Errorf("copy of member %q up to position %d and the copies of %s have different records; "+
			"review them with: freshet ensemble repair", c.Member, c.Position, strings.Join(differ, ", "))
	}
	return nil
}

// fetch copies another member's copy to a file.
func (g *guarded) fetch(ctx context.Context, from MemberReport, path string) error {
	response, err := g.s.opts.peer(ctx, from.Member, g.name, "copy")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(f, response.Body)
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, response.Body.Close())
}

// Handler serves this member's copies to the other members, under Path. open returns the open journals of
// a cluster, or nil. dir returns the directory of a cluster's copies.
func Handler(open func(cluster string) *Journals, dir func(cluster string) string) http.Handler {
	mux := http.NewServeMux()
	const pattern = "GET " + Path + "/{cluster}/{journal}/"
	mux.HandleFunc(pattern+"position", func(w http.ResponseWriter, r *http.Request) {
		var report MemberReport
		if g := lookupOpen(open, r); g != nil {
			report = g.report(r.Context())
		} else {
			report = storedReport(copyPath(dir(r.PathValue("cluster")), r.PathValue("journal")))
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report) // the caller asks again
	})
	mux.HandleFunc(pattern+"copy", func(w http.ResponseWriter, r *http.Request) {
		f, size, err := openForReading(open, r, copyPath(dir(r.PathValue("cluster")), r.PathValue("journal")))
		if err != nil {
			http.Error(w, "this member has no copy of the journal", http.StatusNotFound)
			return
		}
		defer func() { _ = f.Close() }() // opened for reading only
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.Copy(w, io.LimitReader(f, size)) // the caller verifies what it gets
	})
	return mux
}

func lookupOpen(open func(cluster string) *Journals, r *http.Request) *guarded {
	if s := open(r.PathValue("cluster")); s != nil {
		if g := s.lookup(r.PathValue("journal")); g != nil && g.keeper != nil {
			return g
		}
	}
	return nil
}

// openForReading opens a copy, and returns how many of its bytes are complete.
func openForReading(open func(string) *Journals, r *http.Request, path string) (f *os.File, size int64, err error) {
	if g := lookupOpen(open, r); g != nil {
		g.keeper.mu.Lock()
		defer g.keeper.mu.Unlock()
		if g.keeper.file == nil {
			return nil, 0, fs.ErrNotExist
		}
		size = g.keeper.file.size
	}
	if f, err = os.Open(path); err != nil {
		return nil, 0, err
	}
	if size == 0 {
		info, err := f.Stat()
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		size = info.Size()
	}
	return f, size, nil
}
