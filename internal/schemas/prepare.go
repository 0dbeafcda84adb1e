package schemas

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Bounds of what one schema may draw in by references.
const (
	maxReferences     = 1_000    // of one schema
	maxReferenceDepth = 64       // references of references
	maxDependencies   = 4_000    // schemas drawn in, counted each time they are used
	maxClosureBytes   = 64 << 20 // their texts together
)

// prepared is a draft, parsed and ready to be stored or compared.
type prepared struct {
	typ       Type
	form      form
	text      string // as it is stored
	refs      []Reference
	targets   []target // the versions the references mean
	sum       identity
	unchecked bool
}

// target is a version that a reference means.
type target struct {
	subject string
	version int32
	schema  *Schema
}

// preparing says how a draft is to be read.
type preparing struct {
	deleted  bool // references may mean soft-deleted versions
	imported bool // skip validation
}

// prepare resolves and parses a draft as of a state.
func (r *Registry) prepare(ctx context.Context, st *state, subject string, d *Draft, how preparing) (*prepared, error) {
	if strings.TrimSpace(d.Text) == "" {
		return nil, refuse(ErrInvalidSchema, "Empty schema")
	}
	p := &prepared{typ: d.Type, unchecked: how.imported}
	if err := p.resolve(st, subject, d, how.deleted); err != nil {
		return nil, err
	}
	budget := &closure{schemas: maxDependencies, bytes: maxClosureBytes}
	deps, err := r.dependencies(ctx, st, p.refs, p.targets, budget, maxReferenceDepth)
	if err == nil {
		p.form, err = r.parse(ctx, d.Type, d.Text, deps, p.targets, st.epoch, how.imported)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, invalidSchema(subject, d, "%s", err.Error())
	}
	p.text = p.form.canonical()
	// Quirk: normalize does nothing for JSON Schema. An import is stored as it is.
	if d.Normalize && d.Type != JSON && !how.imported {
		p.text = p.form.normalized()
		p.refs = normalizeReferences(p.refs)
	}
	p.sum = identityOf(p.typ, p.text, p.refs)
	return p, nil
}

// resolve finds the versions that the draft's references mean.
func (p *prepared) resolve(st *state, subject string, d *Draft, deleted bool) error {
	if len(d.References) == 0 {
		return nil
	}
	if len(d.References) > maxReferences {
		return invalidSchema(subject, d, "a schema can have at most %d references", maxReferences)
	}
	p.refs = slices.Clone(d.References)
	p.targets = make([]target, len(p.refs))
	for i := range p.refs {
		ref := &p.refs[i]
		if ref.Name == "" || ref.Subject == "" || (ref.Version < 1 && VersionID(ref.Version) != Latest) {
			return refuse(ErrInvalidSchema, "Invalid reference")
		}
		v, err := st.version(ref.Subject, VersionID(ref.Version), deleted)
		if err != nil {
			return invalidSchema(subject, d, "No schema reference found for subject \"%s\" and version %d", ref.Subject, ref.Version)
		}
		ref.Version = v.Version
		p.targets[i] = target{subject: ref.Subject, version: v.Version, schema: v.Schema}
	}
	return nil
}

// normalizeReferences sorts by subject and version and drops repetitions.
func normalizeReferences(refs []Reference) []Reference {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b Reference) int {
		if c := strings.Compare(a.Subject, b.Subject); c != 0 {
			return c
		}
		return int(a.Version) - int(b.Version)
	})
	distinct := sorted[:0]
	for _, ref := range sorted {
		if !slices.Contains(distinct, ref) {
			distinct = append(distinct, ref)
		}
	}
	return distinct
}

// closure is what may still be drawn in by references.
type closure struct {
	schemas int
	bytes   int
}

// dependencies parses the schemas that references mean, those that they refer
// to first.
func (r *Registry) dependencies(ctx context.Context, st *state, refs []Reference, targets []target, left *closure, depth int) ([]dependency, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	if depth == 0 {
		return nil, errTooDeep
	}
	deps := make([]dependency, len(refs))
	for i, t := range targets {
		left.schemas--
		left.bytes -= len(t.schema.body)
		if left.schemas < 0 || left.bytes < 0 {
			return nil, errTooMany
		}
		f, err := r.parseStored(ctx, st, t.schema, left, depth-1)
		if err != nil {
			return nil, err
		}
		deps[i] = dependency{Reference: refs[i], form: f}
	}
	return deps, nil
}

// stored returns the parsed form of a stored schema.
func (r *Registry) stored(ctx context.Context, st *state, s *Schema) (form, error) {
	return r.parseStored(ctx, st, s, &closure{schemas: maxDependencies, bytes: maxClosureBytes}, maxReferenceDepth)
}

func (r *Registry) parseStored(ctx context.Context, st *state, s *Schema, left *closure, depth int) (form, error) {
	targets := make([]target, len(s.References))
	for i, ref := range s.References {
		// What a stored schema refers to can be soft-deleted, and in an import
		// may not have come yet.
		v, err := st.version(ref.Subject, VersionID(ref.Version), true)
		if err != nil {
			return nil, refuse(ErrInvalidSchema, "No schema reference found for subject \"%s\" and version %d", ref.Subject, ref.Version)
		}
		targets[i] = target{subject: ref.Subject, version: ref.Version, schema: v.Schema}
	}
	text := s.Text()
	key := parseKey(s.Type, text, s.References, targets, st.epoch, s.unchecked)
	if f, ok := r.parsed.get(key); ok {
		return f, nil
	}
	deps, err := r.dependencies(ctx, st, s.References, targets, left, depth)
	if err != nil {
		return nil, err
	}
	return r.parseAs(ctx, key, s.Type, text, deps, s.unchecked)
}

func (r *Registry) parse(ctx context.Context, t Type, text string, deps []dependency, targets []target, epoch uint64, imported bool) (form, error) {
	refs := make([]Reference, len(deps))
	for i := range deps {
		refs[i] = deps[i].Reference
	}
	return r.parseAs(ctx, parseKey(t, text, refs, targets, epoch, imported), t, text, deps, imported)
}

func (r *Registry) parseAs(ctx context.Context, key cacheKey, t Type, text string, deps []dependency, imported bool) (form, error) {
	if f, ok := r.parsed.get(key); ok {
		return f, nil
	}
	if err := r.startWork(ctx); err != nil {
		return nil, err
	}
	defer r.endWork()
	f, err := languages[t].parse(text, deps, imported)
	if err != nil {
		return nil, err
	}
	r.parsed.put(key, f, len(text))
	return f, nil
}

// parseKey names a text together with everything it draws in. An id means the
// same content for ever, except where an import binds it anew after a hard
// delete; the epoch tells those apart.
func parseKey(t Type, text string, refs []Reference, targets []target, epoch uint64, imported bool) cacheKey {
	b := make([]byte, 0, 256)
	b = append(b, byte(t), flags(imported))
	b = binary.AppendUvarint(b, uint64(len(text)))
	h := sha256.New()
	h.Write(b)
	h.Write([]byte(text))
	b = b[:0]
	for i, ref := range refs {
		b = appendString(b, ref.Name)
		b = appendString(b, ref.Subject)
		b = appendInt(b, int64(ref.Version))
		b = appendInt(b, int64(targets[i].schema.ID))
		b = binary.AppendUvarint(b, epoch)
	}
	h.Write(b)
	return cacheKey(h.Sum(nil))
}
