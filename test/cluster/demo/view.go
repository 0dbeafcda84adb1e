package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"freshet/test/cluster/chaos"
)

// view is what a member says of the group.
type view struct {
	health map[string]string // by member
	does   map[string]string
	owned  map[string]int // shards
	shards string         // the table of shards
}

// members is the answer of the system interface, as far as it is shown.
type members struct {
	Self       string `json:"self"`
	Controller string `json:"controller"`
	EtcdLeader string `json:"etcdLeader"`
	LogLeader  string `json:"logLeader"`
	Members    []struct {
		Name    string `json:"name"`
		Live    bool   `json:"live"`
		Ready   bool   `json:"ready"`
		Problem string `json:"problem"`
	} `json:"members"`
	Shards []struct {
		Number int    `json:"number"`
		Owner  string `json:"owner"`
		Epoch  uint64 `json:"epoch"`
		Log    uint64 `json:"log"`
		Copies []struct {
			Member string `json:"member"`
			Live   bool   `json:"live"`
			Lag    uint64 `json:"lag"`
		} `json:"copies"`
		Problem string `json:"problem"`
	} `json:"shards"`
}

// look asks the members one after another, until one tells how the group is.
func (s *screen) look(ctx context.Context) view {
	v := view{health: map[string]string{}, does: map[string]string{}, owned: map[string]int{}}
	for _, m := range s.group.Members {
		if m.PID() == 0 || m.Paused() {
			continue
		}
		if answer, err := ask(ctx, m); err == nil {
			v.fill(answer)
			return v
		}
	}
	v.shards = "No member tells how the group is: a majority is missing.\n"
	return v
}

func ask(ctx context.Context, m *chaos.Member) (*members, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/system/v1alpha1/members", http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+m.Token())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read, or is not wanted
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("member %s answers %s", m.Name, response.Status)
	}
	answer := new(members)
	return answer, json.NewDecoder(response.Body).Decode(answer)
}

func (v *view) fill(a *members) {
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
