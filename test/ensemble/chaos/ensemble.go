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

	"freshet/test/ensemble/load"
	"freshet/test/ensemble/proxy"
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

// EnsembleOptions configures an ensemble.
type EnsembleOptions struct {
	// Binary is the freshet binary, Dir the folder for all files.
	Binary, Dir string
	// Size is the number of members; zero means 3.
	Size int
	// Proxies connects the members through links that can be cut.
	Proxies bool
	// From is the data directory of a single server. Its data must be migrated to the
	// first member.
	From string
	// ReadyTimeout is the timeout for a member to become ready; zero means 90 s.
	ReadyTimeout time.Duration
	// Data maps members to data directories that replace the ones under Dir.
	Data map[string]string
}

// Ensemble is an ensemble of server processes. mu protects chance.
type Ensemble struct {
	Members []*Member
	o       EnsembleOptions
	links   map[string]map[string]*proxy.Link // by service and target member

	mu     sync.Mutex
	random *rand.Rand
}

// NewEnsemble creates the bundles and configurations of an ensemble with the commands that
// operators use. It starts no member.
func NewEnsemble(ctx context.Context, o EnsembleOptions, seed uint64) (*Ensemble, error) {
	if o.Size == 0 {
		o.Size = 3
	}
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = 90 * time.Second
	}
	g := &Ensemble{o: o, links: map[string]map[string]*proxy.Link{}, random: rand.New(rand.NewPCG(seed, 2))}
	processes := proxy.Processes{}
	init := []string{"ensemble", "init", "--out", filepath.Join(o.Dir, "group")}
	var named []string
	for i := range o.Size {
		name := string(rune('a' + i))
		listen, err := freeport.Addresses(ctx, len(services))
		if err != nil {
			return nil, err
		}
		advertised := listen
		options := testserver.Options{Kafka: true, DataDir: filepath.Join(o.Dir, name), ReadyTimeout: o.ReadyTimeout}
		if data := o.Data[name]; data != "" {
			options.DataDir = data
		}
		options.Args = []string{"--config", g.configuration(name)}
		if o.Proxies {
			if advertised, err = g.proxies(ctx, name, listen, processes.Of); err != nil {
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
		named = append(named, name+"="+strings.Join(advertised, ","))
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

func (g *Ensemble) configuration(member string) string { return filepath.Join(g.o.Dir, member+".yaml") }

// command runs freshet and waits for its exit.
func (g *Ensemble) command(ctx context.Context, args ...string) error {
	return g.commandWith(ctx, nil, args...)
}

func (g *Ensemble) commandWith(ctx context.Context, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, g.o.Binary, args...)
	cmd.Env = append(append(os.Environ(), "HOME="+g.o.Dir), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("freshet %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// proxies opens the links to a member and returns the addresses at which the others reach it.
func (g *Ensemble) proxies(ctx context.Context, name string, listen []string, source proxySource) ([]string, error) {
	advertised, err := freeport.Addresses(ctx, len(services))
	if err != nil {
		return nil, err
	}
	for i, service := range services {
		link, err := proxy.Listen(ctx, advertised[i], listen[i], source)
		if err != nil {
			return nil, err
		}
		if g.links[service] == nil {
			g.links[service] = map[string]*proxy.Link{}
		}
		g.links[service][name] = link
	}
	return advertised, nil
}

// Start starts all members that do not run, concurrently: none becomes ready before a
// majority runs. It returns when each of them serves messages.
func (g *Ensemble) Start(ctx context.Context) error {
	if err := startAll(ctx, g.Members); err != nil {
		return err
	}
	return each(g.Members, func(m *Member) error { return m.awaitServing(ctx) })
}

// Close kills all members and closes the proxies.
func (g *Ensemble) Close() error {
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
func (g *Ensemble) Clients() []load.Member {
	list := make([]load.Member, len(g.Members))
	for i, m := range g.Members {
		list[i] = m.Member
	}
	return list
}

// RandomMember returns a random member.
func (g *Ensemble) RandomMember() []*Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []*Member{g.Members[g.random.IntN(len(g.Members))]}
}

// randomPair returns two different random members.
func (g *Ensemble) randomPair() (a, b *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := g.random.Perm(len(g.Members))
	return g.Members[order[0]], g.Members[order[1]]
}

// All returns all members.
func (g *Ensemble) All() []*Member { return g.Members }

// setLinks changes the links between a member and the others for the given services: links
// to the member get state in, links from it state out.
func (g *Ensemble) setLinks(m *Member, services []string, in, out proxy.State) {
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
