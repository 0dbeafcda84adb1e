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

// The three listeners through which members talk to each other.
const (
	calls = "calls" // the internal listener
	store = "etcd"
	logs  = "log"
)

var services = []string{calls, store, logs}

// GroupOptions configures an ensemble.
type GroupOptions struct {
	// Binary is the freshet binary, Dir the folder for all files.
	Binary, Dir string
	// Size is the number of members; zero means 3.
	Size int
	// Proxies connects the members through links that can be cut.
	Proxies bool
	// From is the data directory of a single server. Its data must be migrated to the
	// first member.
	From string
	// Data maps members to data directories that replace the ones under Dir.
	Data map[string]string
}

// Group is an ensemble of server processes. mu protects chance.
type Group struct {
	Members []*Member
	o       GroupOptions
	links   map[string]map[string]*proxy.Link // by service and target member

	mu     sync.Mutex
	chance *rand.Rand
}

// NewGroup creates the bundles and configurations of an ensemble with the commands that
// operators use. It starts no member.
func NewGroup(ctx context.Context, o GroupOptions, seed uint64) (*Group, error) {
	if o.Size == 0 {
		o.Size = 3
	}
	g := &Group{o: o, links: map[string]map[string]*proxy.Link{}, chance: rand.New(rand.NewPCG(seed, 2))}
	processes := proxy.Processes{}
	init := []string{"ensemble", "init", "--output", filepath.Join(o.Dir, "group")}
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
		if err := g.command(ctx, "ensemble", "join", bundle, "--data-dir", m.options.DataDir, "--config",
			g.configuration(m.Name)); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (g *Group) configuration(member string) string { return filepath.Join(g.o.Dir, member+".yaml") }

// command runs freshet and waits for its exit.
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

// proxies opens the links to a member and returns the addresses at which the others reach it.
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

// Start starts all members that do not run, concurrently: none becomes ready before a
// majority runs. It returns when each of them serves messages.
func (g *Group) Start(ctx context.Context) error {
	if err := startAll(ctx, g.Members); err != nil {
		return err
	}
	return each(g.Members, func(m *Member) error { return m.serves(ctx) })
}

// Close kills all members and closes the proxies.
func (g *Group) Close() error {
	for _, m := range g.Members {
		_ = m.Resume() // waiting for a suspended process would hang
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

// Clients returns the members as addresses for clients.
func (g *Group) Clients() []load.Member {
	list := make([]load.Member, len(g.Members))
	for i, m := range g.Members {
		list[i] = m.Member
	}
	return list
}

// One returns a random member.
func (g *Group) One() []*Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []*Member{g.Members[g.chance.IntN(len(g.Members))]}
}

// two returns two different random members.
func (g *Group) two() (a, b *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := g.chance.Perm(len(g.Members))
	return g.Members[order[0]], g.Members[order[1]]
}

// All returns all members.
func (g *Group) All() []*Member { return g.Members }

// set changes the links between a member and the others for the given services: links
// to the member get state in, links from it state out.
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
