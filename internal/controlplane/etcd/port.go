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

// port is where the other members reach the etcd of this one. What is served there is
// etcd's own handler, but the port answers as soon as it is open. One that etcd opens
// by itself is silent until etcd has asked the other members who they are: two members
// without data that start at the same moment wait for each other, for as long as etcd
// has patience with each of three questions.
type port struct {
	server http.Server
	etcd   atomic.Pointer[embed.Etcd] // nil until it is started
	peers  http.Handler               // of etcd; set before etcd is
	ended  chan error                 // why nobody is listened to any more; closed behind it
}

const (
	// portRead is etcd's own bound for what a member sends in one request.
	portRead = 5 * time.Minute
	// portPatience is for requests of other members when this one ends.
	portPatience = time.Second
)

// open listens for the other members, who are told that etcd is not started yet.
func (g *Group) open() (*port, error) {
	info := g.tls()
	listener, err := rafthttp.NewListener(secured(g.Listen), &info)
	if err != nil {
		return nil, fmt.Errorf("opening the port for the other members' etcd: %w", err)
	}
	p := &port{ended: make(chan error, 1)}
	p.server.Handler, p.server.ReadTimeout = p, portRead
	p.server.ErrorLog = log.New(io.Discard, "", 0) // as in etcd: what others do wrong
	p.server.Protocols = new(http.Protocols)       // streams of raft are written for the first version
	p.server.Protocols.SetHTTP1(true)
	go func() {
		defer close(p.ended)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.ended <- fmt.Errorf("listening for the other members' etcd: %w", err)
		}
	}()
	return p, nil
}

// serve has an etcd that was started answer from now on.
func (p *port) serve(e *embed.Etcd) {
	p.peers = etcdhttp.NewPeerHandler(e.GetLogger(), e.Server)
	p.etcd.Store(e)
}

// ServeHTTP implements http.Handler. A refusal must not be JSON: whoever joins would take
// it for a list of no members.
func (p *port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := p.etcd.Load()
	switch {
	case e == nil:
		http.Error(w, "etcd is not started yet", http.StatusServiceUnavailable)
	case r.URL.Path == etcdserver.DowngradeEnabledPath && e.Server.Leader() == 0:
		// Only a majority knows, and etcd would wait for one before it says so. Who asks
		// joins, and may be the one that is missing.
		http.Error(w, "there is no majority", http.StatusServiceUnavailable)
	default:
		p.peers.ServeHTTP(w, r)
	}
}

// close ends what is served. It is called when etcd has ended, which makes another
// member the leader over this port.
func (p *port) close() {
	ctx, cancel := context.WithTimeout(context.Background(), portPatience)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close() // nobody is left who would want to know
	}
	<-p.ended
}
