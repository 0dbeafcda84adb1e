package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"freshet/bench/process"
	"freshet/test/ensemble/chaos"
)

// observeInterval is the interval between two queries.
const observeInterval = time.Second

// figures are counters, from which the table computes rates.
type figures struct {
	at                         time.Time
	produced, consumed, failed int64
	cpu                        map[string]time.Duration
}

// observed is the content of the table.
type observed struct {
	produced, consumed, failed float64 // per second
	members                    []row
	shards                     []string // with a heading, or the reason why there are none
}

// row is the row of a member.
type row struct{ name, process, health, owned, cpu, memory, leads, address string }

// observe queries the members until the context ends.
func (s *screen) observe(ctx context.Context) {
	before := s.count()
	for {
		now := s.count()
		o := s.query(ctx)
		if passed := now.at.Sub(before.at).Seconds(); passed > 0 {
			rate := func(now, before int64) float64 { return float64(now-before) / passed }
			o.produced, o.consumed, o.failed = rate(now.produced, before.produced), rate(now.consumed, before.consumed),
				rate(now.failed, before.failed)
			for i := range o.members {
				used, old := now.cpu[o.members[i].name], before.cpu[o.members[i].name]
				if used >= old && old > 0 {
					o.members[i].cpu = fmt.Sprintf("%.0f%%", 100*(used-old).Seconds()/passed)
				}
			}
		}
		before = now
		s.mu.Lock()
		s.latest = o
		s.mu.Unlock()
		if !pause(ctx, observeInterval) {
			return
		}
	}
}

func (s *screen) count() figures {
	f := figures{
		time.Now(), s.work.produced.Load(), s.work.consumed.Load(), s.work.failed.Load(),
		map[string]time.Duration{},
	}
	for _, m := range s.ensemble.Members {
		if pid := m.PID(); pid > 0 {
			if used, err := process.CPU(pid); err == nil {
				f.cpu[m.Name] = used
			}
		}
	}
	return f
}

// query queries the members one after another until one returns the status of the ensemble.
func (s *screen) query(ctx context.Context) observed {
	var o observed
	var status *chaos.Status
	run := 0
	for _, m := range s.ensemble.Members {
		r := row{name: m.Name, process: s.processState(m), address: m.URL}
		if pid := m.PID(); r.process != gone {
			if bytes, err := process.Resident(pid); err == nil {
				r.memory = fmt.Sprintf("%d MB", bytes>>20)
			}
		}
		if r.process == runs {
			run++
			if status == nil {
				status, _ = m.Status(ctx) // on an error the next member is queried
			}
		}
		o.members = append(o.members, r)
	}
	switch majority := len(s.ensemble.Members)/2 + 1; {
	case status != nil:
		o.fill(status)
	case run < majority:
		o.shards = []string{fmt.Sprintf("%d of %d members run. Without a majority of %d no request is served; r "+
			"revives a member.", run, len(s.ensemble.Members), majority)}
	default:
		o.shards = []string{"No member can report the status of the ensemble yet: there is no majority."}
	}
	return o
}

// The states of a member's process.
const (
	runs   = "runs"
	starts = "starts"
	stops  = "stops"
	paused = "paused"
	gone   = "gone"
)

// processState returns the state of a member's process. It never blocks.
func (s *screen) processState(m *chaos.Member) string {
	pid := m.PID()
	if pid == 0 {
		return gone
	}
	if _, err := process.CPU(pid); err != nil {
		return gone // it has exited
	}
	if m.Paused() {
		return paused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if doing := s.busy[m.Name]; doing != "" {
		return doing
	}
	return runs
}

// fill adds the status that a member returned.
func (o *observed) fill(a *chaos.Status) {
	owned := map[string]int{}
	for i := range a.Shards {
		owned[a.Shards[i].Owner]++
	}
	for i := range o.members {
		r := &o.members[i]
		r.owned = fmt.Sprint(owned[r.name])
		for _, m := range a.Members {
			switch {
			case m.Name != r.name:
			case m.Ready:
				r.health = "ready"
			case m.Live:
				r.health = "not ready yet"
			default:
				r.health = "no lease"
			}
		}
		var leads []string
		for _, role := range []struct{ name, member string }{
			{"controllers", a.Controller},
			{"etcd", a.EtcdLeader},
			{"log", a.LogLeader},
		} {
			if role.member == r.name {
				leads = append(leads, role.name)
			}
		}
		r.leads = strings.Join(leads, ", ")
	}
	o.shards = []string{fmt.Sprintf("%-7s%-8s%-7s%-9s%s", "SHARD", "OWNER", "EPOCH", "LOG",
		"COPIES, EACH WITH ITS LAG (reported by "+a.Self+")")}
	for i := range a.Shards {
		shard := &a.Shards[i]
		owner := shard.Owner
		if owner == "" {
			owner = "none"
		}
		copies := make([]string, len(shard.Copies))
		for i, c := range shard.Copies {
			copies[i] = fmt.Sprintf("%s %d", c.Member, c.Lag)
			if !c.Live {
				copies[i] = c.Member + " away"
			}
		}
		slices.Sort(copies)
		line := fmt.Sprintf("%-7d%-8s%-7d%-9d%s", shard.Number, owner, shard.Epoch, shard.Log,
			strings.Join(copies, ", "))
		if shard.Problem != "" {
			line += "; " + shard.Problem
		}
		o.shards = append(o.shards, line)
	}
}
