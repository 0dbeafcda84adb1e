package ensemble

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"freshet/internal/base/errs"
)

const (
	stepDownPath = "/v1/step-down"
	// stepDownTimeout is the timeout for other members to become leaders.
	stepDownTimeout = 10 * time.Second
)

var (
	errNotLive     = errs.New(errs.Conflict, "member is not live, so it leads nothing, or the others cannot reach it")
	errAllExternal = errs.New(errs.Precondition, "etcd and NATS are external, so members lead nothing of them; use "+
		"etcdctl move-leader and nats stream cluster step-down")
)

// SteppedDown lists the leaderships that a member has transferred to other members.
type SteppedDown struct {
	Etcd    bool `json:"etcd"`
	Streams int  `json:"streams"` // number of streams of the message log
}

// StepDown makes a member transfer its leaderships of the embedded etcd and the message log.
// Only a leader itself can step down, so StepDown calls the member, unless it is this one.
func (m *Member) StepDown(ctx context.Context, name string) (*SteppedDown, error) {
	if !slices.Contains(m.Names(), name) {
		return nil, unknownMember(name)
	}
	joined := m.membership.Load()
	if joined == nil {
		return nil, errMemberStarting
	}
	if m.etcd.External() && m.logIsExternal() {
		return nil, errAllExternal
	}
	ctx, cancel := context.WithTimeout(ctx, stepDownTimeout)
	defer cancel()
	if name == m.opts.Self {
		return m.stepDown(ctx)
	}
	if _, live := joined.Find(name); !live {
		return nil, errNotLive
	}
	led := &SteppedDown{}
	if err := m.network.Post(ctx, name, stepDownPath, struct{}{}, led); err != nil {
		return nil, errs.Newf(errs.Unavailable, "calling member %s to step down: %w", name, err)
	}
	return led, nil
}

// serveStepDown handles the step-down request of another member.
func (m *Member) serveStepDown(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), stepDownTimeout)
	defer cancel()
	led, err := m.stepDown(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(led) // fails only if the caller disconnected
}

var errMemberStarting = errs.New(errs.Unavailable, "member is starting; try again later")

// stepDown transfers this member's leaderships.
func (m *Member) stepDown(ctx context.Context) (*SteppedDown, error) {
	log := m.log.Load()
	if m.membership.Load() == nil || log == nil {
		return nil, errMemberStarting
	}
	led := &SteppedDown{}
	var ofEtcd, ofLog error
	led.Etcd, ofEtcd = m.etcd.StepDown(ctx)
	led.Streams, ofLog = (*log).StepDown(ctx) // does nothing for external servers
	if err := errors.Join(ofEtcd, ofLog); err != nil {
		return nil, err
	}
	m.opts.Log.Info("member stepped down on request", slog.Bool("etcd", led.Etcd), slog.Int("streams", led.Streams))
	return led, nil
}
