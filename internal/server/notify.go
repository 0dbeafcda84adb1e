package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"freshet/internal/base/version"
)

// startNotifying reports to systemd that the server is ready, and from then on that it is alive, until
// it stops.
func (s *server) startNotifying() {
	s.systemd.Ready(s.stateLine())
	ctx, cancel := context.WithCancel(context.Background())
	s.unwatch = cancel
	go s.systemd.Watch(ctx, s.alive)
}

// stateLine describes a server that is ready in one line.
func (s *server) stateLine() string {
	line := "serving " + s.cfg.PublicURL() + ", version " + version.Get().Version
	if err := s.plane.Health(); err != nil {
		return line + "; not all of it works: " + err.Error()
	}
	return line
}

// alive requests /livez from the handler of the ports, without a connection, so that limits of
// connections and other clients cannot fail the check.
func (s *server) alive(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/livez", http.NoBody)
	if err != nil {
		return err
	}
	response := &probeResponse{header: http.Header{}, status: http.StatusOK}
	s.front.ServeHTTP(response, request)
	if response.status != http.StatusOK {
		return fmt.Errorf("/livez returned %d: %s", response.status, bytes.TrimSpace(response.text))
	}
	return nil
}

// maxProbe limits the text of a probe's response that is logged.
const maxProbe = 1 << 10

// probeResponse keeps the status and the start of the text.
type probeResponse struct {
	header http.Header
	status int
	text   []byte
}

func (p *probeResponse) Header() http.Header    { return p.header }
func (p *probeResponse) WriteHeader(status int) { p.status = status }

func (p *probeResponse) Write(b []byte) (int, error) {
	p.text = append(p.text, b[:min(len(b), maxProbe-len(p.text))]...)
	return len(b), nil
}
