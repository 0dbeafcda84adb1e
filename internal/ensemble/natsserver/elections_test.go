package natsserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// natsDefaults are the values that nats-server declares.
var natsDefaults = []time.Duration{natsHeartbeatInterval, natsMinElectionTimeout, natsMaxElectionTimeout}

// TestNATSElectionTimeoutDefaults fails when nats-server has renamed the variables or
// changed their defaults. Review docs/adr/0036-elections.md then.
func TestNATSElectionTimeoutDefaults(t *testing.T) {
	for i, want := range []time.Duration{time.Second, 4 * time.Second, 9 * time.Second} {
		if natsDefaults[i] != want {
			t.Errorf("variable %d of nats-server: got %s, want %s", i, natsDefaults[i], want)
		}
	}
	setElectionTimeouts()
	if natsHeartbeatInterval != heartbeatInterval || natsMinElectionTimeout != minElectionTimeout ||
		natsMaxElectionTimeout != maxElectionTimeout {
		t.Errorf("got %s, %s and %s, want the values of setElectionTimeouts", natsHeartbeatInterval,
			natsMinElectionTimeout, natsMaxElectionTimeout)
	}
}

// TestNATSReadsTheElectionTimeouts fails when nats-server no longer declares the variables in
// raft.go, or declares them there and does not read them: setting them would have no effect.
func TestNATSReadsTheElectionTimeouts(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}",
		"github.com/nats-io/nats-server/v2/server").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(dir)), "raft.go")
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	declared, used := map[string]string{}, map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					if value, ok := n.Values[i].(*ast.Ident); ok {
						declared[name.Name] = value.Name
					}
				}
			}
		case *ast.Ident:
			used[n.Name]++
		}
		return true
	})
	for _, name := range []string{"hbInterval", "minElectionTimeout", "maxElectionTimeout"} {
		if declared[name] != name+"Default" || used[name] < 2 {
			t.Errorf("%s: got the declaration %q and %d uses in %s, want %s and at least one use besides it; review "+
				"docs/adr/0036-elections.md", name, declared[name], used[name], source, name+"Default")
		}
	}
}
