package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"freshet/test/cluster/load"
	"freshet/test/cluster/proxy"
	"freshet/test/freeport"
	"freshet/test/testserver"
)

// The three ways in which members talk to each other.
const (
	calls = "calls" // the internal listener
	store = "etcd"
	logs  = "log"
)

var services = []string{calls, store, logs}

// GroupOptions say how a group is made.
type GroupOptions struct {
	// Binary is freshet, Dir where everything goes.
	Binary, Dir string
	// Size is the number of members; 3 when zero.
	Size int
	// Proxies has members talk through links that can be cut.
	Proxies bool
	// From is the data directory of a server whose data the first member begins with,
	// once it was migrated there.
	From string
	// Data is where a member's data directory is to be, in place of one under Dir.
	Data map[string]string
}

// Group is the processes of a group.
type Group struct {
	Members []*Member
	o       GroupOptions
	links   map[string]map[string]*proxy.Link // by service and target

	mu     sync.Mutex
	chance *rand.Rand
}

// NewGroup makes the bundles and configurations of a group by the commands that
// people use for it. No member runs yet.
func NewGroup(ctx context.Context, o GroupOptions, seed uint64) (*Group, error) {
	if o.Size == 0 {
		o.Size = 3
	}
	g := &Group{o: o, links: map[string]map[string]*proxy.Link{}, chance: rand.New(rand.NewPCG(seed, 2))}
	processes := proxy.Processes{}
	init := []string{"cluster", "init", "--output", filepath.Join(o.Dir, "group")}
	var named []string
	for i := range o.Size {
		name := string(rune('a' + i))
		listen, err := freeport.Addresses(ctx, len(services))
		if err != nil {
			return nil, err
		}
		reached := listen
		options := testserver.Options{Stream: true, DataDir: filepath.Join(o.Dir, name), Ready: 90 * time.Second}
		if data := o.Data[name]; data != "" {
			options.DataDir = data
		}
		options.Args = []string{"--config", g.configuration(name)}
		if o.Proxies {
			if reached, err = g.proxies(ctx, name, listen, processes.Of); err != nil {
				return nil, errors.Join(err, g.Close())
			}
			options.Env = []string{
				"FRESHET_MEMBERS_LISTEN_INTERNAL=" + listen[0], "FRESHET_MEMBERS_LISTEN_ETCD=" + listen[1],
				"FRESHET_MEMBERS_LISTEN_LOG=" + listen[2],
			}
		}
		m, err := newMember(ctx, name, o.Binary, o.Dir, options)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		processes[name] = m.PID
		g.Members = append(g.Members, m)
		named = append(named, name+"="+strings.Join(reached, ","))
	}
	if o.From != "" {
		init = append(init, "--from", o.From)
	}
	init = append(append(init, "--base-url", g.Members[0].URL), named...)
	if err := g.command(ctx, init...); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	for _, m := range g.Members {
		bundle := filepath.Join(o.Dir, "group", m.Name+".bundle")
		if err := g.command(ctx, "cluster", "join", bundle, "--data-dir", m.options.DataDir, "--config",
			g.configuration(m.Name)); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (g *Group) configuration(member string) string { return filepath.Join(g.o.Dir, member+".yaml") }

// command runs freshet to its end.
func (g *Group) command(ctx context.Context, args ...string) error {
	return g.commandWith(ctx, nil, args...)
}

func (g *Group) commandWith(ctx context.Context, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, g.o.Binary, args...)
	cmd.Env = append(append(os.Environ(), "HOME="+g.o.Dir), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("freshet %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// proxies opens the links to a member, and returns where the others reach it.
func (g *Group) proxies(ctx context.Context, name string, listen []string, source proxySource) ([]string, error) {
	reached, err := freeport.Addresses(ctx, len(services))
	if err != nil {
		return nil, err
	}
	for i, service := range services {
		link, err := proxy.Listen(ctx, reached[i], listen[i], source)
		if err != nil {
			return nil, err
		}
		if g.links[service] == nil {
			g.links[service] = map[string]*proxy.Link{}
		}
		g.links[service][name] = link
	}
	return reached, nil
}

// Start starts all members that do not run, at once: none is ready before a
// majority is. It returns when each of them serves messages.
func (g *Group) Start(ctx context.Context) error {
	if err := startAll(ctx, g.Members); err != nil {
		return err
	}
	return each(g.Members, func(m *Member) error { return m.serves(ctx) })
}

// Close kills all members and ends the proxies.
func (g *Group) Close() error {
	for _, m := range g.Members {
		_ = m.Resume() // a paused process cannot be waited for
		m.Kill()
	}
	var err error
	for _, service := range g.links {
		for _, link := range service {
			err = errors.Join(err, link.Close())
		}
	}
	return err
}

// Clients are the members as clients know them.
func (g *Group) Clients() []load.Member {
	list := make([]load.Member, len(g.Members))
	for i, m := range g.Members {
		list[i] = m.Member
	}
	return list
}

// One is a member by chance.
func (g *Group) One() []*Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []*Member{g.Members[g.chance.IntN(len(g.Members))]}
}

// two are members by chance, unlike each other.
func (g *Group) two() (a, b *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := g.chance.Perm(len(g.Members))
	return g.Members[order[0]], g.Members[order[1]]
}

// All are all members.
func (g *Group) All() []*Member { return g.Members }

// set gives the links between a member and the others a state: those of the services,
// towards the member as in, from it as out.
func (g *Group) set(m *Member, services []string, in, out proxy.State) {
	for _, service := range services {
		for target, link := range g.links[service] {
			if target == m.Name {
				link.Set("", in)
				for _, other := range g.Members {
					link.Set(other.Name, in)
				}
			} else {
				link.Set(m.Name, out)
			}
		}
	}
}
