package console

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"freshet/test/freeport"
	"freshet/test/testserver"
)

// freshet runs a command of the binary that must succeed.
func freshet(ctx context.Context, t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(ctx, executable, args...).CombinedOutput(); err != nil {
		t.Fatalf("freshet %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// startEnsemble starts three members with the commands that operators use.
func startEnsemble(ctx context.Context, t *testing.T) []*testserver.Server {
	t.Helper()
	dir := t.TempDir()
	names := []string{"a", "b", "c"}
	addresses := make([][]string, len(names))
	init := []string{"ensemble", "init", "--output", filepath.Join(dir, "group")}
	var named []string
	for i, name := range names {
		var err error
		if addresses[i], err = freeport.Addresses(ctx, 8); err != nil {
			t.Fatal(err)
		}
		named = append(named, name+"="+strings.Join(addresses[i][5:], ","))
	}
	freshet(ctx, t, append(append(init, "--base-url", "http://"+addresses[0][0]), named...)...)
	servers, problems := make([]*testserver.Server, len(names)), make([]error, len(names))
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var starting sync.WaitGroup
	for i, name := range names {
		data, configuration := filepath.Join(dir, name), filepath.Join(dir, name+".yaml")
		freshet(ctx, t, "ensemble", "join", filepath.Join(dir, "group", name+".bundle"), "--data-dir", data, "--config",
			configuration)
		starting.Go(func() {
			servers[i], problems[i] = testserver.Start(ctx, executable, dir, testserver.Options{
				Kafka: true, DataDir: data, Addresses: addresses[i][:5], Args: []string{"--config", configuration},
				ReadyTimeout: 2 * time.Minute,
			})
			if problems[i] != nil {
				problems[i] = fmt.Errorf("member %s: %w", name, problems[i])
				giveUp() // do not let the others wait for it
			}
		})
	}
	starting.Wait()
	for _, s := range servers {
		if s != nil {
			t.Cleanup(s.Kill)
		}
	}
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
	return servers
}

// TestMembersOfAnEnsemble checks that the System page of an ensemble shows its members, their
// roles and lost members; the page of a single server has one line about it.
func TestMembersOfAnEnsemble(t *testing.T) {
	alone := open(t, 1440, "light")
	alone.as(server.Token)
	alone.visit("acme/system")
	alone.waitText("none: this is a single server")
	if eval[bool](alone, `!!`+button+`('Members')`) {
		t.Error("single server shows members")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	members := startEnsemble(ctx, t)
	b := open(t, 1440, "light")
	b.as(members[0].Token)
	do(b, chromedp.Navigate(members[0].URL+"/console/default/system?tab=members"))
	ready := func(n int) string {
		return fmt.Sprintf(`[...document.querySelectorAll('.rows .badge')]
			.filter(x => x.innerText === 'Ready').length === %d`, n)
	}
	b.until(ready(3))
	b.waitText("controllers")
	b.waitText("leader of the log")
	// each shard has an owner
	b.until(`[...document.querySelectorAll('.rows .badge')]
		.filter(x => ['a', 'b', 'c'].includes(x.innerText)).length === 6`)
	b.checkLooks("system-members", axe(t))
	members[2].Kill()
	b.until(ready(2))
	b.waitText("Lost")
	b.checkLooks("system-members-lost", axe(t))
	if text := eval[string](b, `document.querySelector('.callout.bad')?.innerText ?? ''`); !strings.HasPrefix(text,
		"c:") {
		t.Errorf("page shows %q, want the problem of c", text)
	}
	b.clean()
}
