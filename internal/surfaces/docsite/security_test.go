package docsite

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestSecurityText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		contact, method string
		status          int
		want            string
	}{
		"a contact":    {"mailto:security@example.com", http.MethodGet, 200, "Contact: mailto:security@example.com\n"},
		"no contact":   {"", http.MethodGet, 404, "securityContact"},
		"wrong method": {"mailto:security@example.com", http.MethodPost, 405, "only GET"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			SecurityText(tc.contact).ServeHTTP(w,
				httptest.NewRequestWithContext(t.Context(), tc.method, PathSecurity, http.NoBody))
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("got %d %q, want %d with %q", w.Code, w.Body, tc.status, tc.want)
			}
			if tc.status != http.StatusOK {
				return
			}
			_, rest, _ := strings.Cut(w.Body.String(), "\nExpires: ")
			text, _, _ := strings.Cut(rest, "\n")
			expires, err := time.Parse(time.RFC3339, text)
			if left := time.Until(expires); err != nil || left < 24*time.Hour || left > 366*24*time.Hour {
				t.Errorf("got end %q, want one between a day and a year from now", text)
			}
		})
	}
}
