package systemapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/pipeline"
)

// ShardAt names a shard.
type ShardAt struct {
	Organization, Cluster string
	Number                int
}

// Loss is what is lost when a shard goes on whose copies and log do not fit together.
type Loss struct {
	Organization string `json:"organization"`
	Cluster      string `json:"cluster"`
	Shard        int    `json:"shard"`
	// Owner serves the shard; then only copies that are lost begin anew.
	Owner string `json:"owner,omitempty"`
	// From is what the shard goes on from: the copy of a member, or "log".
	From string `json:"from"`
	// Mark is exactly what that has. It is sent back to accept the loss.
	Mark string   `json:"mark"`
	Log  *LossLog `json:"log,omitempty"` // absent: it is gone
	// LogMessagesLost are those that only the log has, and that are given up.
	LogMessagesLost uint64     `json:"logMessagesLost"`
	Copies          []LossCopy `json:"copies"`
	// Absent are members with a copy that could not be asked.
	Absent []string `json:"absent,omitempty"`
}

// LossLog is what the log has.
type LossLog struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// LossCopy is what a member's copy has.
type LossCopy struct {
	Member string `json:"member"`
	// Position is the last message of the log that it has, written in Epoch.
	Position uint64 `json:"position"`
	Epoch    uint64 `json:"epoch"`
	// GivenUp says that it is removed and begins anew.
	GivenUp bool   `json:"givenUp"`
	Problem string `json:"problem,omitempty"`
}

const maxAccept = 4 << 10 // bytes of a body

var (
	errShards   = errs.New(errs.Denied, "shards are for system administrators only")
	errNoNumber = errs.New(errs.Invalid, "the number of a shard is a whole number from 0 on")
	errFrom     = errs.New(errs.Invalid, "the query is malformed; from is its only parameter, at most once")
	errAccept   = errs.New(errs.Invalid, `the body must be {"from": …, "mark": …} as the look at the loss had them`)
)

// shardAt reads which shard a path names.
func (a *API) shardAt(r *http.Request, method string) (ShardAt, error) {
	var path web.Path
	path.Parse(r.URL)
	route := a.router.Find(method, &path)
	at := ShardAt{Organization: route.Param(&path, "organization"), Cluster: route.Param(&path, "cluster")}
	n, err := strconv.ParseUint(route.Param(&path, "number"), 10, 16)
	if err != nil {
		return at, errNoNumber
	}
	at.Number = int(n)
	return at, nil
}

func (a *API) writeLoss(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.system(r, errShards); err != nil {
		return err
	}
	at, err := a.shardAt(r, http.MethodGet)
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query["from"]) > 1 || len(query) > len(query["from"]) {
		return errFrom
	}
	return a.answerLoss(w, r,
		func(ctx context.Context) (*Loss, error) { return a.opts.Group.Loss(ctx, at, query.Get("from")) })
}

func (a *API) acceptLoss(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.system(r, errShards)
	if err != nil {
		return err
	}
	at, err := a.shardAt(r, http.MethodPost)
	if err != nil {
		return err
	}
	body, err := web.ReadBody(r, maxAccept)
	if err != nil {
		return err
	}
	var asked struct{ From, Mark string }
	if err := json.Unmarshal(body, &asked); err != nil || asked.From == "" || asked.Mark == "" {
		return errAccept
	}
	return a.answerLoss(w, r, func(ctx context.Context) (*Loss, error) {
		loss, err := a.opts.Group.AcceptLoss(ctx, at, asked.From, asked.Mark)
		if err == nil {
			scope := access.Scope{Organization: at.Organization, Cluster: at.Cluster}
			a.opts.Auditor.Record(pipeline.Record(r, surfaceName, caller, pipeline.Asked{Scope: scope}, http.StatusOK))
		}
		return loss, err
	})
}

func (a *API) answerLoss(w http.ResponseWriter, r *http.Request, of func(context.Context) (*Loss, error)) error {
	loss, err := of(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return web.WriteJSON(w, http.StatusOK, "application/json", loss)
}
