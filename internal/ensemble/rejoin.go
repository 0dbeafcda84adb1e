package ensemble

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/bundle"
)

// A member whose etcd data is damaged or lost must not vote with what is left: it has forgotten
// votes and entries that it has confirmed. It asks the others to remove it from etcd and to add it
// again, as a member without data. Only a member itself can ask for that: the name is that of the
// caller's certificate.

const (
	rejoinPath = "/v1/rejoin"
	// rejoinTimeout bounds one request: etcd adds a member only when the others have been connected
	// for some seconds.
	rejoinTimeout = 30 * time.Second
	// maxRejoin bounds the size of the request.
	maxRejoin = 1 << 10
)

// rejoinRequest is the request of a member that wants to rejoin.
type rejoinRequest struct {
	// Check only asks whether the members would accept the member.
	Check bool `json:"check,omitempty"`
}

var errNoMajorityToRejoin = errs.New(errs.Unavailable,
	"other members are not a majority of the ensemble, so none of them can change it; start them first")

// AskRejoin asks the other members, one after the other, to replace this member in etcd by a member
// without data. With check, it only asks whether they would, which changes nothing. It can be
// repeated. It needs only Open.
func (m *Member) AskRejoin(ctx context.Context, check bool) error {
	var problems []error
	for _, name := range m.names {
		if name == m.opts.Self {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, rejoinTimeout)
		err := m.network.Post(bounded, name, rejoinPath, rejoinRequest{Check: check}, nil)
		cancel()
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return errs.Newf(errs.Unavailable, "no other member accepts that this member rejoins: %w", errors.Join(problems...))
}

// serveRejoin handles the request of a member that wants to rejoin.
func (m *Member) serveRejoin(w http.ResponseWriter, r *http.Request) {
	var request rejoinRequest
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRejoin)).Decode(&request)
	if err != nil {
		http.Error(w, "reading the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), rejoinTimeout)
	defer cancel()
	if err := m.acceptRejoin(ctx, bundle.PeerMember(r.TLS), request.Check); err != nil {
		status := http.StatusServiceUnavailable
		if kind := errs.KindOf(err); kind == errs.Conflict || kind == errs.Precondition {
			status = http.StatusConflict
		}
		http.Error(w, err.Error(), status)
		return
	}
	_, _ = w.Write([]byte("{}\n")) // fails only if the caller disconnected
}

// acceptRejoin replaces a member in etcd by one without data, unless check is set.
func (m *Member) acceptRejoin(ctx context.Context, name string, check bool) error {
	joined := m.membership.Load()
	switch {
	case joined == nil:
		return errMemberStarting
	case m.etcd.External():
		return errExternalEtcd
	case !joined.Alive():
		return errNoMajorityToRejoin
	}
	others := 0
	for _, record := range joined.Live() {
		if record.Name == name {
			return errIsLive
		}
		others++
	}
	if others < len(m.names)/2+1 {
		return errNoMajorityToRejoin
	}
	if check {
		return nil
	}
	m.opts.Log.Warn("member rejoins with an empty etcd, because its etcd data was damaged or lost",
		slog.String("member", name))
	return m.etcd.Replace(ctx, name)
}
