package ensemble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/base/errs"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble/journal"
)

// copiesDir is the subdirectory of a cluster's directory with this member's copies of the journals.
const copiesDir = "journal-copies"

func (g *Ensemble) copiesDir(uid string) string {
	return filepath.Join(g.opts.Clusters, filepath.Base(uid), copiesDir)
}

// journalOptions returns the options with which this member keeps copies of a cluster's journals.
func (g *Ensemble) journalOptions(uid string) journal.Options {
	return journal.Options{
		Prefix: uid, Replicas: len(g.opts.Members), Integrity: g.opts.Integrity, Logger: g.opts.Logger,
		Etcd: g.opts.Etcd, Keys: g.key("shards/" + uid + "/journal"), Dir: g.copiesDir(uid),
		Member: g.opts.Self, All: g.opts.Members, Peers: g.opts.Membership,
		Session: func() *concurrency.Session { return g.opts.Membership.Session() },
		Suspect: g.suspectLog,
	}
}

// suspectLog makes a member verify its logs, because a record that it returned does not verify.
func (g *Ensemble) suspectLog(member, reason string) { g.opts.Membership.SuspectLog(member, reason) }

// copiedJournals are the journals of an open cluster. The other members can read their copies.
type copiedJournals struct {
	*journal.Journals
	g   *Ensemble
	uid string
}

// openCopiedJournals opens the journals of a cluster.
func (g *Ensemble) openCopiedJournals(ctx context.Context, uid string) (*copiedJournals, error) {
	opened, err := journal.Open(ctx, g.opts.Log, g.journalOptions(uid))
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.openJournals[uid] = opened
	return &copiedJournals{opened, g, uid}, nil
}

// Close implements dataplane.Journals.
func (j *copiedJournals) Close() {
	j.g.mu.Lock()
	if j.g.openJournals[j.uid] == j.Journals {
		delete(j.g.openJournals, j.uid)
	}
	j.g.mu.Unlock()
	j.Journals.Close()
}

func (g *Ensemble) journalsOf(uid string) *journal.Journals {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.openJournals[uid]
}

// JournalHandler serves this member's copies of journals to members that rebuild one, under
// JournalsPath.
func (g *Ensemble) JournalHandler() http.Handler { return journal.Handler(g.journalsOf, g.copiesDir) }

// JournalReport describes a journal of a cluster.
type JournalReport = journal.Report

// ClusterName names a cluster by organization and name.
type ClusterName struct{ Organization, Cluster string }

// Journals describes the journals of a cluster, also if the cluster cannot be opened. from is the
// member whose copy a lost journal would continue from; "" means the longest copy.
func (p *Plane) Journals(ctx context.Context, at ClusterName, from string) ([]JournalReport, error) {
	uid, err := p.findUID(ctx, at)
	if err != nil {
		return nil, err
	}
	return journal.Inspect(ctx, p.ensemble.journalOptions(uid), p.ensemble.journalsOf(uid), from)
}

// AcceptJournalLoss makes a lost journal continue as Journals described it.
func (p *Plane) AcceptJournalLoss(ctx context.Context, at ClusterName, name, from,
	token string,
) (*JournalReport, error) {
	uid, err := p.findUID(ctx, at)
	if err != nil {
		return nil, err
	}
	return journal.AcceptLoss(ctx, p.ensemble.journalOptions(uid), p.ensemble.journalsOf(uid), name, from, token)
}

// findUID returns the UID of a cluster that should run.
func (p *Plane) findUID(ctx context.Context, at ClusterName) (string, error) {
	found, err := p.ensemble.opts.Etcd.Get(ctx, p.specKey(), clientv3.WithPrefix())
	if err != nil {
		return "", fmt.Errorf("reading the specs of clusters from etcd: %w", err)
	}
	for _, kv := range found.Kvs {
		var spec provision.Spec
		err := json.Unmarshal(kv.Value, &spec)
		if err == nil && spec.Organization == at.Organization && spec.Name == at.Cluster {
			return spec.UID, nil
		}
	}
	return "", errs.New(errs.NotFound, "cluster does not exist")
}

// lostJournals returns a provision.JournalLost error if journals of a cluster do not answer on some member.
func (g *Ensemble) lostJournals(ctx context.Context, spec provision.Spec) error {
	options := g.journalOptions(spec.UID)
	lost, err := options.Lost(ctx)
	if err != nil || len(lost) == 0 {
		return err
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		texts = append(texts, fmt.Sprintf("journal %s: %s", name, lost[name]))
	}
	return &provision.JournalLost{Problem: strings.Join(texts, "; ") + ". Show what the members have with: " +
		"freshet ensemble repair " + spec.Organization + "/" + spec.Name}
}

// withLostJournals returns the reason of lost journals with the error of provisioning.
func (g *Ensemble) withLostJournals(ctx context.Context, spec provision.Spec, err error) error {
	if lost := g.lostJournals(ctx, spec); lost != nil {
		return errors.Join(lost, err)
	}
	return err
}
