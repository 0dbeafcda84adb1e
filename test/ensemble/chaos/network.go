package chaos

import (
	"context"
	"net"
	"time"

	"freshet/test/ensemble/proxy"
)

type proxySource = func(net.Conn) string

// Isolate cuts a random member off from the others in both directions, for some of the
// services. Clients still reach it.
func (g *Ensemble) Isolate(name string, hold time.Duration, services ...string) Fault {
	return g.onLinks(name, hold, services, proxy.Cut, proxy.Cut)
}

// BlockInbound is a one-way partition: everything that the others send to a random member is
// lost, on connections that either side opened.
func (g *Ensemble) BlockInbound(name string, hold time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{BlockForward: true}, proxy.State{BlockBackward: true})
}

// BlockOutbound is a one-way partition: everything that a random member sends to the others is lost.
func (g *Ensemble) BlockOutbound(name string, hold time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{BlockBackward: true}, proxy.State{BlockForward: true})
}

// SlowLinks delays all traffic between a random member and the others.
func (g *Ensemble) SlowLinks(name string, hold, delay time.Duration) Fault {
	return g.onLinks(name, hold, services, proxy.State{Delay: delay}, proxy.State{Delay: delay})
}

// onLinks returns a fault of the links of one random member.
func (g *Ensemble) onLinks(name string, hold time.Duration, services []string, in, out proxy.State) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		m := g.RandomMember()[0]
		g.setLinks(m, services, in, out)
		return func(context.Context) error {
			g.setLinks(m, services, proxy.State{}, proxy.State{})
			return nil
		}, nil
	}}
}

// Throttle suspends a random member for nine tenths of the time, as on a very slow machine.
func (g *Ensemble) Throttle(name string, hold time.Duration) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(ctx context.Context) (func(context.Context) error, error) {
		m := g.RandomMember()[0]
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
func (g *Ensemble) Faults() []Fault {
	const s = time.Second
	return []Fault{
		Kill("kill -9 of one", 2*s, g.RandomMember),
		Stop("SIGTERM of one", s, g.RandomMember),
		Pause("SIGSTOP of one", 12*s, g.RandomMember),
		g.Isolate("one cut off", 12*s, services...),
		g.Isolate("one cut off from etcd", 10*s, store),
		g.Isolate("one cut off from logs", 10*s, logs),
		g.Isolate("one cut off from calls", 6*s, calls),
		g.BlockOutbound("one with outbound blocked", 10*s),
		g.BlockInbound("one with inbound blocked", 10*s),
		g.SlowLinks("slow links of one", 8*s, 40*time.Millisecond),
		g.Throttle("one very slow", 8*s),
		g.SlowDisk("slow disk", 6*s),
		g.MoveLeaders("leaders moved", 6*s),
		g.PauseAndKill("one paused and another killed", 8*s),
		Pause("SIGSTOP of all", 8*s, g.All),
		Kill("kill -9 of all", s, g.All),
		Stop("SIGTERM of all", s, g.All),
		g.Replace("one replaced", 2*s, 0),
		g.Replace("one replaced and interrupted", 2*s, 2),
	}
}
