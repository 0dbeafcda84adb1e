package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	memberListTimeout  = 2 * time.Second
	maxMemberListBytes = 1 << 20
)

// HasLog reports whether a directory contains the log of a member, which has the member's identity
// and its votes.
func HasLog(dir string) bool { return wal.Exist(filepath.Join(dir, "member", "wal")) }

// errNoOther means that no other member responds. A later attempt may succeed.
var errNoOther = errors.New("no other member can be reached")

// checkNotJoined returns ErrDataLost if the ensemble has a member at this member's address that has
// already run. etcd checks that only for new ensembles: a member without data that joins an
// existing one takes over the identity of the member at its address, and would vote a second time
// where that member has voted before.
func (g *Ensemble) checkNotJoined(ctx context.Context) error {
	info := g.tls()
	via, err := transport.NewTransport(info, memberListTimeout)
	if err != nil {
		return fmt.Errorf("reading the certificates for etcd: %w", err)
	}
	defer via.CloseIdleConnections()
	client := &http.Client{Transport: via, Timeout: memberListTimeout}
	var own string
	for _, p := range g.Peers {
		if at := httpsURL(p.Address); p.Name == g.Self {
			own = at.String()
		}
	}
	for _, p := range g.Peers {
		if p.Name == g.Self {
			continue
		}
		list, err := listMembers(ctx, client, p)
		if err != nil {
			continue // another one may respond
		}
		for _, member := range list {
			if len(member.ClientURLs) > 0 && slices.Contains(member.PeerURLs, own) {
				return ErrDataLost
			}
		}
		return nil
	}
	return errNoOther
}

// listedMember is a member in etcd's list of members. A member that has run has published its
// client URLs.
type listedMember struct {
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
}

// listMembers returns the members that a member knows.
func listMembers(ctx context.Context, client *http.Client, of Peer) (list []listedMember, err error) {
	at := httpsURL(of.Address)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String()+"/members", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // the body was read, or is not needed
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("listing the members: %s", response.Status)
	}
	return list, json.NewDecoder(io.LimitReader(response.Body, maxMemberListBytes)).Decode(&list)
}
