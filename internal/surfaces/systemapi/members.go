package systemapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/surfaces/pipeline"
)

// Group tells about the members of a group.
type Group interface {
	// Members describes all of them. A server that is alone has none.
	Members(ctx context.Context) (*Members, error)
	// Replace takes a lost member out and expects an empty one in its place.
	Replace(ctx context.Context, name string) error
	// StepDown has a member give up what it leads.
	StepDown(ctx context.Context, name string) (*SteppedDown, error)
	// Loss looks at a shard whose copies and log do not fit together: what is lost
	// when it goes on, from a member's copy, the log, or, when from is "", what has
	// most.
	Loss(ctx context.Context, at ShardAt, from string) (*Loss, error)
	// AcceptLoss has it go on, if it is still as it was when it was looked at.
	AcceptLoss(ctx context.Context, at ShardAt, from, mark string) (*Loss, error)
}

// Members are those of a group, as the one sees them that was asked.
type Members struct {
	// Self is the member that was asked; "" for a server that is alone.
	Self string `json:"self,omitempty"`
	// Controller runs the controllers. EtcdLeader and LogLeader lead the store of
	// resources and the log of messages; they are "" while there is none, or when that
	// is external.
	Controller string   `json:"controller,omitempty"`
	EtcdLeader string   `json:"etcdLeader,omitempty"`
	LogLeader  string   `json:"logLeader,omitempty"`
	Members    []Member `json:"members"`
	// Shards are those of all clusters, as far as the member knows that was asked.
	Shards []Shard `json:"shards,omitempty"`
}

// Shard is one of a cluster's.
type Shard struct {
	Organization string `json:"organization"`
	Cluster      string `json:"cluster"`
	Number       int    `json:"number"`
	// Owner is the member that serves it; "" when there is none at the moment.
	Owner string `json:"owner,omitempty"`
	Epoch uint64 `json:"epoch"` // counts owners
	Log   uint64 `json:"log"`   // the last number of its log
	// Copies are what the members have of it.
	Copies []Copy `json:"copies"`
	// Problem says why the copy of the member that was asked cannot be used, if it
	// cannot.
	Problem string `json:"problem,omitempty"`
}

// Copy is a member's copy of a shard.
type Copy struct {
	Member string `json:"member"`
	Live   bool   `json:"live"`
	// of the log that it has not applied; had not when it last said so, if it does not answer
	Lag uint64 `json:"lag"`
	// Problem says why it cannot be used, if it cannot.
	Problem string `json:"problem,omitempty"`
}

// Member is one of them.
type Member struct {
	Name     string `json:"name"`
	Node     int    `json:"node"` // its number in the stream protocol
	Internal string `json:"internal"`
	// Live says that its lease is good, Ready that it serves clients.
	Live  bool `json:"live"`
	Ready bool `json:"ready"`
	// The rest is known of live members.
	Version   string     `json:"version,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	HTTP      string     `json:"http,omitempty"`
	HTTPS     string     `json:"https,omitempty"`
	Stream    string     `json:"stream,omitempty"`
	StreamTLS string     `json:"streamTLS,omitempty"`
	// ClockAhead is how far its clock is ahead of that of the member that was asked, in
	// seconds; negative when it is behind.
	ClockAhead      float64    `json:"clockAheadSeconds"`
	CertificateEnds *time.Time `json:"certificateEnds,omitempty"`
	// Problem says what is wrong with it, if anything is.
	Problem string `json:"problem,omitempty"`
}

// SteppedDown is what a member led before it stepped down; others lead it now.
type SteppedDown struct {
	Etcd    bool `json:"etcd"`    // the store of resources
	Streams int  `json:"streams"` // how many of the log
}

var errMembers = errs.New(errs.Denied, "the members of the group are for system administrators only")

// system is the caller, who must be a system administrator.
func (a *API) system(r *http.Request, refusal error) (*identity.Principal, error) {
	caller, err := a.caller(r)
	if err == nil && !caller.System {
		return nil, a.denied(r, caller, pipeline.Asked{}, refusal)
	}
	return caller, err
}

func (a *API) writeMembers(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.system(r, errMembers); err != nil {
		return err
	}
	list, err := a.opts.Group.Members(r.Context())
	if err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	web.WriteBody(w, http.StatusOK, "application/json", append(text, '\n'))
	return nil
}

func (a *API) replaceMember(w http.ResponseWriter, r *http.Request) error {
	return a.changeMember(w, r, func(ctx context.Context, name string) (any, error) {
		return struct{}{}, a.opts.Group.Replace(ctx, name)
	})
}

func (a *API) stepDown(w http.ResponseWriter, r *http.Request) error {
	return a.changeMember(w, r,
		func(ctx context.Context, name string) (any, error) { return a.opts.Group.StepDown(ctx, name) })
}

// changeMember does something with the member that the path names, for a system
// administrator, and records it: also what failed at this side, as a part of it may
// have been done.
func (a *API) changeMember(w http.ResponseWriter, r *http.Request,
	change func(ctx context.Context, name string) (any, error),
) error {
	caller, err := a.system(r, errMembers)
	if err != nil {
		return err
	}
	var path web.Path
	path.Parse(r.URL)
	name := a.router.Find(http.MethodPost, &path).Param(&path, "name")
	answer, err := change(r.Context(), name)
	status := http.StatusOK
	if err != nil {
		status = statusOf(err)
	}
	if err == nil || status >= http.StatusInternalServerError {
		rec := pipeline.Record(r, surfaceName, caller, pipeline.Asked{}, status)
		rec.Scope = "member/" + name
		a.opts.Auditor.Record(rec)
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, "application/json", answer)
}
