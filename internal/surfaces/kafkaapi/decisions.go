package kafkaapi

import (
	"sync"

	"freshet/internal/base/names"
	"freshet/internal/identity/access"
)

// decisions remembers what a caller was allowed on a connection, as long as nothing
// has changed that it was allowed by. Denials are not remembered: each is recorded.
type decisions struct {
	mu      sync.Mutex // the connection's two goroutines ask
	at      revisions
	allowed map[decision]struct{}
}

// decision is a permission on a topic, or on a group of a tenant.
type decision struct {
	permission access.Permission
	topic      names.Topic
	tenant     string
	group      string
}

// revisions is what decisions depend on: role bindings and roles, and what the
// cluster grants itself.
type revisions struct{ policy, cluster uint64 }

// maxDecisions bounds what one connection remembers.
const maxDecisions = 1024

// revisions returns the present ones; false when nothing can be remembered.
func (c *call) revisions() (revisions, bool) {
	revision := c.conn.server.opts.Revision
	if revision == nil {
		return revisions{}, false
	}
	return revisions{revision(), c.session.cluster.Broker.TopicsRevision()}, true
}

// remembered says whether something was allowed and nothing has changed since.
func (d *decisions) remembered(at revisions, asked decision) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at != at {
		return false
	}
	_, ok := d.allowed[asked]
	return ok
}

// remember notes what was allowed; at is from before it was decided.
func (d *decisions) remember(at revisions, asked decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at != at || d.allowed == nil || len(d.allowed) >= maxDecisions {
		d.at, d.allowed = at, make(map[decision]struct{})
	}
	d.allowed[asked] = struct{}{}
}

// decide asks for permissions, of which any one will do, unless the answer is
// remembered.
func (c *call) decide(asked decision, wanted []access.Permission,
	may func(access.Permission) (bool, error),
) (bool, error) {
	at, keeps := c.revisions()
	for _, p := range wanted {
		asked.permission = p
		if keeps && c.session.decided.remembered(at, asked) {
			return true, nil
		}
		ok, err := may(p)
		if err != nil {
			return false, err
		}
		if ok {
			if keeps {
				c.session.decided.remember(at, asked)
			}
			return true, nil
		}
	}
	return false, nil
}
