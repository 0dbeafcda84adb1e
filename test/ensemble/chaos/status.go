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
			// Problem describes why the copy is not used.
			Problem string `json:"problem"`
		} `json:"copies"`
		Problem string `json:"problem"`
	} `json:"shards"`
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
