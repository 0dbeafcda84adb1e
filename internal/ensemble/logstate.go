package ensemble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"freshet/internal/ensemble/natsserver"
)

const logStatePath = "/v1/log-state"

// logState is whether a member's NATS server has all records of its logs.
type logState struct {
	Problem string `json:"problem,omitempty"` // "" if it has
}

// serveLogState handles the question of a member whose own logs are damaged.
func (m *Member) serveLogState(w http.ResponseWriter, _ *http.Request) {
	var state logState
	if err := m.checkOwnLog(); err != nil {
		state.Problem = err.Error()
	}
	_ = json.NewEncoder(w).Encode(state) // fails only if the caller disconnected
}

// checkOwnLog returns nil if this member's NATS server has all records of its logs.
func (m *Member) checkOwnLog() error {
	log := m.log.Load()
	if log == nil {
		return errors.New("its message log has not started yet")
	}
	own, ok := (*log).(*natsserver.Server)
	if !ok {
		return errors.New("it uses external NATS servers")
	}
	return own.Current()
}

// checkOtherLogs returns nil if the NATS servers of all other members have all records of their logs. The
// error names every member that has not, or that does not respond.
func (m *Member) checkOtherLogs(ctx context.Context) error {
	problems := make([]error, len(m.names))
	var asked sync.WaitGroup
	for i, name := range m.names {
		if name == m.opts.Self {
			continue
		}
		asked.Go(func() {
			var state logState
			err := m.Post(ctx, name, logStatePath, struct{}{}, &state)
			if err == nil && state.Problem != "" {
				err = fmt.Errorf("member %q: %s", name, state.Problem)
			}
			problems[i] = err
		})
	}
	asked.Wait()
	return errors.Join(problems...)
}

const suspectPath = "/v1/log-suspect"

// suspectTimeout bounds the report of a suspicion to another member. A report that gets lost is repeated by
// the next reader.
const suspectTimeout = 5 * time.Second

// logSuspicion reports that records of a member's NATS server do not verify.
type logSuspicion struct {
	Reason string `json:"reason"`
}

// SuspectLog makes the NATS server of a member verify its files, because it returned a record that does not
// verify, or lacks one that another server has. It returns at once. Nothing happens if the servers are
// external ones.
func (m *Member) SuspectLog(member, reason string) {
	if member == m.opts.Self {
		m.suspectOwnLog(reason)
		return
	}
	if m.logIsExternal() || !slices.Contains(m.names, member) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), suspectTimeout)
		defer cancel()
		_ = m.Post(ctx, member, suspectPath, logSuspicion{reason}, new(struct{}))
	}()
}

func (m *Member) suspectOwnLog(reason string) {
	log := m.log.Load()
	if log == nil {
		return
	}
	if own, ok := (*log).(*natsserver.Server); ok {
		own.Suspect(reason)
	}
}

// serveLogSuspicion handles the report of another member.
func (m *Member) serveLogSuspicion(w http.ResponseWriter, r *http.Request) {
	var found logSuspicion
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSuspicionBytes)).Decode(&found)
	if err != nil || found.Reason == "" {
		http.Error(w, "request is no suspicion", http.StatusBadRequest)
		return
	}
	m.suspectOwnLog(found.Reason)
	_ = json.NewEncoder(w).Encode(struct{}{}) // fails only if the caller disconnected
}

// maxSuspicionBytes bounds a report.
const maxSuspicionBytes = 4 << 10
