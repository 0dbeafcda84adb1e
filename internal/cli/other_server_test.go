package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestServerThatIsNotFreshet checks that commands report a server whose responses list no kinds.
func TestServerThatIsNotFreshet(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}")) // the client reports a failure
	}))
	t.Cleanup(other.Close)
	t.Setenv("FRESHET_SERVER", other.URL)
	t.Setenv("FRESHET_API_KEY", "key")
	for _, args := range [][]string{{"get", "mc"}, {"describe", "mc/x"}, {"delete", "mc", "x"}, {"explain", "mc"}} {
		var out, errs bytes.Buffer
		code := Execute(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, nil)
		if code != ExitError || !strings.Contains(errs.String(), other.URL+" lists no kinds") {
			t.Errorf("%v: exit code %d, %s", args, code, errs.String())
		}
	}
}
