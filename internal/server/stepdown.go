package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/surfaces/systemapi"
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

// StepDown implements systemapi.Ensemble. Only a leader itself can step down, so StepDown calls
// the member, unless it is this one.
func (g ensembleStatus) StepDown(ctx context.Context, name string) (*systemapi.SteppedDown, error) {
	s := g.s
	if s.ensemble == nil {
		return nil, errAlone
	}
	if !slices.Contains(s.memberNames(), name) {
		return nil, errs.Newf(errs.NotFound, "member %q is not in members.list", name)
	}
	if s.cfg.Etcd.External() && s.cfg.NATS.External() {
		return nil, errAllExternal
	}
	ctx, cancel := context.WithTimeout(ctx, stepDownTimeout)
	defer cancel()
	if name == s.cfg.Members.Self {
		return s.stepDown(ctx)
	}
	if _, live := s.ensemble.members.Find(name); !live {
		return nil, errNotLive
	}
	led := &systemapi.SteppedDown{}
	if err := s.ensemble.network.Post(ctx, name, stepDownPath, struct{}{}, led); err != nil {
		return nil, errs.Newf(errs.Unavailable, "calling member %s to step down: %w", name, err)
	}
	return led, nil
}

// serveStepDown handles the step-down request of another member.
func (s *server) serveStepDown(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), stepDownTimeout)
	defer cancel()
	led, err := s.stepDown(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(led) // fails only if the caller disconnected
}

// stepDown transfers this member's leaderships of the embedded etcd and the message log.
func (s *server) stepDown(ctx context.Context) (*systemapi.SteppedDown, error) {
	if s.member == nil && !s.cfg.Etcd.External() || s.ensemble.log == nil {
		return nil, errs.New(errs.Unavailable, "member is starting; try again later")
	}
	led := &systemapi.SteppedDown{}
	var ofEtcd, ofLog error
	if s.member != nil {
		led.Etcd, ofEtcd = s.member.StepDown(ctx)
	}
	if !s.cfg.NATS.External() {
		led.Streams, ofLog = s.ensemble.log.StepDown(ctx)
	}
	if err := errors.Join(ofEtcd, ofLog); err != nil {
		return nil, err
	}
	s.log.Info("member stepped down on request", slog.Bool("etcd", led.Etcd), slog.Int("streams", led.Streams))
	return led, nil
}
