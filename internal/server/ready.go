package server

import (
	"errors"
	"sync/atomic"
)

// readiness is true from the end of the last phase until the shutdown starts.
type readiness struct{ ready atomic.Bool }

func (r *readiness) set()   { r.ready.Store(true) }
func (r *readiness) unset() { r.ready.Store(false) }

func (r *readiness) check() error {
	if !r.ready.Load() {
		return errors.New("server is starting or stopping")
	}
	return nil
}
