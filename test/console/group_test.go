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

// freshet runs the binary to its end.
func freshet(ctx context.Context, t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(ctx, executable, args...).CombinedOutput(); err != nil {
		t.Fatalf("freshet %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// startGroup starts three members by the commands that people use for it.
func startGroup(ctx context.Context, t *testing.T) []*testserver.Server {
	t.Helper()
	dir := t.TempDir()
	names := []string{"a", "b", "c"}
	addresses := make([][]string, len(names))
	init := []string{"cluster", "init", "--output", filepath.Join(dir, "group")}
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
		freshet(ctx, t, "cluster", "join", filepath.Join(dir, "group", name+".bundle"), "--data-dir", data, "--config",
			configuration)
		starting.Go(func() {
			servers[i], problems[i] = testserver.Start(ctx, executable, dir, testserver.Options{
				Stream: true, DataDir: data, Addresses: addresses[i][:5], Args: []string{"--config", configuration},
				Ready: 2 * time.Minute,
			})
			if problems[i] != nil {
				problems[i] = fmt.Errorf("member %s: %w", name, problems[i])
				giveUp() // the other members cannot become ready without this one
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

// In a group the System page shows the members, who does what, and who is lost; a server
// that is alone says so in one line.
func TestMembersOfAGroup(t *testing.T) {
	alone := open(t, 1440, "light")
	alone.as(server.Token)
	alone.visit("acme/system")
	alone.says("none: this server is alone")
	if eval[bool](alone, `!!`+button+`('Members')`) {
		t.Error("a server that is alone shows members")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	members := startGroup(ctx, t)
	b := open(t, 1440, "light")
	b.as(members[0].Token)
	do(b, chromedp.Navigate(members[0].URL+"/console/default/system?tab=members"))
	ready := func(n int) string {
		return fmt.Sprintf(`[...document.querySelectorAll('.rows .badge')].filter(x => x.innerText === 'Ready').length === %d`, n)
	}
	b.until(ready(3))
	b.says("controllers")
	b.says("leader of the log")
	// each shard has an owner
	b.until(`[...document.querySelectorAll('.rows .badge')].filter(x => ['a', 'b', 'c'].includes(x.innerText)).length === 6`)
	b.looks("system-members", axe(t))
	members[2].Kill()
	b.until(ready(2))
	b.says("Lost")
	b.looks("system-members-lost", axe(t))
	if text := eval[string](b, `document.querySelector('.callout.bad')?.innerText ?? ''`); !strings.HasPrefix(text,
		"c:") {
		t.Errorf("the page says %q, want what is wrong with c", text)
	}
	b.clean()
}
