package registryapi

import (
	"context"
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
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

func TestEverySentinelHasACode(t *testing.T) {
	t.Parallel()
	for _, sentinel := range sentinels(t) {
		number, text := numberOf(fmt.Errorf("%w", sentinel), "")
		if number < 400 || number >= 43000 && number != codeStore || strings.Contains(text, "backend") {
			t.Errorf("%q: got code %d, text %q, want a code of its own", sentinel, number, text)
		}
		found := 0
		for _, c := range codes {
			if c.sentinel == sentinel {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%q occurs %d times in the table, want once", sentinel, found)
		}
	}
	for kind := range errs.KindCount {
		if kinds[kind] == 0 {
			t.Errorf("kind %s has no code", kind)
		}
	}
}

func TestErrorsOnTheWire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
		number int
		text   string
	}{
		"unknown": {errors.New("secret detail"), 500, 50001, "Error in the backend data store; request id r1"},
		"store failed": {
			fmt.Errorf("appending: %w", engine.ErrFailed), 500, 50001,
			"appending: " + engine.ErrFailed.Error(),
		},
		"newer format": {
			fmt.Errorf("open /var/lib/x: %w: 9", engine.ErrNewerFormat), 503, 503,
			engine.ErrNewerFormat.Error(),
		},
		"damage": {
			fmt.Errorf("open /var/lib/x: %w: 000004.log", engine.ErrCorrupt), 503, 503,
			engine.ErrCorrupt.Error(),
		},
		"contended": {statemachine.ErrContended, 500, 50001, statemachine.ErrContended.Error()},
		"timeout": {
			fmt.Errorf("waiting: %w", context.DeadlineExceeded), 500, 50002,
			"The registry did not respond in time",
		},
		"client gone": {context.Canceled, 500, 50002, "The registry did not respond in time"},
		"body too large": {
			fmt.Errorf("%w: 6 MB", web.ErrBodyTooLarge), 413, 413,
			web.ErrBodyTooLarge.Error() + ": 6 MB",
		},
		"not in the table": {errs.New(errs.Denied, "no"), 403, 403, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "/subjects", nil)
			r.Header.Set(web.RequestIDHeader, "r1")
			serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Refuse(w, r, c.err) })
			web.Middleware(serve, slog.New(slog.DiscardHandler), nil).ServeHTTP(w, r)
			var body struct {
				Code    int    `json:"error_code"`
				Message string `json:"message"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.status || body.Code != c.number || body.Message != c.text {
				t.Errorf("got %d %+v, want %d %d %q", w.Code, body, c.status, c.number, c.text)
			}
		})
	}
}
