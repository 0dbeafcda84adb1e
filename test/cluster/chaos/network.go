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

// Faults are all that can be done to a group with proxies, in the order of a short
// run. The lease of a member is 5 s: what holds for longer costs it its shards.
func (g *Group) Faults() []Fault {
	const s = time.Second
	return []Fault{
		Kill("kill -9 of one", 2*s, g.One),
		Stop("SIGTERM of one", s, g.One),
		Pause("SIGSTOP of one", 12*s, g.One),
		g.Isolate("one cut off", 12*s, services...),
		g.Isolate("one cut off from etcd", 10*s, store),
		g.Isolate("one cut off from logs", 10*s, logs),
		g.Isolate("one cut off from calls", 6*s, calls),
		g.Mute("one is not heard", 10*s),
		g.Deafen("one hears nobody", 10*s),
		g.Slow("slow links of one", 8*s, 40*time.Millisecond),
		g.Slice("one far too slow", 8*s),
		g.Busy("slow disk", 6*s),
		g.MoveLeaders("leaders moved", 6*s),
		g.PauseAndKill("one silent, one killed", 8*s),
		Pause("SIGSTOP of all", 8*s, g.All),
		Kill("kill -9 of all", s, g.All),
		Stop("SIGTERM of all", s, g.All),
		g.Replace("one replaced", 2*s, 0),
		g.Replace("one replaced and interrupted", 2*s, 2),
	}
}
