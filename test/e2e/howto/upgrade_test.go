package howto_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/freeport"
	"freshet/test/pages"
	"freshet/test/testserver"
)

// serviceScript starts and stops a server as systemctl does: service start|stop NAME.
const serviceScript = `#!/bin/bash -eu
case $1 in
start)
  [ ! -e pid ]
  env -i PATH="$PATH" HOME="$HOME" setsid ./installed/freshet serve --data-dir data --http %s --https %s --ops off \
    --stream off --stream-tls off > log 2>&1 < /dev/null &
  echo $! > pid ;;
stop)
  kill "$(cat pid)"
  while kill -0 "$(cat pid)" 2> /dev/null; do sleep 0.1; done
  rm pid ;;
esac
`

// TestUpgrade runs the commands of the page about upgrades: a message survives the upgrade, and one
// that was written after the backup is not in the server that went back.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	need(t, "bash", "setsid")
	text, err := os.ReadFile("../../../docs/howto/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(text), "## Go back to the old version")
	upgrade, downgrade := pages.Commands(before), pages.Commands(after)
	if !ok || strings.Count(upgrade, "\n") < 10 || strings.Count(downgrade, "\n") < 6 {
		t.Fatalf("page has no commands for an upgrade and for going back:\n%s", upgrade)
	}
	dir := t.TempDir()
	binary, err := testserver.Binary(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := freeport.Addresses(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	service := fmt.Sprintf(serviceScript, addresses[0], addresses[1])
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	const executable = 0o700
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "installed"), executable),
		os.WriteFile(filepath.Join(dir, "installed", "freshet"), program, executable),
		os.WriteFile(filepath.Join(dir, "service"), []byte(service), executable)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(dir, "pid")); err != nil {
			return
		}
		stop := exec.Command("./service", "stop", "freshet") // the test's context has ended
		stop.Dir = dir
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	script := `PATH=$PWD/installed:$PATH
./service start freshet
until freshet health; do sleep 0.1; done
freshet topic create orders && freshet subscription create orders all --from earliest
freshet produce orders before
` + upgrade + `
[ -e "$program.old" ]
freshet produce orders after
echo "upgraded: $(freshet tail orders --from earliest --no-follow | tr '\n' ' ')"
` + downgrade + `
echo "went back: $(freshet tail orders --from earliest --no-follow | tr '\n' ' ')"
`
	out := shell(t, script, dir, "FRESHET_DATA_DIR="+filepath.Join(dir, "data"), "FRESHET_BACKUPS=backups",
		"FRESHET_PROGRAM=installed/freshet", "FRESHET_NEW_PROGRAM="+binary, "FRESHET_SERVICE=./service",
		"HOME="+dir)
	for _, want := range []string{
		"backup is valid: ", "is intact\n", "upgraded: before after \n", "went back: before \n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output has no %q:\n%s", want, out)
		}
	}
}
