package ensemble

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/membership"
)

const (
	aboutPath = "/v1/about"
	// aboutTimeout is the timeout for the status of a member, noLeaseTimeout that for a member
	// without a lease, which probably does not respond.
	aboutTimeout   = time.Second
	noLeaseTimeout = 300 * time.Millisecond
	// maxSkew is the clock difference from which the status reports a problem. Tokens and
	// leases depend on the clocks.
	maxSkew = time.Second
	// renewBefore is the remaining lifetime of a certificate below which the status reports
	// a problem.
	renewBefore = 90 * 24 * time.Hour
)

// Status is the state of an ensemble as the responding member sees it.
type Status struct {
	Self string // "" for a single server
	// Controller runs the controllers, EtcdLeader leads etcd, LogLeader the message log; "" while
	// there is none, or if etcd or the log is external.
	Controller, EtcdLeader, LogLeader string
	Members                           []MemberStatus
	// Applied contains the last applied position of the copies of each responding member, by
	// member and shard (see SetApplied).
	Applied map[string]map[string]uint64
	// Observed is the state of the streams and files of all members; nil if it is not known yet.
	Observed *Observation
}

// MemberStatus is the state of a member.
type MemberStatus struct {
	Name     string
	Node     int
	Internal string
	// Record is what a live member publishes; nil for other members.
	Record *membership.Record
	// ClockAhead is how far its clock is ahead of that of the responding member, in seconds.
	ClockAhead      float64
	CertificateEnds *time.Time // nil if the member does not respond
	Problem         string     // why the member does not work properly; "" if it does
}

// about is the status that a member returns to other members.
type about struct {
	Time            time.Time         `json:"time"`
	CertificateEnds time.Time         `json:"certificateEnds"`
	LogLeader       bool              `json:"logLeader"`
	Applied         map[string]uint64 `json:"applied,omitempty"`
}

// SetApplied sets the function that returns the last applied position of this member's copy of
// each shard, by a key that all members use.
func (m *Member) SetApplied(applied func() map[string]uint64) { m.applied.Store(&applied) }

// serveAbout handles the status request of another member.
func (m *Member) serveAbout(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(m.aboutSelf()) // fails only if the caller disconnected
}

// prober calls other members at their internal ports.
type prober struct {
	network *membership.Network
	clocks  *clocks
}

// Probe implements membership.Prober. It requests the status of a member and measures its clock.
func (p prober) Probe(ctx context.Context, member string) error {
	var reported struct {
		Time time.Time `json:"time"`
	}
	began := time.Now()
	err := p.network.Post(ctx, member, aboutPath, struct{}{}, &reported)
	if err == nil {
		p.clocks.record(member, began, time.Now(), reported.Time)
	}
	return err
}

func (m *Member) aboutSelf() about {
	a := about{Time: time.Now(), CertificateEnds: m.credentials.Expiry()}
	if log := m.log.Load(); log != nil {
		a.LogLeader = (*log).IsMetaLeader()
	}
	if applied := m.applied.Load(); applied != nil {
		a.Applied = (*applied)()
	}
	return a
}

// Status describes all members. It requests their status, and a new observation.
func (m *Member) Status(ctx context.Context) (*Status, error) {
	joined := m.membership.Load()
	if joined == nil {
		return nil, errMemberStarting
	}
	m.refresh(ctx)
	out := &Status{
		Self: m.opts.Self, EtcdLeader: m.etcd.Leader(), Members: make([]MemberStatus, len(m.opts.Members)),
		Applied: map[string]map[string]uint64{}, Observed: m.Observation(),
	}
	var err error
	if out.Controller, err = joined.Controller(ctx); err != nil {
		return nil, errs.Newf(errs.Unavailable, "reading from etcd which member runs the controllers: %w", err)
	}
	var asked sync.WaitGroup
	reported := make([]about, len(out.Members))
	for i := range m.opts.Members {
		asked.Go(func() { out.Members[i], reported[i] = m.memberStatus(ctx, joined, &m.opts.Members[i], i+1) })
	}
	asked.Wait()
	for i := range reported {
		name := out.Members[i].Name
		if out.Applied[name] = reported[i].Applied; reported[i].LogLeader {
			out.LogLeader = name
		}
	}
	return out, nil
}

// memberStatus returns the status of one member. It requests the status from the member, unless
// it is this one.
func (m *Member) memberStatus(ctx context.Context, joined *membership.Ensemble, of *bundle.Member,
	node int,
) (s MemberStatus, reported about) {
	s = MemberStatus{Name: of.Name, Node: node, Internal: of.Internal}
	record, live := joined.Find(of.Name)
	if live {
		s.Record = &record
	} else {
		s.Problem = "it has no lease: it is stopped, or does not reach a majority"
	}
	if of.Name == m.opts.Self {
		reported = m.aboutSelf()
	} else {
		timeout := aboutTimeout
		if !live {
			timeout = noLeaseTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		began := time.Now()
		if err := m.network.Post(ctx, of.Name, aboutPath, struct{}{}, &reported); err != nil {
			if live {
				s.Problem = "it does not respond to this member: " + err.Error()
			}
			return s, about{}
		}
		s.ClockAhead = clockAhead(began, time.Now(), reported.Time).Round(time.Millisecond).Seconds()
	}
	s.CertificateEnds = &reported.CertificateEnds
	switch skew := time.Duration(s.ClockAhead * float64(time.Second)); {
	case s.Problem != "":
	case skew > maxSkew || skew < -maxSkew:
		s.Problem = "its clock and that of this member are " + skew.Abs().String() + " apart; synchronize both with NTP"
	case time.Until(reported.CertificateEnds) < renewBefore:
		s.Problem = "its certificate expires on " + reported.CertificateEnds.Format(time.DateOnly) +
			"; see freshet ensemble replace"
	case !record.Ready:
		s.Problem = "it is starting or stopping"
	default:
		s.Problem = m.Observation().problemOf(of.Name)
	}
	return s, reported
}

var errIsLive = errs.New(errs.Conflict, "member is live; stop it first")

// Replace removes a lost member and expects an empty server to join under its name.
func (m *Member) Replace(ctx context.Context, name string) error {
	if !slices.Contains(m.Names(), name) {
		return unknownMember(name)
	}
	joined := m.membership.Load()
	if joined == nil {
		return errMemberStarting
	}
	if _, live := joined.Find(name); live {
		return errIsLive
	}
	if m.etcd.External() {
		return errExternalEtcd
	}
	m.opts.Log.Warn("replacing a member with an empty one", slog.String("member", name))
	return m.etcd.Replace(ctx, name)
}

var errExternalEtcd = errs.New(errs.Precondition,
	"etcd is external, so nothing has to be replaced; start the new machine with its bundle")
