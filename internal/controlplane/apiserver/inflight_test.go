package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"freshet/internal/controlplane/caller"
	"freshet/internal/identity"
)

func TestInFlight(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme(nil)
	if err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	synctest.Test(t, func(t *testing.T) {
		reads, writes := make(chan struct{}), make(chan struct{})
		handler := newInFlight(codecs, nil, 1<<20, 1,
			1).handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-reads
			} else {
				<-writes
			}
		}))
		send := func(method, path string) chan *httptest.ResponseRecorder {
			done := make(chan *httptest.ResponseRecorder, 1)
			go func() {
				recorder := httptest.NewRecorder()
				principal := &authenticator.Response{User: caller.Caller{Principal: &identity.Principal{
					Name:         "p",
					Organization: "acme",
				}}}
				ctx := context.WithValue(t.Context(), authenticatedKey{}, principal)
				handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, method, path, http.NoBody))
				done <- recorder
			}()
			synctest.Wait()
			return done
		}
		users := apiPrefix + "namespaces/acme/users"
		first := send(http.MethodPost, users)
		second := send(http.MethodPost, users)
		third := send(http.MethodPost, users)
		read := send(http.MethodGet, users)
		watch := send(http.MethodGet, users+"?watch=true")
		health := send(http.MethodGet, "/readyz")
		// All calls except the second and the third write are being processed.
		for range 3 {
			reads <- struct{}{}
		}
		writes <- struct{}{}
		for _, done := range []chan *httptest.ResponseRecorder{first, read, watch, health} {
			if answer := <-done; answer.Code != http.StatusOK {
				t.Errorf("got %d: %s, want 200", answer.Code, answer.Body)
			}
		}
		<-time.After(maxInFlightWait) // the clock is synctest's
		synctest.Wait()
		codes := map[int]int{}
		writes <- struct{}{}
		for _, done := range []chan *httptest.ResponseRecorder{second, third} {
			answer := <-done
			codes[answer.Code]++
			if answer.Code == http.StatusTooManyRequests &&
				(answer.Header().Get("Retry-After") != "1" ||
					!strings.Contains(answer.Body.String(), `"reason":"TooManyRequests"`)) {
				t.Errorf("rejected call: got %v %s, want Retry-After 1 and the reason TooManyRequests",
					answer.Header(), answer.Body)
			}
		}
		if codes[http.StatusOK] != 1 || codes[http.StatusTooManyRequests] != 1 {
			t.Errorf("status codes of two waiting calls: got %v, want one 200 and one 429", codes)
		}
	})
}
