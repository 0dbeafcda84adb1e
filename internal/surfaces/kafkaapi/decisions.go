package kafkaapi

import (
	"sync"

	"freshet/internal/base/names"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// decisions caches the permissions that a session was granted until roles, bindings or the
// catalogue change. Denials are not cached, because each one is audited.
type decisions struct {
	mu      sync.Mutex // both goroutines of the connection use it
	at      revisions
	allowed map[decision]struct{}
	gone    map[engine.TopicID]struct{} // deleted topics; an incarnation of a topic never returns
}

// decision is a permission on a topic, on a topic that a group reads, or on a group of a tenant. With somewhere
// it is a permission on anything that a group could read.
type decision struct {
	permission access.Permission
	topic      names.Topic
	tenant     string
	group      string
	somewhere  bool
}

// revisions are the versions of the data that decisions depend on: roles and role bindings, and the
// cluster's own permissions.
type revisions struct{ policy, cluster uint64 }

// maxDecisions bounds the cache of one session.
const maxDecisions = 1024

// revisions returns the current revisions.
func (c *call) revisions() revisions {
	return revisions{c.conn.server.opts.Policy.Revision(), c.session.cluster.Topics.TopicsRevision()}
}

// isAllowed reports whether a decision was granted at the given revisions.
func (d *decisions) isAllowed(at revisions, requested decision) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at != at {
		return false
	}
	_, ok := d.allowed[requested]
	return ok
}

// allow caches a granted decision; at must be read before the decision was made.
func (d *decisions) allow(at revisions, requested decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at != at || d.allowed == nil || len(d.allowed) >= maxDecisions {
		d.at, d.allowed = at, make(map[decision]struct{})
	}
	d.allowed[requested] = struct{}{}
}

// isGone reports whether a topic is known to be deleted.
func (d *decisions) isGone(id engine.TopicID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.gone[id]
	return ok
}

// setGone caches that a topic is deleted.
func (d *decisions) setGone(id engine.TopicID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone == nil || len(d.gone) >= maxDecisions {
		d.gone = make(map[engine.TopicID]struct{})
	}
	d.gone[id] = struct{}{}
}

// decide reports whether the caller has any one of the permissions. It uses the cache and otherwise
// calls may.
func (c *call) decide(requested decision, wanted []access.Permission,
	may func(access.Permission) (bool, error),
) (bool, error) {
	at := c.revisions()
	for _, p := range wanted {
		requested.permission = p
		if c.session.decisions.isAllowed(at, requested) {
			return true, nil
		}
		ok, err := may(p)
		if err != nil {
			return false, err
		}
		if ok {
			c.session.decisions.allow(at, requested)
			return true, nil
		}
	}
	return false, nil
}
