package resources

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"freshet/test/testserver"
)

// TestWatchOverAWebSocket watches over a WebSocket, as browsers and some older clients do,
// and checks that the watch does not prevent a shutdown.
func TestWatchOverAWebSocket(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), testserver.Options{})
	config, err := websocket.NewConfig(strings.Replace(server.URL, "http", "ws", 1)+users+"?watch=true", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.Header = http.Header{"Authorization": {"Bearer " + server.Token}}
	conn, err := config.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	must(t, server, http.MethodPost, users, `{"metadata":{"name":"ann"},"spec":{"email":"ann@example.com"}}`,
		http.StatusCreated)
	var event struct {
		Type   string
		Object object
	}
	if err := websocket.JSON.Receive(conn, &event); err != nil {
		t.Fatal(err)
	}
	if event.Type != "ADDED" || event.Object.Metadata.Name != "ann" {
		t.Errorf("first event: got %s of %q, want ADDED of ann", event.Type, event.Object.Metadata.Name)
	}
	if err := server.Stop(time.Minute); err != nil {
		t.Errorf("stopping with an open WebSocket watch: %v", err)
	}
}
