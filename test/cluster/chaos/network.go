package chaos

import (
	"context"
	"net"
	"time"

	"freshet/test/cluster/proxy"
)

type proxySource = func(net.Conn) string

// Isolate cuts a member off from the others in both directions, on some of the ways
// that they talk. Clients still reach it.
func (g *Group) Isolate(name string, hold time.Duration, services ...string) Fault {
	return g.onLinks(name, hold, services, proxy.Cut, proxy.Cut)
}

// Deafen lets a member be heard by the others and hear none of them: whatever they
// send is lost, on connections that they or it have made.
func (g *Group) Deafen(name string, hold time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{Forth: true}, proxy.State{Back: true})
}

// Mute lets a member hear the others and be heard by none of them.
func (g *Group) Mute(name string, hold time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{Back: true}, proxy.State{Forth: true})
}

// Slow delays everything between a member and the others.
func (g *Group) Slow(name string, hold, delay time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{Delay: delay}, proxy.State{Delay: delay})
}

// onLinks is a fault of the links of one member by chance.
func (g *Group) onLinks(name string, hold time.Duration, services []string, in, out proxy.State) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		m := g.One()[0]
		g.set(m, services, in, out)
		return func(context.Context) error {
			g.set(m, services, proxy.State{}, proxy.State{})
			return nil
		}, nil
	}}
}

// Slice has a member run for a tenth of the time: a machine that is far too slow.
func (g *Group) Slice(name string, hold time.Duration) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(ctx context.Context) (func(context.Context) error, error) {
		m := g.One()[0]
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			var err error
			for err == nil && ctx.Err() == nil {
				if err = m.Pause(); err != nil {
					break
				}
				pause(ctx, 450*time.Millisecond)
				if err = m.Resume(); err != nil {
					break
				}
				pause(ctx, 50*time.Millisecond)
			}
			ended <- err
		}()
		return func(context.Context) error {
			stop()
			return <-ended
		}, nil
	}}
}
