package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"freshet/internal/base/errs"
)

// Report describes a journal: what the members have of it, and what can be done if it is lost.
type Report struct {
	Name string
	// Lost is why the journal does not answer; "" if it does.
	Lost string
	// Needed is the last position that is known to have existed.
	Needed  uint64
	Members []MemberReport
	// From is the member from whose copy a lost journal continues when its loss is accepted: the one
	// with the longest copy, or the requested one. It is "" if no copy can be used.
	From string
	// Token identifies the state of that copy and of the journal.
	Token string
}

// Inspect describes the cluster's journals. open are the cluster's journals on this member; nil if the
// cluster is not open. from is the member whose copy a lost journal would continue from; "" means the
// one with the longest copy.
func Inspect(ctx context.Context, o Options, open *Journals, from string) ([]Report, error) {
	names, err := o.knownNames(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var reports []Report
	for _, name := range names {
		r, _, err := inspect(ctx, &o, open, name, from)
		if err != nil {
			return nil, err
		}
		reports = append(reports, *r)
	}
	return reports, nil
}

func inspect(ctx context.Context, o *Options, open *Journals, name, from string) (*Report, *journalKeys, error) {
	keys, err := newRegistry(o, name).read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if keys.streamText == "" {
		return nil, nil, errs.Newf(errs.NotFound, "journal %q does not exist", name)
	}
	r := &Report{Name: name, Lost: keys.lost}
	r.Members = o.collect(ctx, name, func(ctx context.Context) MemberReport {
		if open != nil {
			if g := open.lookup(name); g != nil {
				return g.report(ctx)
			}
		}
		return storedReport(copyPath(o.Dir, name))
	})
	r.Needed, _ = keys.needed()
	var best MemberReport
	for i := range r.Members {
		m := &r.Members[i]
		r.Needed = max(r.Needed, m.Seen)
		if p := keys.published[m.Member]; m.Missing && p.Stream == keys.stream.ID {
			m.Position, m.Sum = p.Position, p.Sum // what it last reported
		}
		usable := !m.Missing && m.Sum != "" && (from == "" || from == m.Member)
		if usable && (best.Sum == "" || m.Position > best.Position) {
			best = *m
		}
	}
	if best.Sum != "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s", keys.stream.ID, best.Member, best.Position, best.Sum))
		r.From, r.Token = best.Member, hex.EncodeToString(sum[:12])
	}
	return r, keys, nil
}

var (
	errNotLost = errs.New(errs.Precondition, "journal is not lost, so there is no loss to accept")
	errToken   = errs.New(errs.Conflict, "state of the journal has changed since it was shown; show it again")
	errNoCopy  = errs.New(errs.Precondition, "no reachable member has a copy from which the journal can continue")
)

// AcceptLoss makes a lost journal continue from the copy of a member, as Inspect described it with the
// token. Records that the copy does not have are lost.
func AcceptLoss(ctx context.Context, o Options, open *Journals, name, from, token string) (*Report, error) {
	r, keys, err := inspect(ctx, &o, open, name, from)
	switch {
	case err != nil:
		return nil, err
	case r.Lost == "":
		return nil, errNotLost
	case r.From == "":
		return nil, errNoCopy
	case r.Token != token || r.From != from:
		return nil, errToken
	}
	for _, m := range r.Members {
		if m.Member == from {
			v := acceptedValue{Stream: keys.stream.ID, Member: from, Position: m.Position, Sum: m.Sum}
			registry := newRegistry(&o, name)
			return r, registry.put(ctx, registry.acceptedKey(), v)
		}
	}
	return nil, errNoCopy
}
