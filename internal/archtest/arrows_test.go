package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rule says what the packages it names may import.
type rule struct {
	// packages of our module; a trailing /... takes the folders below too.
	packages []string
	// ours are the packages of our module they may import directly.
	ours []string
	// never are packages they must not even reach through others; a trailing
	// /... takes everything below.
	never []string
}

// Kinds of libraries that rules speak of.
var (
	http      = []string{"net/http"}
	kube      = []string{"k8s.io/..."}
	apiserver = []string{"k8s.io/apiserver/..."}
	engines   = []string{"github.com/cockroachdb/pebble/...", "github.com/nats-io/..."}
	cobra     = []string{"github.com/spf13/cobra"}
	// commandLine is what the command line does not link but is handed.
	commandLine = []string{"k8s.io/apiserver/...", "github.com/cockroachdb/pebble/...", "freshet/internal/server/..."}
)

// surfaces speak HTTP for the domains; the resource API and its kinds stand
// beside them and know none.
var surfaces = []string{"freshet/internal/messageapi/...", "freshet/internal/adminapi/...", "freshet/internal/registryapi/...", "freshet/internal/tokenapi/...", "freshet/internal/auditapi/...", "freshet/internal/signinapi/...", "freshet/internal/systemapi/...", "freshet/internal/streamapi/..."}

// rules is the table of arrows. A package of ours that no rule names fails the
// test, so that a new one has to find its place.
var rules = []rule{
	{[]string{"api/..."}, []string{"api/..."}, join(apiserver, engines, cobra)},

	// Leaves.
	{[]string{"internal/errs", "internal/names", "internal/newest", "internal/dataplane/provision"}, nil, []string{"*"}},
	{[]string{"internal/version", "internal/lru", "internal/cleanclose"}, nil, []string{"*"}},
	{[]string{"internal/throttle"}, []string{"internal/lru"}, join(http, kube, engines, cobra)},

	// What others import: nothing of internal.
	{[]string{"client/schemas/builtin"}, nil, []string{"*"}},
	{[]string{"client/..."}, []string{"client/..."}, join(kube, engines, cobra, []string{"freshet/internal/...", "freshet/api/..."})},
	{[]string{"internal/records"}, nil, join(http, kube, engines, cobra)},
	{[]string{"internal/quota"}, []string{"internal/errs"}, join(http, kube, engines, cobra)},
	{[]string{"internal/audit"}, []string{"internal/errs"}, join(kube, engines, cobra)},
	{[]string{"internal/backup", "internal/control"}, []string{"internal/errs"}, join(http, kube, engines, cobra)},
	{[]string{"internal/web"}, []string{"internal/errs"}, join(kube, engines, cobra)},
	{[]string{"internal/kubeconfig"}, nil, join(http, kube, engines, cobra)},
	{[]string{"internal/workpool"}, []string{"internal/errs"}, join(http, kube, engines, cobra)},
	{[]string{"internal/config"}, []string{"internal/errs"}, join(http, kube, engines, cobra)},
	{[]string{"internal/telemetry"}, []string{"internal/version"}, join(apiserver, engines)},

	// The engine seam and what stands behind it.
	{[]string{"internal/engine"}, []string{"internal/errs", "internal/names"}, join(http, kube, engines, cobra)},
	{[]string{"internal/engine/journalcopy"}, []string{"internal/engine"}, join(http, kube, engines, cobra)},
	{[]string{"internal/engine/enginetest"}, []string{"internal/engine", "internal/errs", "internal/names"}, join(kube, engines, cobra)},
	{[]string{"internal/engine/pebble/..."}, []string{"internal/cleanclose", "internal/engine", "internal/engine/journalcopy", "internal/engine/pebble/...", "internal/errs", "internal/lru", "internal/names"}, join(kube, cobra, []string{"github.com/nats-io/..."})},
	{[]string{"internal/engine/jetstream/..."}, []string{"internal/engine", "internal/engine/jetstream/...", "internal/engine/journalcopy", "internal/errs", "internal/names"}, join(kube, cobra, []string{"github.com/cockroachdb/pebble/..."})},
	{[]string{"internal/engine/remote"}, []string{"internal/engine", "internal/errs"}, join(kube, engines, cobra)},
	{[]string{"internal/engine/sharded"}, []string{"internal/engine", "internal/engine/remote", "internal/errs"}, join(kube, engines, cobra)},
	{[]string{"internal/engine/replicated/..."}, []string{"internal/engine", "internal/engine/pebble", "internal/engine/replicated/...", "internal/errs"}, join(kube, cobra)},
	{[]string{"internal/natsserver"}, []string{"internal/errs"}, join(kube, cobra, []string{"github.com/cockroachdb/pebble/..."})},
	{[]string{"internal/natsserver/natstest"}, []string{"internal/natsserver"}, join(kube, cobra, []string{"github.com/cockroachdb/pebble/..."})},
	{[]string{"internal/groups"}, []string{"internal/engine", "internal/errs", "internal/replica"}, join(http, kube, engines, cobra)},
	{[]string{"internal/replica"}, []string{"internal/engine", "internal/errs"}, join(http, kube, engines, cobra)},

	// Domains: no HTTP, no engine implementation, no API machinery.
	{[]string{"internal/identity/..."}, []string{"api/...", "internal/identity/...", "internal/access", "internal/errs", "internal/names", "internal/newest"}, join(http, apiserver, engines, cobra)},
	{[]string{"internal/signin"}, []string{"internal/errs", "internal/identity", "internal/newest"}, join(http, kube, engines, cobra)},
	{[]string{"internal/signin/etcdstore"}, []string{"internal/errs", "internal/signin"}, join(kube, engines, cobra)},
	{[]string{"internal/signin/signintest"}, []string{"internal/identity/...", "internal/resources/etcd", "internal/signin/..."}, nil},
	{[]string{"internal/passkey"}, []string{"internal/errs", "internal/signin"}, join(kube, engines, cobra)},
	{[]string{"internal/passkey/passkeytest"}, nil, join(kube, engines, cobra)},
	{[]string{"internal/openid"}, []string{"internal/errs", "internal/identity"}, join(kube, engines, cobra)},
	{[]string{"internal/access/..."}, []string{"api/...", "internal/access/...", "internal/identity", "internal/errs", "internal/names", "internal/newest"}, join(apiserver, engines, cobra)},
	{[]string{"internal/schemas/jsontree"}, nil, []string{"*"}},
	{[]string{"internal/schemas/avro/...", "internal/schemas/jsonschema/...", "internal/schemas/protobuf/..."}, []string{"client/schemas/builtin", "internal/errs", "internal/names", "internal/schemas/jsontree"}, join(kube, engines, cobra)},
	{
		[]string{"internal/schemas"},
		[]string{"internal/access", "internal/engine", "internal/errs", "internal/lru", "internal/names", "internal/quota", "internal/replica", "internal/schemas/avro", "internal/schemas/jsonschema", "internal/schemas/protobuf", "internal/workpool"},
		join(kube, engines, cobra),
	},
	{
		[]string{"internal/messaging/..."},
		[]string{"internal/access", "internal/engine", "internal/errs", "internal/lru", "internal/messaging/...", "internal/names", "internal/quota", "internal/records", "internal/replica", "internal/schemas/avro", "internal/workpool"},
		join(kube, engines, cobra),
	},

	// Groups of servers: certificates, and who is there.
	{[]string{"internal/members/bundle"}, []string{"internal/errs"}, join(http, kube, engines, cobra)},
	{[]string{"internal/members"}, []string{"internal/errs", "internal/members/bundle"}, join(kube, engines, cobra)},

	// Running clusters: the one place that opens engines.
	{
		[]string{"internal/dataplane/..."},
		[]string{"api/...", "internal/access", "internal/dataplane/...", "internal/engine", "internal/engine/jetstream", "internal/engine/pebble", "internal/engine/remote", "internal/engine/replicated", "internal/engine/sharded", "internal/errs", "internal/groups", "internal/identity", "internal/messaging", "internal/names", "internal/quota", "internal/replica", "internal/schemas", "internal/workpool"},
		join(apiserver, cobra),
	},

	// Moving data between one server and a group.
	{
		[]string{"internal/migrate"},
		[]string{"api/...", "internal/config", "internal/dataplane", "internal/dataplane/group", "internal/engine", "internal/engine/pebble", "internal/engine/replicated", "internal/engine/sharded", "internal/errs", "internal/identity", "internal/members/bundle", "internal/resources/etcd"},
		join(apiserver, cobra),
	},

	// Surfaces.
	{[]string{"internal/surface"}, []string{"internal/access", "internal/audit", "internal/errs", "internal/identity", "internal/quota", "internal/web"}, join(apiserver, engines, cobra)},
	{[]string{"internal/brokerhttp"}, surface("internal/messaging", "internal/engine", "internal/groups"), join(apiserver, engines, cobra)},
	{[]string{"internal/brokerhttp/brokertest"}, []string{"api/...", "internal/..."}, apiserver},
	{[]string{"internal/messageapi/..."}, surface("internal/brokerhttp", "internal/messaging"), join(apiserver, engines, cobra)},
	{[]string{"internal/streamapi/..."}, surface("internal/engine", "internal/groups", "internal/messaging", "internal/records", "internal/replica"), join(apiserver, engines, cobra)},
	{[]string{"internal/adminapi/..."}, surface("internal/brokerhttp", "internal/groups", "internal/messaging"), join(apiserver, engines, cobra)},
	{[]string{"internal/registryapi/..."}, surface("internal/registryapi/...", "internal/engine", "internal/schemas"), join(apiserver, engines, cobra)},
	{[]string{"internal/tokenapi/..."}, surface("internal/tokenapi/...", "internal/lru", "internal/signin", "internal/throttle"), join(apiserver, engines, cobra)},
	{[]string{"internal/signinapi/..."}, surface("internal/signinapi/...", "internal/lru", "internal/openid", "internal/passkey", "internal/signin", "internal/throttle"), join(apiserver, engines, cobra)},
	{[]string{"internal/auditapi/..."}, surface("internal/auditapi/..."), join(apiserver, engines, cobra)},
	{[]string{"internal/systemapi/..."}, surface("internal/systemapi/..."), join(apiserver, engines, cobra)},
	{[]string{"internal/placement"}, []string{"api/..."}, join(apiserver, engines, cobra)},
	{
		[]string{"internal/resources/..."},
		[]string{"api/...", "internal/access", "internal/audit", "internal/cleanclose", "internal/errs", "internal/identity", "internal/names", "internal/quota", "internal/resources/...", "internal/surface", "internal/version", "internal/web"},
		join(engines, surfaces, []string{"freshet/internal/kinds/...", "freshet/internal/reconcile/..."}),
	},
	{
		[]string{"internal/reconcile/..."},
		[]string{"api/...", "internal/reconcile/..."},
		join(apiserver, engines, surfaces, []string{"freshet/internal/kinds/...", "freshet/internal/resources/..."}),
	},

	// The kinds: each knows no other, and only the list knows them all.
	{
		[]string{"internal/kinds/..."},
		[]string{"api/...", "internal/access", "internal/errs", "internal/identity", "internal/names", "internal/newest", "internal/dataplane/provision", "internal/placement", "internal/quota", "internal/reconcile/...", "internal/resources/...", "internal/signin"},
		join(engines, surfaces, []string{"freshet/internal/kinds/..."}),
	},
	{ // the list
		[]string{"internal/kinds"},
		[]string{"api/...", "internal/access", "internal/errs", "internal/identity", "internal/kinds/...", "internal/placement", "internal/quota", "internal/reconcile/...", "internal/resources/store"},
		join(engines, surfaces),
	},
	{[]string{"internal/kinds/kindstest"}, []string{"api/...", "internal/..."}, nil},

	// Composition.
	{[]string{"internal/server/..."}, []string{"api/...", "internal/...", "console/..."}, []string{"freshet/internal/cli"}},
	{[]string{"internal/cli"}, []string{"client/...", "internal/cli/...", "internal/errs", "internal/version"}, commandLine},
	{[]string{"internal/cli/reference"}, []string{"internal/cli/command"}, join(kube, engines)},
	{[]string{"internal/cli/hint"}, nil, []string{"*"}},
	{[]string{"internal/cli/output"}, nil, join(http, kube, engines, cobra)},
	{[]string{"internal/cli/contexts"}, []string{"internal/cli/hint", "internal/errs", "internal/kubeconfig"}, join(http, kube, engines, cobra)},
	{[]string{"internal/cli/tokencache"}, []string{"client", "internal/cli/contexts"}, join(kube, engines, cobra)},
	{[]string{"internal/cli/session"}, []string{"client", "internal/cli/contexts", "internal/cli/hint", "internal/errs", "internal/version"}, join(kube, engines, cobra)},
	{[]string{"internal/cli/command"}, []string{"client/...", "internal/cli/contexts", "internal/cli/hint", "internal/cli/output", "internal/cli/session", "internal/cli/tokencache", "internal/config", "internal/errs", "internal/version"}, join(kube, engines)},
	{ // what speaks to a server does so through the client, as anybody's program does
		[]string{"internal/cli/authcmd", "internal/cli/resourcecmd", "internal/cli/identitycmd", "internal/cli/apikeycmd"},
		[]string{"client/...", "internal/cli/command", "internal/cli/contexts", "internal/cli/hint", "internal/cli/output", "internal/cli/session", "internal/cli/tokencache", "internal/errs", "internal/kubeconfig", "internal/version"},
		join(kube, engines),
	},
	{
		[]string{"internal/cli/messagecmd", "internal/cli/schemacmd"},
		[]string{"client/...", "internal/cli/command", "internal/cli/hint", "internal/cli/output", "internal/errs"},
		join(kube, engines),
	},
	{[]string{"internal/cli/servercmd"}, []string{"api/...", "internal/backup", "internal/cli/command", "internal/cli/contexts", "internal/cli/hint", "internal/cli/output", "internal/config", "internal/control", "internal/errs", "internal/identity", "internal/version"}, commandLine},
	{[]string{"internal/cli/clustercmd"}, []string{"client/...", "internal/cli/command", "internal/cli/hint", "internal/cli/output", "internal/config", "internal/errs", "internal/identity", "internal/members/bundle"}, commandLine},
	{[]string{"internal/cli/doctorcmd"}, []string{"client/...", "internal/cli/command", "internal/cli/contexts", "internal/cli/output", "internal/config", "internal/members/bundle", "internal/version"}, join(kube, engines)},
	{[]string{"internal/cli/opscmd"}, []string{"client/...", "internal/cli/command", "internal/cli/contexts", "internal/cli/hint", "internal/cli/output"}, join(kube, engines)},
	{[]string{"internal/cli/generatecmd"}, []string{"internal/cli/command"}, join(kube, engines)},
	{[]string{"cmd/freshet"}, []string{"internal/cli", "internal/server"}, nil},

	// Not part of the product.
	{[]string{"internal/archtest", "console/...", "api/openapi", "hack/..."}, nil, nil},
	{[]string{"test/...", "bench/..."}, []string{"api/...", "client/...", "internal/...", "test/...", "bench/..."}, nil},
}

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// surface lists what an HTTP surface may import besides its own domain.
func surface(own ...string) []string {
	return append(own, "api/openapi", "internal/access", "internal/audit", "internal/errs", "internal/identity", "internal/names", "internal/quota", "internal/surface", "internal/web", "internal/workpool")
}

// exclusive lists libraries that only some packages may import themselves.
var exclusive = []struct {
	library string
	holders []string
}{
	{"net/http", []string{
		"internal/engine/replicated", "internal/engine/remote", "internal/natsserver", "internal/dataplane/group",
		"internal/web", "internal/surface", "internal/brokerhttp/...", "internal/messageapi/...", "internal/adminapi/...", "internal/registryapi/...", "internal/tokenapi/...", "internal/signinapi/...", "internal/openid", "internal/auditapi/...", "internal/systemapi/...", "internal/resources/...",
		"internal/telemetry", "internal/members", "internal/server/...", "internal/cli/...", "api/generated/...", "client/...", "console/...", "test/...", "bench/...",
	}},
	{"github.com/spf13/cobra", []string{"internal/cli/...", "cmd/..."}},
	{"k8s.io/apiserver/...", []string{"internal/resources/...", "internal/server/...", "test/..."}},
	{"github.com/nats-io/...", []string{"internal/engine/jetstream/...", "internal/engine/replicated/...", "internal/dataplane/group", "internal/natsserver/...", "test/..."}},
	{"github.com/twmb/franz-go/pkg/kmsg", []string{"internal/streamapi/...", "test/..."}},
	{"github.com/cockroachdb/pebble/...", []string{"internal/engine/pebble/...", "bench/...", "test/..."}},
}

func TestArrows(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, p := range all {
		if !p.ours() {
			continue
		}
		r := ruleFor(p.short())
		if r == nil {
			t.Errorf("%s has no place in the table of arrows", p.ImportPath)
			continue
		}
		for _, problem := range check(p, r, all) {
			t.Error(problem)
		}
	}
}

func check(p *pkg, r *rule, all map[string]*pkg) []string {
	var problems []string
	for _, imported := range p.Imports {
		target := all[imported]
		if target != nil && target.ours() && !matchesAny(r.ours, target.short()) {
			problems = append(problems, fmt.Sprintf("%s imports %s, which its row does not allow", p.ImportPath, imported))
		}
		for _, e := range exclusive {
			if matches(e.library, imported) && !matchesAny(e.holders, p.short()) {
				problems = append(problems, fmt.Sprintf("%s imports %s, which is for %v only", p.ImportPath, imported, e.holders))
			}
		}
	}
	told := map[int]bool{} // one example for each rule is enough
	for _, dep := range p.Deps {
		target := all[dep]
		if target == nil || dep == p.ImportPath {
			continue
		}
		if reached := slices.IndexFunc(r.never, func(pattern string) bool {
			if pattern == "*" {
				return !target.Standard
			}
			return matches(pattern, dep)
		}); reached >= 0 && !told[reached] {
			told[reached] = true
			problems = append(problems, fmt.Sprintf("%s must never reach %s; it does: %s",
				p.ImportPath, r.never[reached], strings.Join(route(p.ImportPath, dep, all), " -> ")))
		}
	}
	return problems
}

// ruleFor finds the most specific rule that names the package.
func ruleFor(short string) *rule {
	var best *rule
	length := -1
	for i := range rules {
		for _, pattern := range rules[i].packages {
			if pattern == short {
				return &rules[i]
			}
			if matches(pattern, short) && len(pattern) > length {
				best, length = &rules[i], len(pattern)
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

// route is the shortest chain of imports from one package to another.
func route(from, to string, all map[string]*pkg) []string {
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

// TestCheckFindsTheForbidden proves that the test above can fail.
func TestCheckFindsTheForbidden(t *testing.T) {
	t.Parallel()
	all := map[string]*pkg{
		"net/http":             {ImportPath: "net/http", Standard: true},
		"freshet/internal/web": {ImportPath: "freshet/internal/web", Imports: []string{"net/http"}, Deps: []string{"net/http"}},
		"freshet/internal/engine": {
			ImportPath: "freshet/internal/engine",
			Imports:    []string{"freshet/internal/web", "github.com/spf13/cobra"},
			Deps:       []string{"freshet/internal/web", "net/http"},
		},
	}
	problems := check(all["freshet/internal/engine"], ruleFor("internal/engine"), all)
	for _, want := range []string{"imports freshet/internal/web", "imports github.com/spf13/cobra", "-> freshet/internal/web -> net/http"} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%q not found in %q", want, problems)
		}
	}
	if r := ruleFor("internal/engine/pebble/record"); r == nil || r.packages[0] != "internal/engine/pebble/..." {
		t.Errorf("most specific rule: %+v", r)
	}
	if ruleFor("internal/newcomer") != nil {
		t.Error("a package nobody placed has a rule")
	}
}
