package chaos

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// replaceTimeout is the timeout for the ensemble to notice that a member is lost.
const replaceTimeout = 30 * time.Second

// Replace deletes a random member with its data and adds an empty one in its place, with
// the commands that operators use. The new member is killed interrupts times while it
// copies data, before it may finish.
func (g *Ensemble) Replace(name string, hold time.Duration, interrupts int) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		m := g.RandomMember()[0]
		m.Kill()
		return func(ctx context.Context) error { return g.replace(ctx, m, interrupts) }, nil
	}}
}

func (g *Ensemble) replace(ctx context.Context, m *Member, interrupts int) error {
	if err := g.empty(ctx, m); err != nil {
		return err
	}
	for i := range interrupts {
		if err := m.startBriefly(ctx, time.Duration(i+1)*1500*time.Millisecond); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

// empty replaces a stopped member by an empty one, with the commands that operators use.
func (g *Ensemble) empty(ctx context.Context, m *Member) error {
	dir := filepath.Join(g.o.Dir, "group")
	began := time.Now()
	for {
		// The command is rejected while the lost member still has its lease.
		err := g.commandAt(ctx, g.other(m), "ensemble", "replace", m.Name, "--group", dir)
		if err == nil {
			break
		}
		if time.Since(began) > replaceTimeout || !pause(ctx, 500*time.Millisecond) {
			return err
		}
	}
	data := m.options.DataDir
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	bundle := filepath.Join(dir, m.Name+"-new.bundle")
	return g.command(ctx, "ensemble", "join", bundle, "--data-dir", data, "--config", g.configuration(m.Name))
}

// startBriefly starts the process and kills it, at the latest after the given time.
func (m *Member) startBriefly(ctx context.Context, after time.Duration) error {
	m.mu.Lock()
	ready := m.options.ReadyTimeout
	m.options.ReadyTimeout = after
	m.mu.Unlock()
	err := m.Start(ctx) // kills the process if it is not ready in time
	if err == nil {
		m.Kill()
	}
	m.mu.Lock()
	m.options.ReadyTimeout = ready
	m.mu.Unlock()
	return ctx.Err()
}

// commandAt runs freshet against a member with the administrator's token.
func (g *Ensemble) commandAt(ctx context.Context, m *Member, args ...string) error {
	return g.commandWith(ctx,
		[]string{"FRESHET_SERVER=" + m.URL, "FRESHET_TOKEN_FILE=" + filepath.Join(m.options.DataDir, "admin.token")},
		args...)
}
