package kafkaapi_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"freshet/internal/surfaces/kafkaapi"
)

// TestShutdownDuringHandshakes shuts a server down during TLS handshakes and checks that
// connections in a handshake end immediately, like idle ones.
func TestShutdownDuringHandshakes(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil) // only for its certificate
	certified.Close()
	for range 5 {
		w := newHarness(t)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		w.ok(err)
		go func() {
			_ = w.server.Serve(kafkaapi.Listener{
				Listener: listener,
				TLS:      &tls.Config{Certificates: certified.TLS.Certificates},
			})
		}()
		var clients sync.WaitGroup
		greeted := make(chan struct{}, 40)
		for i := range cap(greeted) {
			clients.Go(func() {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
				if err != nil {
					return // the listener is closed already
				}
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
				if i%4 != 0 { // the others send nothing
					config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // self-signed certificate
					secured := tls.Client(conn, config)
					if secured.Handshake() == nil {
						greeted <- struct{}{}
						conn = secured
					}
				}
				_, _ = conn.Read(make([]byte, 1)) // until the server closes it
			})
		}
		<-greeted
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // less than the timeout of the handshake
		if err := w.server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown during handshakes: got %v, want all connections to end in time", err)
		}
		cancel()
		clients.Wait()
	}
}
