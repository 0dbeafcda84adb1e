package access

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"freshet/internal/base/revision"
)

// policyShards is the number of maps over which subjects are distributed, so that a change
// of one binding copies only a small map.
const policyShards = 256

// Policy contains the role bindings of all organizations in memory and authorizes calls by
// them. The write path of the resource store and informers report bindings; both may
// repeat reports, and reports may be late.
type Policy struct {
	seed   maphash.Seed
	shards [policyShards]atomic.Pointer[map[subjectKey][]*grant] // written under mu, read without it

	clusters ClusterGrants // nil: clusters grant nothing; set before the policy is used
	revision atomic.Uint64 // see Revision

	mu       sync.Mutex // protects the fields below and writes to shards
	bindings *revision.Map[bindingKey, *compiledBinding]
	counts   map[string]int // bindings per organization
	roles    organizationRoles
}

// tombstonesKept bounds the number of tombstones of bindings, and of roles. Late reports
// are seconds old.
const tombstonesKept = 1 << 14

type bindingKey struct{ organization, name string }

// subjectKey identifies the subject of a grant.
type subjectKey struct {
	organization string
	kind         string
	name         string
}

// compiledBinding is a binding in the policy: its grant and its subjects. The grant is nil if the
// binding is not valid or its role does not exist.
type compiledBinding struct {
	grant    *grant
	subjects []subjectKey

	// For a binding to a role of its organization: the role, and grant and subjects
	// without it.
	roleRef     roleKey
	withoutRole *grant
	allSubjects []subjectKey
}

// NewPolicy returns a policy without bindings: it allows only administrators.
func NewPolicy() *Policy {
	p := &Policy{
		seed:     maphash.MakeSeed(),
		bindings: revision.NewMap[bindingKey, *compiledBinding](tombstonesKept),
		counts:   make(map[string]int),
		roles:    newOrganizationRoles(),
	}
	for i := range p.shards {
		p.shards[i].Store(&map[subjectKey][]*grant{})
	}
	return p
}

// SetBinding adds or replaces a binding. It returns a FieldError if the binding is not
// valid or its role does not exist. Such a binding replaces its predecessor, but grants
// nothing until the role is created.
func (p *Policy) SetBinding(b Binding) error {
	if p.confirmUnchanged(&b) {
		return nil
	}
	b.Subjects = slices.Clone(b.Subjects)
	b.ResourceNames = slices.Clone(b.ResourceNames)
	g, err := b.compile()
	next := &compiledBinding{}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
	case g.role == nil:
		next.roleRef, next.withoutRole, next.allSubjects = roleKey{b.Organization, b.Role}, g, b.subjectKeys()
		err = p.setGrantLocked(next)
	default:
		next.grant, next.subjects = g, b.subjectKeys()
	}
	key := bindingKey{b.Organization, b.Name}
	old, known := p.bindings.Get(key)
	if !p.bindings.Put(key, b.Revision, next) {
		return err
	}
	p.roles.bindingChanged(key, old, next)
	p.replaceLocked(old, next)
	if !known {
		p.counts[b.Organization]++
	}
	return err
}

// confirmUnchanged reports whether the binding is unchanged, and stores its revision then. Most
// reports are repeats, and compiling a condition is the most expensive step.
func (p *Policy) confirmUnchanged(b *Binding) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := bindingKey{b.Organization, b.Name}
	known, ok := p.bindings.Get(key)
	if !ok || known.grant == nil || !known.grant.source.same(b) {
		return false
	}
	p.bindings.Put(key, b.Revision, known)
	return true
}

// DeleteBinding deletes a binding. The revision (0 if it is not known) prevents that a late
// SetBinding brings it back.
func (p *Policy) DeleteBinding(organization, name string, revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := bindingKey{organization, name}
	old, known := p.bindings.Get(key)
	if !p.bindings.Delete(key, revision) {
		return // a newer binding has the same name
	}
	p.roles.bindingChanged(key, old, nil)
	p.replaceLocked(old, &compiledBinding{})
	if known {
		if p.counts[organization]--; p.counts[organization] == 0 {
			delete(p.counts, organization)
		}
	}
}

// subjectKeys returns the distinct subjects of a binding. It skips identity pools:
// bindings may contain them, but no principal authenticates through one.
func (b *Binding) subjectKeys() []subjectKey {
	var out []subjectKey
	for _, s := range b.Subjects {
		key := subjectKey{b.Organization, s.Kind, s.Name}
		if s.Kind != SubjectIdentityPool && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// replaceLocked replaces the grants of the binding old with those of next. For a subject
// of both, the change is atomic: it always has one of the grants. old is nil for a new
// binding.
func (p *Policy) replaceLocked(old, next *compiledBinding) {
	edits := make(map[*atomic.Pointer[map[subjectKey][]*grant]][]subjectKey)
	touch := func(c *compiledBinding) {
		if c == nil {
			return
		}
		for _, s := range c.subjects {
			shard := p.shard(s)
			edits[shard] = append(edits[shard], s)
		}
	}
	touch(old)
	touch(next)
	for shard, subjects := range edits {
		grants := maps.Clone(*shard.Load())
		for _, s := range subjects {
			list := slices.DeleteFunc(slices.Clone(grants[s]), func(g *grant) bool {
				return (old != nil && g == old.grant) || g == next.grant
			})
			if slices.Contains(next.subjects, s) {
				list = append(list, next.grant)
			}
			if len(list) == 0 {
				delete(grants, s)
			} else {
				grants[s] = list
			}
		}
		shard.Store(&grants)
	}
	p.revision.Add(1)
}

// Revision returns a number that changes with every change of bindings and roles. A caller
// that caches a decision must read it before the decision, and decide again when it has
// changed.
func (p *Policy) Revision() uint64 { return p.revision.Load() }

func (p *Policy) shard(s subjectKey) *atomic.Pointer[map[subjectKey][]*grant] {
	return &p.shards[maphash.String(p.seed, s.name)%policyShards]
}

// grants returns the grants of a subject.
func (p *Policy) grants(s subjectKey) []*grant { return (*p.shard(s).Load())[s] }

// Count returns the number of bindings of an organization, including those that are not
// valid.
func (p *Policy) Count(organization string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[organization]
}

// Maximum number of bindings per subject, and of those with a condition. Every decision
// about the subject checks all of them.
const (
	maxPerSubject           = 500
	maxConditionsPerSubject = 50
)

// MayAdd returns an error if a subject of the binding has too many bindings.
func (p *Policy) MayAdd(b *Binding) error {
	for _, s := range b.subjectKeys() {
		total, conditions := 0, 0
		for _, g := range p.grants(s) {
			if g.binding == b.Name {
				continue // the binding replaces it
			}
			total++
			if g.condition != nil {
				conditions++
			}
		}
		switch {
		case total >= maxPerSubject:
			return fmt.Errorf("exceeded quota: %s %s has %d role bindings, limited to %d; use one with several "+
				"resourceNames instead", s.kind, s.name, total, maxPerSubject)
		case b.CEL != "" && conditions >= maxConditionsPerSubject:
			return fmt.Errorf("exceeded quota: %s %s has %d role bindings with a condition, limited to %d; use "+
				"resourceNames instead", s.kind, s.name, conditions, maxConditionsPerSubject)
		}
	}
	return nil
}
