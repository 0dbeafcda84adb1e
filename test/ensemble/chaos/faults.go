package chaos

import (
	"context"
	"errors"
	"time"
)

// stopTimeout bounds a graceful shutdown.
const stopTimeout = 30 * time.Second

// Kill kills members as a crash does; healing starts them again.
func Kill(name string, hold time.Duration, members func() []*Member) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		chosen := members()
		for _, m := range chosen {
			m.Kill()
		}
		return func(ctx context.Context) error { return startAll(ctx, chosen) }, nil
	}}
}

// Stop shuts members down gracefully; healing starts them again.
func Stop(name string, hold time.Duration, members func() []*Member) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		chosen := members()
		err := each(chosen, func(m *Member) error { return m.Stop(stopTimeout) })
		return func(ctx context.Context) error { return startAll(ctx, chosen) }, err
	}}
}

// Upgrade stops a member gracefully and starts another binary on its data directory.
func Upgrade(m *Member, binary string) Fault {
	return Fault{Name: "upgrade of " + m.Name, Inject: func(context.Context) (func(context.Context) error, error) {
		err := m.Stop(stopTimeout)
		m.setBinary(binary)
		return m.Start, err
	}}
}

// Pause suspends members with SIGSTOP; healing resumes them.
func Pause(name string, hold time.Duration, members func() []*Member) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		chosen := members()
		err := each(chosen, (*Member).Pause)
		return func(context.Context) error { return each(chosen, (*Member).Resume) }, err
	}}
}

// PauseAndKill suspends one member and kills another. The suspended one resumes first,
// without knowing what it has missed.
func (g *Ensemble) PauseAndKill(name string, hold time.Duration) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		silent, dead := g.randomPair()
		err := silent.Pause()
		dead.Kill()
		return func(ctx context.Context) error {
			return errors.Join(silent.Resume(), dead.Start(ctx))
		}, err
	}}
}

func startAll(ctx context.Context, members []*Member) error {
	return each(members, func(m *Member) error { return m.Start(ctx) })
}

// each runs do for all members concurrently and joins the errors.
func each(members []*Member, do func(*Member) error) error {
	failed := make(chan error, len(members))
	for _, m := range members {
		go func() { failed <- do(m) }()
	}
	var err error
	for range members {
		err = errors.Join(err, <-failed)
	}
	return err
}
