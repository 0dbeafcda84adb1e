package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// floor is a set of packages with the rules for their imports.
type floor struct {
	// packages are the packages of the floor; a trailing /... includes the folders below.
	packages []string
	// allowed are the packages of this module that they may import directly. Packages of
	// the same row may always import each other.
	allowed []string
	// forbidden are packages that they must not import directly or indirectly. A trailing
	// /... includes everything below; "*" is everything except the standard library and
	// the floor itself.
	forbidden []string
}

// Libraries and floors that several rows exclude.
var (
	kube      = []string{"k8s.io/..."}
	apiserver = []string{"k8s.io/apiserver/..."}
	pebble    = []string{"github.com/cockroachdb/pebble/..."}
	nats      = []string{"github.com/nats-io/..."}
	cobra     = []string{"github.com/spf13/cobra"}
	web       = []string{"freshet/internal/base/web"}
	// apis are the surfaces without the packages that they share.
	apis = []string{
		"freshet/internal/surfaces/adminapi/...", "freshet/internal/surfaces/auditapi/...",
		"freshet/internal/surfaces/kafkaapi/...", "freshet/internal/surfaces/messageapi/...",
		"freshet/internal/surfaces/registryapi/...", "freshet/internal/surfaces/signinapi/...",
		"freshet/internal/surfaces/systemapi/...", "freshet/internal/surfaces/tokenapi/...",
	}
	domains = []string{"freshet/internal/broker/...", "freshet/internal/registry/...", "freshet/internal/identity/..."}
)

// floors lists the tree from the bottom up. The most specific row applies. A package
// that no row matches fails the test.
var floors = []floor{
	// Public packages: they import nothing of internal/.
	{[]string{"api/..."}, nil, concat(apiserver, pebble, nats, cobra)},
	{
		[]string{"client/..."},
		nil,
		concat(kube, pebble, nats, cobra, []string{"freshet/internal/...", "freshet/api/..."}),
	},

	// Static files for browsers, and the Markdown pages that the root package embeds.
	{[]string{"console/..."}, []string{"internal/base/web"}, concat(kube, pebble, nats, cobra)},
	{[]string{"freshet"}, nil, []string{"*"}},
	// The Helm chart, embedded.
	{[]string{"deploy/helm"}, nil, []string{"*"}},

	// Leaves.
	{[]string{"internal/base/..."}, nil, []string{"*"}},
	{[]string{"internal/ops/..."}, []string{"internal/base/..."}, concat(apiserver, pebble, nats, cobra)},
	{[]string{"internal/config"}, []string{"internal/base/..."}, concat(kube, pebble, nats, cobra)},
	// The interface between control plane and data plane.
	{[]string{"internal/dataplane/provision"}, nil, []string{"*"}},

	// Storage, on one server and in an ensemble.
	{[]string{"internal/storage/..."}, []string{"internal/base/..."}, concat(kube, nats, cobra, web)},
	{
		[]string{"internal/ensemble/..."},
		[]string{"internal/base/...", "internal/storage/..."},
		concat(kube, cobra, web, domains),
	},

	// Domains.
	{
		[]string{"internal/broker/..."},
		[]string{
			"internal/base/...", "internal/identity/access", "internal/ops/quota",
			"internal/registry/avro", // checks messages against a topic's own Avro schema
			"internal/storage/engine", "internal/storage/statemachine",
		},
		concat(kube, pebble, nats, cobra, web),
	},
	{
		[]string{"internal/registry/..."},
		[]string{
			"client/schemas/builtin", "internal/base/...", "internal/identity/access", "internal/ops/quota",
			"internal/storage/engine", "internal/storage/statemachine",
		},
		concat(kube, pebble, nats, cobra, web),
	},
	{
		[]string{"internal/identity/..."},
		[]string{"api/...", "internal/base/..."},
		concat(apiserver, pebble, nats, cobra, web),
	},

	// Running clusters. This is the only floor that opens engines.
	{
		[]string{"internal/dataplane/..."},
		[]string{
			"api/...", "internal/base/...", "internal/broker/...", "internal/ensemble/...", "internal/identity/...",
			"internal/ops/quota", "internal/registry/...", "internal/storage/...",
		},
		concat(apiserver, cobra, web),
	},

	// The steps that every surface and the API server run for a request.
	{
		[]string{"internal/surfaces/pipeline/..."},
		[]string{"internal/base/...", "internal/identity/...", "internal/ops/audit", "internal/ops/quota"},
		concat(apiserver, pebble, nats, cobra, apis),
	},

	// The resource API. It reaches the data plane only through the interfaces in provision.
	{
		[]string{"internal/controlplane/..."},
		[]string{
			"api/...", "internal/base/...", "internal/dataplane/provision", "internal/identity/...",
			"internal/ops/audit", "internal/ops/quota", "internal/surfaces/pipeline",
		},
		concat(pebble, nats, apis,
			[]string{"freshet/internal/broker/...", "freshet/internal/registry/...", "freshet/internal/ensemble/..."}),
	},
	{ // the loop that all reconcilers share depends on no kind and no server
		[]string{"internal/controlplane/reconcile/...", "internal/controlplane/pools"},
		[]string{"api/..."},
		concat(apiserver, pebble, nats, cobra, apis),
	},

	// Surfaces. None imports another.
	surface("messageapi/...", "internal/broker/..."),
	surface("adminapi/...", "internal/broker/..."),
	surface("kafkaapi/...", "internal/broker/...", "internal/storage/engine", "internal/storage/statemachine"),
	surface("registryapi/...", "internal/registry/...", "internal/storage/engine"),
	surface("tokenapi/..."),
	surface("signinapi/..."),
	surface("auditapi/..."),
	surface("systemapi/..."),
	surface("brokerhttp/...", "internal/broker/...", "internal/storage/engine"), // shared by messageapi and adminapi
	surface("clusterpath"), // finds the cluster of a request
	surface("throttle"),    // shared by tokenapi and signinapi
	surface("refusal"),     // serves requests that reach no surface
	surface("docsite", "freshet"),

	// Composition.
	{
		[]string{"internal/server/..."},
		[]string{"api/...", "internal/...", "console/..."},
		[]string{"freshet/internal/cli/..."},
	},
	{
		[]string{"internal/cli/..."},
		[]string{
			"api/...", "client/...", "deploy/helm", "internal/base/...", "internal/config", "internal/ensemble/bundle",
			"internal/identity",
			"internal/ops/adminsocket", "internal/ops/backup", "internal/ops/disk", "internal/ops/kubeconfig",
		},
		concat(apiserver, pebble, nats, []string{"freshet/internal/server/..."}),
	},
	{
		[]string{"cmd/freshet"},
		[]string{
			"internal/cli", "internal/config", "internal/ops/backup", "internal/ops/datadir", "internal/server/...",
			"internal/surfaces/docsite",
		},
		nil,
	},

	// Not part of the product: test suites, fixtures and benchmarks may start any part.
	{
		[]string{
			"internal/identity/signin/signintest", "internal/controlplane/kinds/kindstest",
			"internal/surfaces/brokerhttp/brokertest",
			"test/...", "bench/...",
		},
		[]string{"api/...", "client/...", "internal/...", "test/...", "bench/..."},
		nil,
	},
	{[]string{"internal/archtest", "hack/..."}, nil, nil},
}

func concat(lists ...[]string) []string { return slices.Concat(lists...) }

// surface returns the row of a surface. It may import its own domain and the packages
// that every surface may import.
func surface(name string, domain ...string) floor {
	return floor{
		[]string{"internal/surfaces/" + name},
		append(domain,
			"api/openapi", "internal/base/...", "internal/identity/...", "internal/ops/audit", "internal/ops/quota",
			"internal/surfaces/brokerhttp", "internal/surfaces/pipeline", "internal/surfaces/throttle"),
		concat(apiserver, pebble, nats, cobra),
	}
}

// exclusive lists libraries that only some packages may import directly.
var exclusive = []struct {
	library string
	holders []string
}{
	{"net/http", []string{
		"api/generated/...", "bench/...", "client/...", "console/...", "test/...",
		"internal/base/web", "internal/cli/...", "internal/controlplane/...", "internal/dataplane/ensemble",
		"internal/ensemble/...",
		"internal/identity/openid", "internal/ops/listen", "internal/ops/telemetry", "internal/server/...",
		"internal/surfaces/...",
	}},
	{"github.com/spf13/cobra", []string{"internal/cli/...", "cmd/..."}},
	{"k8s.io/apiserver/...", []string{"internal/controlplane/...", "internal/server/...", "test/..."}},
	{"github.com/nats-io/...", []string{"internal/ensemble/...", "internal/dataplane/ensemble", "test/..."}},
	{"github.com/twmb/franz-go/pkg/kmsg", []string{"internal/surfaces/kafkaapi/...", "test/..."}},
	{"github.com/cockroachdb/pebble/...", []string{"internal/storage/pebble/...", "bench/...", "test/..."}},
	// Expressions of clients: each of the holders bounds their cost.
	{"github.com/google/cel-go/...", []string{"internal/broker/filter", "internal/identity/access"}},
}

func TestFloors(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, p := range all {
		if !p.inModule() {
			continue
		}
		r := floorOf(p.modulePath())
		if r == nil {
			t.Errorf("package %s is on no floor; add it to a row of floors", p.ImportPath)
			continue
		}
		for _, problem := range check(p, r, all) {
			t.Error(problem)
		}
	}
}

func check(p *pkg, r *floor, all map[string]*pkg) []string {
	var problems []string
	for _, imported := range p.Imports {
		target := all[imported]
		if target != nil && target.inModule() && !matchesAny(r.packages, target.modulePath()) &&
			!matchesAny(r.allowed, target.modulePath()) {
			problems = append(problems,
				fmt.Sprintf("%s imports %s, but its floor does not allow that", p.ImportPath, imported))
		}
		for _, e := range exclusive {
			if matches(e.library, imported) && !matchesAny(e.holders, p.modulePath()) {
				problems = append(problems,
					fmt.Sprintf("%s imports %s, but only %v may", p.ImportPath, imported, e.holders))
			}
		}
	}
	reported := map[int]bool{} // one example for each pattern of never is enough
	for _, dep := range p.Deps {
		target := all[dep]
		if target == nil || dep == p.ImportPath {
			continue
		}
		if found := slices.IndexFunc(r.forbidden, func(pattern string) bool {
			if pattern == "*" {
				return !target.Standard && !matchesAny(r.packages, target.modulePath())
			}
			return matches(pattern, dep)
		}); found >= 0 && !reported[found] {
			reported[found] = true
			problems = append(problems, fmt.Sprintf("%s must not depend on %s, but it does: %s",
				p.ImportPath, r.forbidden[found], strings.Join(importChain(p.ImportPath, dep, all), " -> ")))
		}
	}
	return problems
}

// floorOf returns the most specific row that matches the package, or nil.
func floorOf(short string) *floor {
	var best *floor
	length := -1
	for i := range floors {
		for _, pattern := range floors[i].packages {
			if pattern == short {
				return &floors[i]
			}
			if matches(pattern, short) && len(pattern) > length {
				best, length = &floors[i], len(pattern)
			}
		}
	}
	return best
}

func matches(pattern, path string) bool {
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == root || strings.HasPrefix(path, root+"/")
	}
	return path == pattern
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, path) })
}

// importChain returns the shortest chain of imports from one package to another.
func importChain(from, to string, all map[string]*pkg) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to {
			var chain []string
			for ; at != ""; at = before[at] {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		p := all[at]
		if p == nil {
			continue
		}
		for _, next := range p.Imports {
			if _, seen := before[next]; !seen {
				before[next] = at
				queue = append(queue, next)
			}
		}
	}
	return []string{from, "…", to}
}

// TestCheckReportsViolations proves that TestFloors can fail.
func TestCheckReportsViolations(t *testing.T) {
	t.Parallel()
	const storage, surface = "freshet/internal/storage/engine", "freshet/internal/surfaces/pipeline"
	all := map[string]*pkg{
		"k8s.io/api": {ImportPath: "k8s.io/api"},
		surface:      {ImportPath: surface, Imports: []string{"k8s.io/api"}, Deps: []string{"k8s.io/api"}},
		storage: {
			ImportPath: storage,
			Imports:    []string{surface, "github.com/spf13/cobra"},
			Deps:       []string{surface, "k8s.io/api"},
		},
	}
	problems := check(all[storage], floorOf("internal/storage/engine"), all)
	for _, want := range []string{
		"imports " + surface, "imports github.com/spf13/cobra",
		"-> " + surface + " -> k8s.io/api",
	} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("got problems %q, want one that contains %q", problems, want)
		}
	}
	if f := floorOf("internal/controlplane/reconcile/owners"); f == nil ||
		f.packages[0] != "internal/controlplane/reconcile/..." {
		t.Errorf("most specific row: %+v", f)
	}
	if floorOf("internal/newcomer") != nil {
		t.Error("floorOf returns a floor for a package that no row matches")
	}
}
