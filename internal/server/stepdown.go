package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/surfaces/systemapi"
)

const (
	stepDownPath = "/v1/step-down"
	// stepDownTime is how long others may take to lead what a member led.
	stepDownTime = 10 * time.Second
)

var (
	errNotLive   = errs.New(errs.Conflict, "the member is not live: it leads nothing, or the others cannot reach it")
	errAllOthers = errs.New(errs.Precondition, "etcd and NATS are external, and members lead nothing of them: use "+
		"etcdctl move-leader and nats stream cluster step-down")
)

// StepDown implements systemapi.Group: the member that leads has to do it itself, and is
// asked unless it is this one.
func (g groupStatus) StepDown(ctx context.Context, name string) (*systemapi.SteppedDown, error) {
	s := g.s
	if s.group == nil {
		return nil, errAlone
	}
	if !slices.Contains(s.memberNames(), name) {
		return nil, errs.Newf(errs.NotFound, "there is no member %q in members.list", name)
	}
	if s.cfg.Etcd.External() && s.cfg.NATS.External() {
		return nil, errAllOthers
	}
	ctx, cancel := context.WithTimeout(ctx, stepDownTime)
	defer cancel()
	if name == s.cfg.Members.Self {
		return s.stepDown(ctx)
	}
	if _, live := s.group.members.Find(name); !live {
		return nil, errNotLive
	}
	led := &systemapi.SteppedDown{}
	if err := s.group.network.Post(ctx, name, stepDownPath, struct{}{}, led); err != nil {
		return nil, errs.Newf(errs.Unavailable, "the member could not step down: %w", err)
	}
	return led, nil
}

// hearStepDown is what the other members call.
func (s *server) hearStepDown(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), stepDownTime)
	defer cancel()
	led, err := s.stepDown(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(led) // the caller may be gone
}

// stepDown gives up what this member leads of the embedded etcd and log.
func (s *server) stepDown(ctx context.Context) (*systemapi.SteppedDown, error) {
	if s.member == nil && !s.cfg.Etcd.External() || s.group.log == nil {
		return nil, errs.New(errs.Unavailable, "the member is starting")
	}
	led := &systemapi.SteppedDown{}
	var ofEtcd, ofLog error
	if s.member != nil {
		led.Etcd, ofEtcd = s.member.StepDown(ctx)
	}
	if !s.cfg.NATS.External() {
		led.Streams, ofLog = s.group.log.StepDown(ctx)
	}
	if err := errors.Join(ofEtcd, ofLog); err != nil {
		return nil, err
	}
	s.log.Info("this member stepped down, as it was asked to", "etcd", led.Etcd, "streams", led.Streams)
	return led, nil
}
