package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Status is the status of the ensemble as one member reports it.
type Status struct {
	Self       string `json:"self"`
	Controller string `json:"controller"`
	EtcdLeader string `json:"etcdLeader"`
	LogLeader  string `json:"logLeader"`
	Members    []struct {
		Name    string `json:"name"`
		Live    bool   `json:"live"`
		Ready   bool   `json:"ready"`
		Problem string `json:"problem"`
		// Parts are the parts of the member's files that were verified or found damaged.
		Parts []struct {
			Name    string     `json:"name"`
			Damaged *time.Time `json:"damaged"` // nil if no damage is known
			Damages int        `json:"damages"` // how many times damage was found
			File    string     `json:"file"`
			Problem string     `json:"problem"`
		} `json:"parts"`
		Failing map[string]string `json:"failing"`
	} `json:"members"`
	// Streams are the streams of the log and its meta layer.
	Streams []struct {
		Part     string `json:"part"`
		Problem  string `json:"problem"`
		Replicas []struct {
			Member  string `json:"member"`
			Problem string `json:"problem"`
		} `json:"replicas"`
	} `json:"streams"`
	Shards []struct {
		Number int    `json:"number"`
		Owner  string `json:"owner"`
		Epoch  uint64 `json:"epoch"`
		Log    uint64 `json:"log"`
		Copies []struct {
			Member string `json:"member"`
			Live   bool   `json:"live"`
			Lag    uint64 `json:"lag"`
			// Problem describes why the copy is not used.
			Problem string `json:"problem"`
		} `json:"copies"`
		Problem string `json:"problem"`
	} `json:"shards"`
}

// Damage returns the damage that the status reports: damaged parts of members, clusters that a member
// cannot serve, and streams that lack a replica.
func (s *Status) Damage() (found []string) {
	for _, m := range s.Members {
		for _, part := range m.Parts {
			if part.Damaged != nil {
				found = append(found, fmt.Sprintf("%s of member %s is damaged: %s: %s", part.Name, m.Name, part.File,
					part.Problem))
			}
		}
		for cluster, problem := range m.Failing {
			found = append(found, fmt.Sprintf("cluster %s at member %s is degraded: %s", cluster, m.Name, problem))
		}
	}
	for _, stream := range s.Streams {
		if stream.Problem != "" {
			found = append(found, fmt.Sprintf("%s is degraded: %s", stream.Part, stream.Problem))
		}
		for _, r := range stream.Replicas {
			if r.Problem != "" {
				found = append(found, fmt.Sprintf("%s is degraded at member %s: %s", stream.Part, r.Member, r.Problem))
			}
		}
	}
	return found
}

// statusTimeout is longer than a member waits for other members that do not respond.
const statusTimeout = 5 * time.Second

// Status requests the status of the ensemble from the member.
func (m *Member) Status(ctx context.Context) (*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
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
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("member %s returned %s", m.Name, response.Status)
	}
	status := new(Status)
	return status, json.NewDecoder(response.Body).Decode(status)
}

// ownedTimeout is longer than a member must be ready before shards are handed back to it.
const ownedTimeout = 30 * time.Second

// AwaitOwned waits until the member owns its share of the shards.
func (m *Member) AwaitOwned(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ownedTimeout)
	defer cancel()
	for {
		status, err := m.Status(ctx)
		if err == nil {
			owned := 0
			for _, shard := range status.Shards {
				if shard.Owner == m.Name {
					owned++
				}
			}
			if owned > 0 && owned >= len(status.Shards)/len(status.Members) {
				return nil
			}
			err = fmt.Errorf("member %s owns %d of %d shards", m.Name, owned, len(status.Shards))
		}
		if !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}
