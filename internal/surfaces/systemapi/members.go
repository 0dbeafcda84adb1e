package systemapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
)

// Ensemble describes and changes the ensemble of the server.
type Ensemble interface {
	// Members describes all members. A single server has none.
	Members(ctx context.Context) (*Members, error)
	// Replace removes a lost member and expects an empty server to join under its name.
	Replace(ctx context.Context, name string) error
	// StepDown makes a member transfer its leaderships to other members.
	StepDown(ctx context.Context, name string) (*SteppedDown, error)
	// Loss returns which data is lost if a shard whose copies and log do not match
	// continues from a source: a member's copy, the log or, if from is "", the source with
	// the most data.
	Loss(ctx context.Context, shard ShardID, from string) (*Loss, error)
	// AcceptLoss makes the shard continue from that source, if its state is still the one
	// that mark identifies.
	AcceptLoss(ctx context.Context, shard ShardID, from, state string) (*Loss, error)
	// Journals describes the journals of a cluster, and which member's copy a lost one would
	// continue from: that of the given member or, if from is "", the longest.
	Journals(ctx context.Context, cluster ClusterID, from string) (*Journals, error)
	// AcceptJournalLoss makes a lost journal continue from a member's copy, if the state is
	// still the one that it identifies.
	AcceptJournalLoss(ctx context.Context, cluster ClusterID, journal, from, state string) (*Journal, error)
}

// Members is the state of an ensemble as the responding member sees it.
type Members struct {
	// Self is the responding member; "" for a single server.
	Self string `json:"self,omitempty"`
	// Controller runs the controllers. EtcdLeader leads the store of resources, LogLeader
	// the log of messages. They are "" while there is no leader, or if the store or log is
	// external.
	Controller string   `json:"controller,omitempty"`
	EtcdLeader string   `json:"etcdLeader,omitempty"`
	LogLeader  string   `json:"logLeader,omitempty"`
	Members    []Member `json:"members"`
	// Shards are the shards of all clusters that run on the responding member.
	Shards []Shard `json:"shards,omitempty"`
	// Streams are the streams of the log and its meta layer, which has no cluster, as the members
	// reported them at Observed.
	Streams  []Stream   `json:"streams,omitempty"`
	Observed *time.Time `json:"observed,omitempty"`
}

// Stream is a stream of the log: the log of a shard, a journal of a cluster, or the meta layer of
// the log.
type Stream struct {
	Name string `json:"name"` // in NATS
	// Cluster is organization and name of the cluster, as "acme/prod"; "" for the meta layer.
	Cluster string `json:"cluster,omitempty"`
	Part    string `json:"part"`   // what the stream stores, for example "log of shard 3"
	Want    int    `json:"want"`   // replicas that it should have
	Leader  string `json:"leader"` // "" while it has none
	// Replicas are those that the stream should have.
	Replicas []Replica `json:"replicas"`
	// Problem is why the stream accepts nothing; "" if it does.
	Problem string `json:"problem,omitempty"`
}

// Replica is a member's replica of a stream.
type Replica struct {
	Member  string `json:"member"`
	Current bool   `json:"current"`
	// Lag is the number of entries that the replica does not have.
	Lag uint64 `json:"lag"`
	// Since is when the replica stopped being current.
	Since *time.Time `json:"since,omitempty"`
	// Problem is why the replica counts as missing; "" if it does not.
	Problem string `json:"problem,omitempty"`
}

// Part is what a member knows about a part of its files.
type Part struct {
	Name     string     `json:"name"`
	Verified *time.Time `json:"verified,omitempty"` // when all its files were last found intact
	Damaged  *time.Time `json:"damaged,omitempty"`  // when the present damage was found
	Healed   *time.Time `json:"healed,omitempty"`   // when a good copy last replaced the part
	Damages  int        `json:"damages,omitempty"`  // how many times damage was found
	Compared *time.Time `json:"compared,omitempty"` // when the contents of all copies were last compared
	// File and Problem describe the present or the last damage.
	File    string `json:"file,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Differs describes a difference between copies that no majority decides.
	Differs string `json:"differs,omitempty"`
}

// Shard is a shard of a cluster.
type Shard struct {
	Organization string `json:"organization"`
	Cluster      string `json:"cluster"`
	Number       int    `json:"number"`
	// Owner is the member that serves it; "" if it has none at the moment.
	Owner string `json:"owner,omitempty"`
	Epoch uint64 `json:"epoch"` // increases with every new owner
	Log   uint64 `json:"log"`   // last position of its log
	// Copies are the members' copies of the shard.
	Copies []Copy `json:"copies"`
	// Problem is why the copy of the responding member cannot be used; "" if it can.
	Problem string `json:"problem,omitempty"`
}

// Copy is a member's copy of a shard.
type Copy struct {
	Member string `json:"member"`
	Live   bool   `json:"live"`
	// Lag is the number of log messages that the copy has not applied. If the member does
	// not respond, it is the last reported number.
	Lag uint64 `json:"lag"`
	// Problem is why the copy cannot be used; "" if it can.
	Problem string `json:"problem,omitempty"`
}

// Member is a member of the ensemble.
type Member struct {
	Name     string `json:"name"`
	Node     int    `json:"node"` // node id in the Kafka protocol
	Internal string `json:"internal"`
	// Live means that the member's lease is valid, Ready that it serves clients.
	Live  bool `json:"live"`
	Ready bool `json:"ready"`
	// The other fields are set for live members only.
	Version   string     `json:"version,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	HTTP      string     `json:"http,omitempty"`
	HTTPS     string     `json:"https,omitempty"`
	Stream    string     `json:"stream,omitempty"`
	StreamTLS string     `json:"streamTLS,omitempty"`
	// ClockAhead is how far the member's clock is ahead of the clock of the responding
	// member, in seconds; negative if it is behind.
	ClockAhead      float64    `json:"clockAheadSeconds"`
	CertificateEnds *time.Time `json:"certificateEnds,omitempty"`
	// Parts are the parts of the member's files, QuarantineBytes the size of the damaged files that
	// it keeps for a day. They are absent if the member does not respond.
	Parts           []Part `json:"parts,omitempty"`
	QuarantineBytes int64  `json:"quarantineBytes,omitempty"`
	// Failing contains why the member cannot serve a cluster, by organization and name of the cluster.
	Failing map[string]string `json:"failing,omitempty"`
	// Problem is the reason why the member does not work properly; "" if it does.
	Problem string `json:"problem,omitempty"`
}

// SteppedDown lists the leaderships that a member has transferred to other members.
type SteppedDown struct {
	Etcd    bool `json:"etcd"`    // the store of resources
	Streams int  `json:"streams"` // number of streams of the log
}

var errMembersDenied = errs.New(errs.Denied, "members of the ensemble are visible to system administrators only")

func (c *call) writeMembers() error {
	list, err := c.api.opts.Ensemble.Members(c.R.Context())
	if err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	web.WriteBody(c.W, http.StatusOK, "application/json", append(text, '\n'))
	return nil
}

func (c *call) replaceMember() error {
	return c.changeMember(func(ctx context.Context, name string) (any, error) {
		return struct{}{}, c.api.opts.Ensemble.Replace(ctx, name)
	})
}

func (c *call) stepDown() error {
	return c.changeMember(
		func(ctx context.Context, name string) (any, error) { return c.api.opts.Ensemble.StepDown(ctx, name) })
}

// changeMember changes the member that the path names. A failure with a 5xx status is also
// recorded, because the change may have had a partial effect.
func (c *call) changeMember(change func(ctx context.Context, name string) (any, error)) error {
	c.member = c.route.Param(&c.path, "name")
	response, err := change(c.R.Context(), c.member)
	c.Changed = err == nil || errorTable.Status(err) >= http.StatusInternalServerError
	if err != nil {
		return err
	}
	return web.WriteJSON(c.W, http.StatusOK, "application/json", response)
}
