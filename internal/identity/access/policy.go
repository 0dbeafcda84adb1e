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

// policyShards spreads subjects, so that changing one binding copies a small
// map and reading never waits.
const policyShards = 256

// Policy holds the bindings of all organizations in memory and answers from
// them. Bindings are fed by the resource store's write path and by informers;
// both may repeat themselves and arrive late.
type Policy struct {
	seed   maphash.Seed
	shards [policyShards]atomic.Pointer[map[subjectKey][]*grant] // written under mu, read without

	clusters ClusterGrants // nil: they grant nothing; set before the policy is used
	revision atomic.Uint64 // see Revision

	mu       sync.Mutex // one writer
	bindings *revision.Map[bindingKey, *compiled]
	counts   map[string]int // bindings per organization
	own      ownRoles
}

// tombstonesKept bounds the memory of deleted bindings; late events are seconds
// old.
const tombstonesKept = 1 << 14

type bindingKey struct{ organization, name string }

// subjectKey is who a grant is for.
type subjectKey struct {
	organization string
	kind         string
	name         string
}

// compiled is what the policy knows of a binding: its grant and who has it. The
// grant of a binding that is not valid, or whose role is not there, is nil.
type compiled struct {
	grant    *grant
	subjects []subjectKey

	// Of a binding to a role of its organization: what it is without the role.
	ref   roleKey
	form  *grant
	whose []subjectKey
}

// NewPolicy makes a policy without bindings: only administrators may do
// anything.
func NewPolicy() *Policy {
	p := &Policy{
		seed:     maphash.MakeSeed(),
		bindings: revision.NewMap[bindingKey, *compiled](tombstonesKept),
		counts:   make(map[string]int),
		own:      newOwnRoles(),
	}
	for i := range p.shards {
		p.shards[i].Store(&map[subjectKey][]*grant{})
	}
	return p
}

// SetBinding adds or replaces a binding. A binding that is not valid, or whose role
// is not there (a FieldError), grants nothing, and its predecessor under the name
// nothing any more. When the role comes, the binding is in force.
func (p *Policy) SetBinding(b Binding) error {
	if p.confirm(&b) {
		return nil
	}
	b.Subjects = slices.Clone(b.Subjects)
	b.ResourceNames = slices.Clone(b.ResourceNames)
	g, err := b.compile()
	next := &compiled{}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
	case g.role == nil:
		next.ref, next.form, next.whose = roleKey{b.Organization, b.Role}, g, b.subjectKeys()
		err = p.fillLocked(next)
	default:
		next.grant, next.subjects = g, b.subjectKeys()
	}
	key := bindingKey{b.Organization, b.Name}
	old, known := p.bindings.Get(key)
	if !p.bindings.Put(key, b.Revision, next) {
		return err
	}
	p.own.moved(key, old, next)
	p.replaceLocked(old, next)
	if !known {
		p.counts[b.Organization]++
	}
	return err
}

// confirm notes a binding that is in force as it is. Most of what is fed repeats
// itself, and compiling a condition takes longer than all the rest.
func (p *Policy) confirm(b *Binding) bool {
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

// DeleteBinding ends a binding. The revision (0 if not known) keeps a late
// SetBinding from bringing it back.
func (p *Policy) DeleteBinding(organization, name string, revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := bindingKey{organization, name}
	old, known := p.bindings.Get(key)
	if !p.bindings.Delete(key, revision) {
		return // a younger binding of the same name
	}
	p.own.moved(key, old, nil)
	p.replaceLocked(old, &compiled{})
	if known {
		if p.counts[organization]--; p.counts[organization] == 0 {
			delete(p.counts, organization)
		}
	}
}

// subjectKeys lists whom a binding is for, each once. Identity pools are
// accepted in bindings but nobody signs in through one here.
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

// replaceLocked moves subjects from one binding's grant to another's. A subject
// of both changes over in one step: there is no moment without either. It is
// called with mu held; old is nil for a binding that was not known.
func (p *Policy) replaceLocked(old, next *compiled) {
	edits := make(map[*atomic.Pointer[map[subjectKey][]*grant]][]subjectKey)
	touch := func(c *compiled) {
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

// Revision moves when what bindings and roles grant has changed: who keeps a
// decision asks for it before deciding, and decides again once it has moved.
func (p *Policy) Revision() uint64 { return p.revision.Load() }

func (p *Policy) shard(s subjectKey) *atomic.Pointer[map[subjectKey][]*grant] {
	return &p.shards[maphash.String(p.seed, s.name)%policyShards]
}

// grants returns what a subject was granted.
func (p *Policy) grants(s subjectKey) []*grant {
	return (*p.shard(s).Load())[s]
}

// Count counts the bindings of an organization, in force or not.
func (p *Policy) Count(organization string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[organization]
}

// How many bindings may name one subject, and how many of them with a condition:
// every decision about the subject goes through them.
const (
	maxPerSubject           = 500
	maxConditionsPerSubject = 50
)

// MayAdd reports whether the subjects of a binding can take one more.
func (p *Policy) MayAdd(b *Binding) error {
	for _, s := range b.subjectKeys() {
		total, conditions := 0, 0
		for _, g := range p.grants(s) {
			if g.binding == b.Name {
				continue // it is replaced
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
