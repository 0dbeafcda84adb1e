package schemas

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"

	"freshet/internal/base/wire"
	"freshet/internal/base/workpool"
)

// The limits for the references of one schema.
const (
	maxReferences     = 1_000    // direct references
	maxReferenceDepth = 64       // levels of references
	maxDependencies   = 4_000    // schemas, direct and indirect
	maxClosureBytes   = 64 << 20 // bytes of these schemas
)

// prepared is a parsed draft that is ready to be stored or compared.
type prepared struct {
	typ       Type
	parsed    parsedSchema
	text      string // the text to store
	refs      []Reference
	targets   []target // the versions that refs refer to
	sum       identity
	unchecked bool
}

// target is the version that a reference refers to.
type target struct {
	subject string
	version int32
	schema  *Schema
}

// prepareOptions has the options of prepare.
type prepareOptions struct {
	deleted  bool // references may refer to soft-deleted versions
	imported bool // skip validation
}

// prepare resolves the references of a draft in a state and parses the draft.
func (r *Registry) prepare(w *job, st *state, subject string, d *Draft, how prepareOptions) (*prepared, error) {
	if strings.TrimSpace(d.Text) == "" {
		return nil, reject(ErrInvalidSchema, "Empty schema")
	}
	p := &prepared{typ: d.Type, unchecked: how.imported}
	if err := p.resolve(st, subject, d, how.deleted); err != nil {
		return nil, err
	}
	c := r.newClosure(w, st)
	f, _, err := c.parse(d.Type, d.Text, p.refs, p.targets, how.imported, maxReferenceDepth)
	switch {
	case err != nil && isTransient(err):
		return nil, err
	case err != nil:
		return nil, invalidSchema(subject, d, "%s", err.Error())
	}
	p.parsed = f
	// Printing is costly, too, because some languages postpone a part of parsing
	// until then. In the lock it is not: the schema was printed before.
	lane := parseLane(d.Type, d.Text, len(c.parsed), c.bytes)
	if w.locked {
		lane = workpool.Small
	}
	err = w.at(lane, func() error {
		p.print(d.Normalize && !how.imported)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.sum = identityOf(p.typ, p.text, p.refs)
	return p, nil
}

// print sets the text and the references to store.
// Quirk: normalize has no effect for JSON Schema.
func (p *prepared) print(normalize bool) {
	if !normalize || p.typ == JSON {
		p.text = p.parsed.canonical()
		return
	}
	p.text = p.parsed.normalized()
	p.refs = normalizeReferences(p.refs)
}

const noReference = "No schema reference found for subject \"%s\" and version %s"

// resolve finds the versions that the references of the draft refer to.
func (p *prepared) resolve(st *state, subject string, d *Draft, deleted bool) error {
	if len(d.References) == 0 {
		return nil
	}
	if len(d.References) > maxReferences {
		return invalidSchema(subject, d, "schema has more than %d references", maxReferences)
	}
	p.refs = slices.Clone(d.References)
	p.targets = make([]target, len(p.refs))
	for i := range p.refs {
		ref := &p.refs[i]
		if ref.Name == "" || ref.Subject == "" || (ref.Version < 1 && VersionID(ref.Version) != Latest) {
			return reject(ErrInvalidSchema, "Invalid reference")
		}
		v, err := st.version(ref.Subject, VersionID(ref.Version), deleted)
		readable := err == nil
		if readable && d.Reader != nil {
			if readable, err = d.Reader.MayRead(ref.Subject); err != nil {
				return err
			}
		}
		if !readable {
			return invalidSchema(subject, d, noReference, ref.Subject, VersionID(ref.Version))
		}
		ref.Version = v.Version
		p.targets[i] = target{subject: ref.Subject, version: v.Version, schema: v.Schema}
	}
	return nil
}

// normalizeReferences returns the references sorted by subject and version,
// without duplicates.
func normalizeReferences(refs []Reference) []Reference {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b Reference) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), cmp.Compare(a.Version, b.Version))
	})
	distinct := sorted[:0]
	for _, ref := range sorted {
		if !slices.Contains(distinct, ref) {
			distinct = append(distinct, ref)
		}
	}
	return distinct
}

// closure parses a schema and all schemas that it refers to, directly and
// indirectly. It visits each schema once. The limits apply to all of them, whether
// or not they are in the cache.
type closure struct {
	r      *Registry
	work   *job
	st     *state
	parsed map[*Schema]parsedDependency
	bytes  int
}

// parsedDependency is a schema of the closure that is parsed already.
type parsedDependency struct {
	parsed parsedSchema
	depth  int // levels of references
}

func (r *Registry) newClosure(w *job, st *state) *closure { return &closure{r: r, work: w, st: st} }

// stored returns the parsed form of a stored schema.
func (r *Registry) stored(w *job, st *state, s *Schema) (parsedSchema, error) {
	c := r.newClosure(w, st)
	c.bytes = -len(s.body) // the schema itself does not count, as in the check of a draft
	f, _, err := c.stored(s, maxReferenceDepth)
	return f, err
}

// parse parses a text whose references refer to the targets and have at most depth levels. It
// returns the parsed schema and its levels of references.
func (c *closure) parse(t Type, text string, refs []Reference, targets []target, imported bool,
	depth int,
) (parsedSchema, int, error) {
	height := 0
	deps := make([]dependency, len(refs))
	for i, target := range targets {
		f, below, err := c.stored(target.schema, depth-1)
		if err != nil {
			return nil, 0, err
		}
		deps[i] = dependency{Reference: refs[i], parsed: f}
		if height = max(height, below+1); height > maxReferenceDepth {
			return nil, 0, errTooDeep
		}
	}
	f, err := c.parseAs(parseKey(t, text, refs, targets, c.st.epoch, imported), t, text, deps, imported)
	return f, height, err
}

func (c *closure) stored(s *Schema, depth int) (parsedSchema, int, error) {
	if seen, ok := c.parsed[s]; ok {
		return seen.parsed, seen.depth, nil
	}
	if depth < 0 {
		return nil, 0, errTooDeep
	}
	if c.bytes += len(s.body); c.bytes > maxClosureBytes || len(c.parsed) > maxDependencies {
		return nil, 0, errTooMany
	}
	targets := make([]target, len(s.References))
	for i, ref := range s.References {
		// A stored schema can refer to soft-deleted versions.
		v, err := c.st.version(ref.Subject, VersionID(ref.Version), true)
		if err != nil {
			return nil, 0, reject(ErrInvalidSchema, noReference, ref.Subject, VersionID(ref.Version))
		}
		targets[i] = target{subject: ref.Subject, version: ref.Version, schema: v.Schema}
	}
	// Validation links a Protobuf file with all files that it imports, directly
	// and indirectly. A stored file was linked when it was registered; linking
	// every file of the closure again would take quadratic time.
	imported := s.unchecked || s.Type == Protobuf
	f, height, err := c.parse(s.Type, s.Text(), s.References, targets, imported, depth)
	if err != nil {
		return nil, 0, err
	}
	if c.parsed == nil {
		c.parsed = make(map[*Schema]parsedDependency)
	}
	c.parsed[s] = parsedDependency{parsed: f, depth: height}
	return f, height, nil
}

func (c *closure) parseAs(key parseID, t Type, text string, deps []dependency, imported bool) (parsedSchema, error) {
	if f, ok := c.r.parsed.Get(key); ok {
		return f, nil
	}
	if f, ok := c.work.parsed[key]; ok {
		return f, nil
	}
	var f parsedSchema
	err := c.work.at(parseLane(t, text, len(c.parsed), c.bytes), func() (err error) {
		f, err = languages[t].parse(text, deps, imported, c.work.Spend)
		return err
	})
	if err != nil {
		return nil, err
	}
	f = c.r.parsed.Add(key, f, parsedCost(text))
	if c.work.parsed != nil {
		c.work.parsed[key] = f
	}
	return f, nil
}

// parsedCost estimates the memory of a parsed schema: several times its text.
func parsedCost(text string) int64 { return 1024 + 10*int64(len(text)) }

// parseID identifies a parsed schema in the cache.
type parseID [sha256.Size]byte

// parseKey returns the id of a text together with the schemas that it refers to.
// The id of a schema identifies its content, unless an import binds the id again
// after a hard deletion; the epoch distinguishes these cases.
func parseKey(t Type, text string, refs []Reference, targets []target, epoch uint64, imported bool) parseID {
	b := make(wire.Writer, 0, 16+len(text)+128*len(refs))
	b = append(b, byte(t), flags(imported))
	b.Text(text)
	for i, ref := range refs {
		b.Text(ref.Name)
		b.Text(ref.Subject)
		b.Varint(int64(ref.Version))
		b.Varint(int64(targets[i].schema.ID))
		b.Uvarint(epoch)
	}
	return sha256.Sum256(b)
}
