package chaos

import (
	"context"
	"net"
	"time"

	"freshet/test/cluster/proxy"
)

type proxySource = func(net.Conn) string

// Isolate cuts a random member off from the others in both directions, for some of the
// services. Clients still reach it.
func (g *Group) Isolate(name string, hold time.Duration, services ...string) Fault {
	return g.onLinks(name, hold, services, proxy.Cut, proxy.Cut)
}

// Deafen is a one-way partition: everything that the others send to a random member is
// lost, on connections that either side opened.
func (g *Group) Deafen(name string, hold time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{Forth: true}, proxy.State{Back: true})
}

// Mute is a one-way partition: everything that a random member sends to the others is lost.
func (g *Group) Mute(name string, hold time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{Back: true}, proxy.State{Forth: true})
}

// Slow delays all traffic between a random member and the others.
func (g *Group) Slow(name string, hold, delay time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{Delay: delay}, proxy.State{Delay: delay})
}

// onLinks returns a fault of the links of one random member.
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

// Slice suspends a random member for nine tenths of the time, as on a very slow machine.
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

// Faults returns all faults of an ensemble with proxies, in the order of a short run. The
// lease of a member lasts 5 s: after a longer fault it loses its shards.
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
		g.Mute("one with outbound blocked", 10*s),
		g.Deafen("one with inbound blocked", 10*s),
		g.Slow("slow links of one", 8*s, 40*time.Millisecond),
		g.Slice("one very slow", 8*s),
		g.Busy("slow disk", 6*s),
		g.MoveLeaders("leaders moved", 6*s),
		g.PauseAndKill("one paused and another killed", 8*s),
		Pause("SIGSTOP of all", 8*s, g.All),
		Kill("kill -9 of all", s, g.All),
		Stop("SIGTERM of all", s, g.All),
		g.Replace("one replaced", 2*s, 0),
		g.Replace("one replaced and interrupted", 2*s, 2),
	}
}
