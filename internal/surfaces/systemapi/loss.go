package systemapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity/access"
)

// ShardID names a shard.
type ShardID struct {
	Organization, Cluster string
	Number                int
}

// Loss describes the data that is lost if a shard whose copies and log do not match
// continues.
type Loss struct {
	Organization string `json:"organization"`
	Cluster      string `json:"cluster"`
	Shard        int    `json:"shard"`
	// Owner is the member that serves the shard. If it is set, only copies that are lost
	// are rebuilt.
	Owner string `json:"owner,omitempty"`
	// From is the source that the shard continues from: the copy of a member, or "log".
	From string `json:"from"`
	// State identifies the exact state of that source. The client sends it back to accept
	// the loss.
	State string   `json:"mark"`
	Log   *LossLog `json:"log,omitempty"` // nil if the log does not exist any more
	// LogMessagesLost counts the messages that only the log has and that are lost.
	LogMessagesLost uint64     `json:"logMessagesLost"`
	Copies          []LossCopy `json:"copies"`
	// Absent are members with a copy that did not respond.
	Absent []string `json:"absent,omitempty"`
}

// LossLog is the range of positions in the log.
type LossLog struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// LossCopy is the state of a member's copy.
type LossCopy struct {
	Member string `json:"member"`
	// Position is the last message of the log that the copy has applied; it was written in
	// Epoch.
	Position uint64 `json:"position"`
	Epoch    uint64 `json:"epoch"`
	// GivenUp means that the copy is removed and rebuilt.
	GivenUp bool   `json:"givenUp"`
	Problem string `json:"problem,omitempty"`
}

const maxAccept = 4 << 10 // maximum size of a body, in bytes

var (
	errShardsDenied = errs.New(errs.Denied, "shards are visible to system administrators only")
	errShardNumber  = errs.New(errs.Invalid, "shard number in the path must be an integer from 0 to 65535")
	errFrom         = errs.New(errs.Invalid, "query is malformed; the only parameter is from, at most once")
	errAccept       = errs.New(errs.Invalid, `body must be {"from": …, "mark": …} with the values of the GET response`)
)

// shardID parses the shard that the path names.
func (c *call) shardID() (ShardID, error) {
	shard := ShardID{
		Organization: c.route.Param(&c.path, "organization"), Cluster: c.route.Param(&c.path, "cluster"),
	}
	n, err := strconv.ParseUint(c.route.Param(&c.path, "number"), 10, 16)
	if err != nil {
		return shard, errShardNumber
	}
	shard.Number = int(n)
	return shard, nil
}

func (c *call) writeLoss() error {
	shard, err := c.shardID()
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(c.R.URL.RawQuery)
	if err != nil || len(query["from"]) > 1 || len(query) > len(query["from"]) {
		return errFrom
	}
	loss, err := c.api.opts.Ensemble.Loss(c.R.Context(), shard, query.Get("from"))
	return c.writeLossOf(loss, err)
}

func (c *call) acceptLoss() error {
	shard, err := c.shardID()
	if err != nil {
		return err
	}
	body, err := web.ReadBody(c.R, maxAccept)
	if err != nil {
		return err
	}
	var asked struct{ From, Mark string }
	if err := json.Unmarshal(body, &asked); err != nil || asked.From == "" || asked.Mark == "" {
		return errAccept
	}
	loss, err := c.api.opts.Ensemble.AcceptLoss(c.R.Context(), shard, asked.From, asked.Mark)
	c.Changed = err == nil
	c.Authorization.Scope = access.Scope{Organization: shard.Organization, Cluster: shard.Cluster}
	return c.writeLossOf(loss, err)
}

func (c *call) writeLossOf(loss *Loss, err error) error {
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	return web.WriteJSON(c.W, http.StatusOK, "application/json", loss)
}
