package systemapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity/access"
)

// ClusterID names a cluster.
type ClusterID struct{ Organization, Cluster string }

// Journals are the journals of a cluster.
type Journals struct {
	Organization string    `json:"organization"`
	Cluster      string    `json:"cluster"`
	Journals     []Journal `json:"journals"`
}

// Journal describes a journal: its catalogue, its schemas or the consumer groups of a shard.
type Journal struct {
	Name string `json:"name"`
	// Lost is why the journal is closed; "" if it is not.
	Lost string `json:"lost,omitempty"`
	// Needed is the last position that is known to have existed.
	Needed uint64        `json:"needed"`
	Copies []JournalCopy `json:"copies"`
	// From is the member from whose copy a lost journal would continue; "" if none can be used.
	From string `json:"from,omitempty"`
	// State identifies the exact state of that copy. The client sends it back to accept the
	// loss.
	State string `json:"mark,omitempty"`
}

// JournalCopy is a member's copy of a journal.
type JournalCopy struct {
	Member string `json:"member"`
	// Position is the last record in the copy, and Sum identifies all records up to it.
	Position uint64 `json:"position"`
	Sum      string `json:"sum,omitempty"`
	// Missing means that the member did not respond; Position is what it last reported.
	Missing bool   `json:"missing,omitempty"`
	Problem string `json:"problem,omitempty"`
}

var (
	errJournalsDenied = errs.New(errs.Denied, "journals are visible to system administrators only")
	errAcceptJournal  = errs.New(errs.Invalid,
		`body must be {"journal": …, "from": …, "mark": …} with the values of the GET response`)
)

func (c *call) clusterID() ClusterID {
	return ClusterID{
		Organization: c.route.Param(&c.path, "organization"), Cluster: c.route.Param(&c.path, "cluster"),
	}
}

func (c *call) writeJournals() error {
	query, err := url.ParseQuery(c.R.URL.RawQuery)
	if err != nil || len(query["from"]) > 1 || len(query) > len(query["from"]) {
		return errFrom
	}
	list, err := c.api.opts.Ensemble.Journals(c.R.Context(), c.clusterID(), query.Get("from"))
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	return web.WriteJSON(c.W, http.StatusOK, "application/json", list)
}

func (c *call) acceptJournal() error {
	body, err := web.ReadBody(c.R, maxAccept)
	if err != nil {
		return err
	}
	var asked struct{ Journal, From, Mark string }
	if err := json.Unmarshal(body, &asked); err != nil || asked.Journal == "" || asked.From == "" || asked.Mark == "" {
		return errAcceptJournal
	}
	cluster := c.clusterID()
	accepted, err := c.api.opts.Ensemble.AcceptJournalLoss(c.R.Context(), cluster, asked.Journal, asked.From,
		asked.Mark)
	c.Changed = err == nil
	c.Authorization.Scope = access.Scope{Organization: cluster.Organization, Cluster: cluster.Cluster}
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	return web.WriteJSON(c.W, http.StatusOK, "application/json", accepted)
}
