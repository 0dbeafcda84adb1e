package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"freshet/internal/base/fairshare"
)

// TestCallerIsSent checks that the owner of a shard knows for whom another member calls.
func TestCallerIsSent(t *testing.T) {
	t.Parallel()
	for _, want := range []fairshare.Caller{
		{}, {Organization: "acme", Principal: "app"}, {Organization: "a/b", Principal: "zoë@example.com\r\nx/y"},
	} {
		r := httptest.NewRequest(http.MethodPost, Path, nil)
		sendCaller(fairshare.WithCaller(t.Context(), want), r)
		if got := fairshare.CallerOf(withCaller(r)); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
