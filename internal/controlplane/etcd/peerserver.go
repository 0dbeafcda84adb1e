package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
)

// peerServer is the listener for the other members. It serves etcd's own peer handler, but responds from
// the moment it is open. A listener opened by etcd does not respond until etcd has queried the
// other members: two members without data that start at the same time would then wait for each
// other, up to etcd's timeout for each of three requests.
type peerServer struct {
	server http.Server
	etcd   atomic.Pointer[embed.Etcd] // nil until it is started
	peers  http.Handler               // etcd's; set before etcd is stored
	done   chan error                 // why the listener ended; closed afterwards
}

const (
	// peerReadTimeout is etcd's own timeout for reading one request of a member.
	peerReadTimeout = 5 * time.Minute
	// peerShutdownTimeout bounds the wait for requests of other members during shutdown.
	peerShutdownTimeout = time.Second
)

// openPeerServer listens for the other members, which get 503 until etcd is started.
func (g *Ensemble) openPeerServer() (*peerServer, error) {
	info := g.tls()
	listener, err := rafthttp.NewListener(httpsURL(g.Listen), &info)
	if err != nil {
		return nil, fmt.Errorf("listening for the etcd of the other members: %w", err)
	}
	p := &peerServer{done: make(chan error, 1)}
	p.server.Handler, p.server.ReadTimeout = p, peerReadTimeout
	p.server.ErrorLog = log.New(io.Discard, "", 0) // errors of the other members, as in etcd
	p.server.Protocols = new(http.Protocols)       // raft streams require HTTP/1
	p.server.Protocols.SetHTTP1(true)
	go func() {
		defer close(p.done)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.done <- fmt.Errorf("serving the etcd of the other members: %w", err)
		}
	}()
	return p, nil
}

// serve starts to forward requests to a started etcd.
func (p *peerServer) serve(e *embed.Etcd) {
	p.peers = etcdhttp.NewPeerHandler(e.GetLogger(), e.Server)
	p.etcd.Store(e)
}

// ServeHTTP implements http.Handler. An error response must not be JSON: a joining member would
// parse it as an empty member list.
func (p *peerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := p.etcd.Load()
	switch {
	case e == nil:
		http.Error(w, "etcd has not started yet", http.StatusServiceUnavailable)
	case r.URL.Path == etcdserver.DowngradeEnabledPath && e.Server.Leader() == 0:
		// etcd would wait for a majority before it responds. The member that sent the request wants
		// to join, and may be the one that is missing for the majority.
		http.Error(w, "no majority of members is available", http.StatusServiceUnavailable)
	default:
		p.peers.ServeHTTP(w, r)
	}
}

// close stops the listener. It is called after etcd has stopped, because etcd transfers leadership
// over this port.
func (p *peerServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), peerShutdownTimeout)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close() // the process is shutting down
	}
	<-p.done
}
