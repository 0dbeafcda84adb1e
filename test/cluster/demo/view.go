package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"freshet/test/cluster/chaos"
)

// view is what a member says of the group.
type view struct {
	health map[string]string // by member
	does   map[string]string
	owned  map[string]int // shards
	shards string         // the table of shards
}

// look asks the members one after another, until one tells how the group is.
func (s *screen) look(ctx context.Context) view {
	v := view{health: map[string]string{}, does: map[string]string{}, owned: map[string]int{}}
	for _, m := range s.group.Members {
		if m.PID() == 0 || m.Paused() {
			continue
		}
		if answer, err := m.Status(ctx); err == nil {
			v.fill(answer)
			return v
		}
	}
	v.shards = "No member tells how the group is: a majority is missing.\n"
	return v
}

func (v *view) fill(a *chaos.Status) {
	for _, m := range a.Members {
		switch {
		case m.Ready:
			v.health[m.Name] = "ready"
		case m.Live:
			v.health[m.Name] = "live, not ready"
		default:
			v.health[m.Name] = "no lease"
		}
		var does []string
		for _, role := range []struct{ name, who string }{{"controllers", a.Controller}, {"etcd", a.EtcdLeader}, {"log", a.LogLeader}} {
			if role.who == m.Name {
				does = append(does, role.name)
			}
		}
		v.does[m.Name] = strings.Join(does, ",")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s%-8s%-8s%-12s%s   (as %s sees it)\n", "SHARD", "OWNER", "EPOCH", "LOG", "COPIES, AND HOW FAR BEHIND", a.Self)
	for _, shard := range a.Shards {
		v.owned[shard.Owner]++
		owner := shard.Owner
		if owner == "" {
			owner = "nobody"
		}
		copies := make([]string, len(shard.Copies))
		for i, c := range shard.Copies {
			copies[i] = fmt.Sprintf("%s %d", c.Member, c.Lag)
			if !c.Live {
				copies[i] = c.Member + " gone"
			}
		}
		slices.Sort(copies)
		fmt.Fprintf(&b, "%-8d%-8s%-8d%-12d%s %s\n", shard.Number, owner, shard.Epoch, shard.Log, strings.Join(copies, ", "), shard.Problem)
	}
	v.shards = b.String()
}
