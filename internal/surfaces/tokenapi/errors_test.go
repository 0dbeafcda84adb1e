package tokenapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
)

func TestEveryKindAndSentinelIsMapped(t *testing.T) {
	t.Parallel()
	for kind := range errs.KindCount {
		if row, ok := kinds[kind]; !ok || row.status == 0 || row.code == "" {
			t.Errorf("kind %v is not mapped", kind)
		}
	}
	tests := map[error]struct {
		status int
		code   string
	}{
		identity.ErrInvalidClient:                         {401, "invalid_client"},
		identity.ErrKeysUnavailable:                       {503, "temporarily_unavailable"},
		web.ErrBodyTooLarge:                               {413, "invalid_request"},
		errors.New("disk on fire"):                        {500, "server_error"},
		fmt.Errorf("reading: %w", errors.New("s3cr3t")):   {500, "server_error"},
		errs.New(errs.Invalid, "the body ended too soon"): {400, "invalid_request"},
	}
	for err, want := range tests {
		r := httptest.NewRequest(http.MethodPost, "/oauth/token", nil)
		r.Header.Set(web.RequestIDHeader, "R77")
		w := httptest.NewRecorder()
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Refuse(w, r, err) })
		web.Middleware(serve, slog.New(slog.DiscardHandler), nil).ServeHTTP(w, r)
		var body map[string]string
		if jsonErr := json.Unmarshal(w.Body.Bytes(), &body); jsonErr != nil {
			t.Fatal(jsonErr)
		}
		if w.Code != want.status || body["error"] != want.code {
			t.Errorf("%v: got status %d %v, want %d %s", err, w.Code, body, want.status, want.code)
		}
		if want.status == 500 &&
			(!strings.Contains(body["error_description"], "R77") || strings.Contains(w.Body.String(), "fire") ||
				strings.Contains(w.Body.String(), "s3cr3t")) {
			t.Errorf("%v: got body %v, want the request id and not the cause", err, body)
		}
	}
}
