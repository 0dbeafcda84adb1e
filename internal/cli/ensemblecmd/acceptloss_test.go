package ensemblecmd_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/cli/command"
	"freshet/internal/cli/ensemblecmd"
)

const lossOfShard = `{"organization":"acme","cluster":"prod","shard":3,"from":"b","mark":"m1",
	"log":{"first":1,"last":5},"logMessagesLost":0,
	"copies":[{"member":"a","position":21,"epoch":1,"givenUp":true,
		"problem":"store has the log up to message 21, but the log ends at 5"},
	{"member":"b","position":31,"epoch":2,"givenUp":false}],"absent":["c"]}`

// runAt runs a command of the family against a server, with the given standard input.
func runAt(t *testing.T, server, in string, args ...string) (string, error) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	env := &command.Env{
		Streams: command.Streams{In: strings.NewReader(in), Out: &out, Err: &out},
		Getenv: func(name string) string {
			return map[string]string{"FRESHET_SERVER": server, "FRESHET_TOKEN_FILE": token, "HOME": t.TempDir()}[name]
		},
	}
	cmd := ensemblecmd.Commands(env, nil)[0]
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestAcceptLoss(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		in       string
		status   int
		accepted bool
		has      string
		fails    string
	}{
		"confirmed":            {[]string{"acme/prod", "3"}, "prod\n", 200, true, "Accepted", ""},
		"another name":         {[]string{"acme/prod", "3"}, "test\n", 200, false, "", "nothing was changed"},
		"no input":             {[]string{"acme/prod", "3"}, "", 200, false, "", "nothing was changed"},
		"without confirmation": {[]string{"acme/prod", "3", "--yes"}, "", 200, true, "Accepted", ""},
		"nothing lost":         {[]string{"acme/prod", "3", "--yes"}, "", 412, false, "", "no copy"},
		"no cluster":           {[]string{"prod", "3", "--yes"}, "", 200, false, "", "ORGANIZATION/CLUSTER"},
		"no number":            {[]string{"acme/prod", "-1x", "--yes"}, "", 200, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var accepted []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/system/v1alpha1/shards/acme/prod/3/loss" || c.status != 200 {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(max(c.status, 400))
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure",
						"message":"no copy of the shard is lost","code":412}`)
					return
				}
				if r.Method == http.MethodPost {
					body, _ := io.ReadAll(r.Body)
					accepted = append(accepted, string(body))
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, lossOfShard)
			}))
			defer server.Close()
			out, err := runAt(t, server.URL, c.in, append([]string{"accept-loss"}, c.args...)...)
			if c.fails == "" && c.has != "" && err != nil || c.has == "" && err == nil || err != nil &&
				!strings.Contains(err.Error(), c.fails) {
				t.Errorf("got error %v, want %q", err, c.fails)
			}
			if got := len(accepted) == 1 && accepted[0] == `{"from":"b","mark":"m1"}`; got != c.accepted {
				t.Errorf("got accepted losses %q, want accepted: %v", accepted, c.accepted)
			}
			if !strings.Contains(out, c.has) {
				t.Errorf("got %q, want %q", out, c.has)
			}
			if c.accepted {
				for _, want := range []string{
					"messages 1 to 5", "copy of member a: up to message 21 (epoch 1)",
					"member c: the member cannot be reached", "from the copy of member b",
					"Lost: the copy of member a, up to message 21",
				} {
					if !strings.Contains(out, want) {
						t.Errorf("got %q, want %q", out, want)
					}
				}
			}
		})
	}
}
