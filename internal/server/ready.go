package server

import (
	"errors"
	"sync/atomic"
)

// readiness is false until every surface works, and again from the moment the
// server is asked to stop.
type readiness struct{ ready atomic.Bool }

func (r *readiness) set()   { r.ready.Store(true) }
func (r *readiness) unset() { r.ready.Store(false) }

func (r *readiness) check() error {
	if !r.ready.Load() {
		return errors.New("starting or stopping")
	}
	return nil
}
