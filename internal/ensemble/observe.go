package ensemble

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver"
)

const (
	healthPath = "/v1/health"
	// observeInterval is the time between two rounds, in each of which a member reads the state of
	// its own streams and files once and requests that of the others.
	observeInterval = 5 * time.Second
	// externalInterval is the same for the streams of external NATS servers, which every member lists.
	externalInterval = 30 * time.Second
	// sizeInterval is the time between two measurements of the files in quarantine.
	sizeInterval = time.Minute
	// minRefresh is the age from which a status request needs a new observation, refreshPoll how
	// often it looks for the result.
	minRefresh  = time.Second
	refreshPoll = 20 * time.Millisecond
	// expireInterval is the time between two removals of old files from quarantine.
	expireInterval = time.Hour
)

// Health is what a member knows about its own streams, files and clusters.
type Health struct {
	// Log describes the member's streams; nil if its NATS server does not run or is external.
	Log *natsserver.Report `json:"log,omitempty"`
	// Parts are the parts of its files, and QuarantineBytes the size of the damaged files that it
	// keeps for a while.
	Parts           []integrity.Part `json:"parts,omitempty"`
	QuarantineBytes int64            `json:"quarantineBytes,omitempty"`
	// Clusters contains why the member cannot serve a cluster, by the uid of the cluster.
	Clusters map[string]string `json:"clusters,omitempty"`
}

// Observation is the state of the streams and files of all members, at most a few seconds old.
type Observation struct {
	At time.Time
	// Streams are the streams of the log and its meta layer.
	Streams []natsserver.Stream
	// Members contains the members that responded.
	Members map[string]*Health
	// Failing contains the members that could not serve a cluster in this round and in the round
	// before, by the uid of the cluster, and why.
	Failing map[string]map[string]string
	// ClocksApart is how far the clocks of the members differ; 0 if that is normal.
	ClocksApart time.Duration
}

// observer makes observations. Only the goroutine of Member.Observe uses it.
type observer struct {
	m         *Member
	tracker   natsserver.Tracker
	expired   time.Time // when files were last removed from quarantine
	sized     time.Time // when the files in quarantine were last measured
	bytes     int64
	listed    time.Time // when the streams of external servers were last listed
	external  *natsserver.Report
	failing   map[string]map[string]string // of the last round
	wasLogged string                       // the last logged notes; "" if all was good
	loggedAt  time.Time
}

// SetClusterProblems sets the function that returns why this member cannot serve a cluster, by the
// uid of the cluster.
func (m *Member) SetClusterProblems(problems func() map[string]string) {
	m.clusterProblems.Store(&problems)
}

// Observation returns the latest observation; nil before the first one.
func (m *Member) Observation() *Observation { return m.observation.Load() }

// Observe watches the streams and files of all members until the context ends, and removes old
// files from quarantine. It is called after Join.
func (m *Member) Observe(ctx context.Context) {
	o := &observer{m: m, tracker: natsserver.Tracker{Grace: natsserver.ReplicaGrace, Now: time.Now}}
	if !m.logIsExternal() {
		o.tracker.Servers = m.names
	}
	tick := time.NewTicker(observeInterval)
	defer tick.Stop()
	for {
		o.observe(ctx)
		select {
		case <-tick.C:
		case <-m.poke:
		case <-ctx.Done():
			return
		}
	}
}

// refresh makes Observe observe now, and waits for the result for at most a second. It does nothing
// if the latest observation is new enough.
func (m *Member) refresh(ctx context.Context) {
	before := m.Observation()
	if before == nil || time.Since(before.At) < minRefresh {
		return
	}
	select {
	case m.poke <- struct{}{}:
	default: // already requested
	}
	ctx, cancel := context.WithTimeout(ctx, aboutTimeout)
	defer cancel()
	for m.Observation() == before && retry.Sleep(ctx, refreshPoll) == nil {
	}
}

// observe makes one observation.
func (o *observer) observe(ctx context.Context) {
	m, now := o.m, time.Now()
	if now.Sub(o.expired) >= expireInterval {
		m.integrity.Expire()
		o.expired, o.sized = now, time.Time{}
	}
	own := o.own(ctx)
	m.health.Store(own)
	all := map[string]*Health{m.opts.Self: own}
	down := map[string]bool{}
	var mu sync.Mutex // protects all
	var asked sync.WaitGroup
	for _, name := range m.names {
		if name == m.opts.Self {
			continue
		}
		if _, live := m.membership.Load().Find(name); !live {
			down[name] = true
			continue
		}
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, observeInterval)
			defer cancel()
			health := &Health{}
			if m.network.Post(ctx, name, healthPath, struct{}{}, health) == nil {
				mu.Lock()
				all[name] = health
				mu.Unlock()
			}
		})
	}
	asked.Wait()
	if ctx.Err() != nil {
		return
	}
	m.observation.Store(&Observation{
		At: now, Streams: o.streams(all, down), Members: all, Failing: o.confirm(all), ClocksApart: m.clocks.apart(),
	})
	o.logChange()
}

// own returns the health of this member.
func (o *observer) own(ctx context.Context) *Health {
	m, now := o.m, time.Now()
	h := &Health{}
	h.Parts, _ = m.integrity.Parts()
	if now.Sub(o.sized) >= sizeInterval {
		o.sized, o.bytes = now, 0
		for _, q := range m.integrity.Quarantined() {
			o.bytes += q.Bytes
		}
	}
	h.QuarantineBytes = o.bytes
	if problems := m.clusterProblems.Load(); problems != nil {
		h.Clusters = (*problems)()
	}
	log := m.log.Load()
	switch {
	case log == nil:
	case !m.logIsExternal():
		h.Log, _ = (*log).Report(ctx) // without a report the server counts as not responding
	case now.Sub(o.listed) >= externalInterval:
		ctx, cancel := context.WithTimeout(ctx, observeInterval)
		defer cancel()
		report, err := (*log).Report(ctx)
		if err != nil {
			break // the last list stays for another round
		}
		o.listed, o.external = now, report
	}
	return h
}

// streams combines the reports of all members.
func (o *observer) streams(all map[string]*Health, down map[string]bool) []natsserver.Stream {
	reports := map[string]*natsserver.Report{}
	for name, health := range all {
		if health.Log != nil {
			reports[name] = health.Log
		}
	}
	if o.external != nil {
		reports[""] = o.external
	}
	return o.tracker.Combine(reports, down)
}

// confirm returns the clusters that a member cannot serve now and could not serve in the last
// round. A member that starts needs a moment for its clusters.
func (o *observer) confirm(all map[string]*Health) map[string]map[string]string {
	failing, confirmed := map[string]map[string]string{}, map[string]map[string]string{}
	for member, health := range all {
		for uid, why := range health.Clusters {
			if failing[uid] == nil {
				failing[uid] = map[string]string{}
			}
			failing[uid][member] = why
			if _, before := o.failing[uid][member]; !before {
				continue
			}
			if confirmed[uid] == nil {
				confirmed[uid] = map[string]string{}
			}
			confirmed[uid][member] = why
		}
	}
	o.failing = failing
	return confirmed
}

// logChange logs when the ensemble becomes degraded or good, and other changes once a minute.
func (o *observer) logChange() {
	note := strings.Join(o.m.Observation().Degraded(), "; ")
	if note == o.wasLogged || note != "" && o.wasLogged != "" && time.Since(o.loggedAt) < time.Minute {
		return
	}
	o.loggedAt = time.Now()
	if o.wasLogged = note; note == "" {
		o.m.opts.Log.Info("all replicas of the log are current and no damage is known")
		return
	}
	o.m.opts.Log.Warn("ensemble is degraded; see freshet ensemble status", slog.String("reason", note))
}

// serveHealth handles the health request of another member.
func (m *Member) serveHealth(w http.ResponseWriter, _ *http.Request) {
	health := m.health.Load()
	if health == nil {
		http.Error(w, errMemberStarting.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(health) // fails only if the caller disconnected
}

// Degraded returns in words what is not as it should be, without names of members or files; nil if
// nothing is known.
func (o *Observation) Degraded() (notes []string) {
	if o == nil {
		return nil
	}
	missing, replicas, stuck := 0, 0, 0
	for i := range o.Streams {
		replicas += len(o.Streams[i].Replicas)
		missing += len(o.Streams[i].Missing())
		if o.Streams[i].Problem != "" {
			stuck++
		}
	}
	damaged, differ := 0, 0
	for _, health := range o.Members {
		for i := range health.Parts {
			if !health.Parts[i].Damaged.IsZero() {
				damaged++
			}
			if health.Parts[i].Differs != "" {
				differ++
			}
		}
	}
	if stuck > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d streams of the log have no majority", stuck, len(o.Streams)))
	}
	if missing > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d replicas of the log are missing", missing, replicas))
	}
	if damaged > 0 {
		notes = append(notes, fmt.Sprintf("%d damaged parts are being replaced", damaged))
	}
	if differ > 0 {
		notes = append(notes, fmt.Sprintf("%d copies of shards differ from others, and no majority decides which "+
			"are right", differ))
	}
	if len(o.Failing) > 0 {
		notes = append(notes, fmt.Sprintf("%d clusters are not usable on every member", len(o.Failing)))
	}
	if o.ClocksApart > 0 {
		notes = append(notes, fmt.Sprintf("clocks of members differ by up to %s; synchronize them with NTP",
			o.ClocksApart.Round(time.Second)))
	}
	return notes
}

// problemOf returns what is wrong with the files and streams of a member; "" if nothing is known.
func (o *Observation) problemOf(member string) string {
	if o == nil {
		return ""
	}
	var problems []string
	if health := o.Members[member]; health != nil {
		for i := range health.Parts {
			if p := &health.Parts[i]; !p.Damaged.IsZero() {
				problem := p.Name + " is damaged, so the member does not use it"
				if p.Fetched() {
					problem += " and fetches a good copy"
				}
				problems = append(problems, problem+": "+p.Problem)
			}
			if p := &health.Parts[i]; p.Differs != "" {
				problems = append(problems, p.Name+": "+p.Differs)
			}
		}
	}
	var missing []string
	for i := range o.Streams {
		for _, r := range o.Streams[i].Missing() {
			if r.Server == member {
				missing = append(missing, o.Streams[i].Name+" ("+r.Problem+")")
			}
		}
	}
	if n := len(missing); n > 0 {
		text := fmt.Sprintf("%d replicas of the log are missing: %s", n, strings.Join(missing[:min(n, maxNamed)], ", "))
		if n > maxNamed {
			text += ", …"
		}
		problems = append(problems, text)
	}
	return strings.Join(problems, "; ")
}

// maxNamed bounds how many streams a problem names; the list of streams has all.
const maxNamed = 3
