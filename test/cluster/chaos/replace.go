package chaos

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// replacePatience bounds how long the group takes to see that a member is gone.
const replacePatience = 30 * time.Second

// Replace loses a member with its data, and puts an empty one in its place, as
// somebody would who runs the group. The new one is killed while it fetches its
// copies, as often as interrupts says, before it may finish.
func (g *Group) Replace(name string, hold time.Duration, interrupts int) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		m := g.One()[0]
		m.Kill()
		return func(ctx context.Context) error { return g.replace(ctx, m, interrupts) }, nil
	}}
}

func (g *Group) replace(ctx context.Context, m *Member, interrupts int) error {
	other := g.Members[0]
	if other == m {
		other = g.Members[1]
	}
	dir := filepath.Join(g.o.Dir, "group")
	asked := time.Now()
	for {
		// It is refused as long as the lost member has its lease.
		err := g.commandAt(ctx, other, "cluster", "replace", m.Name, "--group", dir)
		if err == nil {
			break
		}
		if time.Since(asked) > replacePatience || !pause(ctx, 500*time.Millisecond) {
			return err
		}
	}
	data := m.options.DataDir
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	bundle := filepath.Join(dir, m.Name+"-new.bundle")
	if err := g.command(ctx, "cluster", "join", bundle, "--data-dir", data, "--config",
		g.configuration(m.Name)); err != nil {
		return err
	}
	for i := range interrupts {
		if err := m.startBriefly(ctx, time.Duration(i+1)*1500*time.Millisecond); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

// startBriefly starts the process and kills it after a while, unless it is ready
// before.
func (m *Member) startBriefly(ctx context.Context, after time.Duration) error {
	m.mu.Lock()
	ready := m.options.Ready
	m.options.Ready = after
	m.mu.Unlock()
	err := m.Start(ctx) // it is killed when it was not ready in time
	if err == nil {
		m.Kill()
	}
	m.mu.Lock()
	m.options.Ready = ready
	m.mu.Unlock()
	return ctx.Err()
}

// commandAt runs freshet against a member, as its administrator.
func (g *Group) commandAt(ctx context.Context, m *Member, args ...string) error {
	return g.commandWith(ctx,
		[]string{"FRESHET_SERVER=" + m.URL, "FRESHET_TOKEN_FILE=" + filepath.Join(m.options.DataDir, "admin.token")},
		args...)
}
