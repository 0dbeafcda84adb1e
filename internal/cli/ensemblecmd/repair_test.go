package ensemblecmd_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const journalsOfCluster = `{"organization":"acme","cluster":"prod","journals":[
	{"name":"messaging","needed":4,"copies":[{"member":"a","position":4,"sum":"00ab"}]},
	{"name":"schemas","needed":20,"lost":"stream does not exist","from":"b","mark":"m1",
		"copies":[{"member":"b","position":10},{"member":"c","position":20,"missing":true,"problem":"not live"}]},
	{"name":"groups","needed":20,"lost":"stream does not exist","copies":[]}]}`

func TestRepair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		in       string
		accepted bool
		has      string
		fails    string
	}{
		"shown":                {[]string{"acme/prod"}, "", false, "10 records would be lost", ""},
		"confirmed":            {[]string{"acme/prod", "--accept-loss", "schemas"}, "prod\n", true, "Accepted", ""},
		"another name":         {[]string{"acme/prod", "--accept-loss", "schemas"}, "x\n", false, "", "nothing was"},
		"without confirmation": {[]string{"acme/prod", "--accept-loss", "schemas", "--yes"}, "", true, "Accepted", ""},
		"not lost":             {[]string{"acme/prod", "--accept-loss", "messaging"}, "", false, "", "not lost"},
		"no copy":              {[]string{"acme/prod", "--accept-loss", "groups"}, "", false, "", "no reachable"},
		"no journal":           {[]string{"acme/prod", "--accept-loss", "other"}, "", false, "", "no such journal"},
		"no cluster":           {[]string{"prod"}, "", false, "", "ORGANIZATION/CLUSTER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var accepted []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					body, _ := io.ReadAll(r.Body)
					accepted = append(accepted, string(body))
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, journalsOfCluster)
			}))
			defer server.Close()
			out, err := runAt(t, server.URL, c.in, append([]string{"repair"}, c.args...)...)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got error %v, want %q", err, c.fails)
			}
			if !strings.Contains(out, c.has) {
				t.Errorf("got output %q, want %q in it", out, c.has)
			}
			want := c.accepted
			if got := len(accepted) == 1 && strings.Contains(accepted[0], `"mark":"m1"`); got != want {
				t.Errorf("got requests %q, want accepted %t", accepted, want)
			}
		})
	}
}
