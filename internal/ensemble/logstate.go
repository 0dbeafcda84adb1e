package ensemble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

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
