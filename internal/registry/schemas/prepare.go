package schemas

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"freshet/internal/base/workpool"
)

// Bounds of what one schema may draw in by references.
const (
	maxReferences     = 1_000    // of one schema
	maxReferenceDepth = 64       // references of references
	maxDependencies   = 4_000    // schemas drawn in
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
func (r *Registry) prepare(w *effort, st *state, subject string, d *Draft, how preparing) (*prepared, error) {
	if strings.TrimSpace(d.Text) == "" {
		return nil, refuse(ErrInvalidSchema, "Empty schema")
	}
	p := &prepared{typ: d.Type, unchecked: how.imported}
	if err := p.resolve(st, subject, d, how.deleted); err != nil {
		return nil, err
	}
	c := r.newClosure(w, st)
	f, _, err := c.parse(d.Type, d.Text, p.refs, p.targets, how.imported)
	switch {
	case err != nil && passes(err):
		return nil, err
	case err != nil:
		return nil, invalidSchema(subject, d, "%s", err.Error())
	}
	p.form = f
	// Printing is work as parsing is, of which some is put off until then. What
	// is parsed in the lock was printed before.
	lane := parseLane(d.Type, d.Text, len(c.known), c.bytes)
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

// print sets what is stored. An import is stored as it is.
// Quirk: normalize does nothing for JSON Schema.
func (p *prepared) print(normalize bool) {
	if !normalize || p.typ == JSON {
		p.text = p.form.canonical()
		return
	}
	p.text = p.form.normalized()
	p.refs = normalizeReferences(p.refs)
}

const noReference = "No schema reference found for subject \"%s\" and version %s"

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
		readable := err == nil
		if readable && d.MayRead != nil {
			if readable, err = d.MayRead(ref.Subject); err != nil {
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

// closure parses a schema with everything it draws in by references. Each
// schema is looked at once, and what is allowed does not depend on what the
// cache happens to hold.
type closure struct {
	r     *Registry
	work  *effort
	st    *state
	known map[*Schema]drawnIn
	bytes int
}

// drawnIn is a schema that is parsed already, and how deep its references go.
type drawnIn struct {
	form   form
	height int
}

func (r *Registry) newClosure(w *effort, st *state) *closure {
	return &closure{r: r, work: w, st: st}
}

// stored returns the parsed form of a stored schema.
func (r *Registry) stored(w *effort, st *state, s *Schema) (form, error) {
	c := r.newClosure(w, st)
	c.bytes = -len(s.body) // what it draws in counts, as when it was a draft
	f, _, err := c.stored(s, maxReferenceDepth)
	return f, err
}

// parse reads a text whose references mean the targets.
func (c *closure) parse(t Type, text string, refs []Reference, targets []target, imported bool) (form, int, error) {
	return c.parseBelow(t, text, refs, targets, imported, maxReferenceDepth)
}

func (c *closure) parseBelow(t Type, text string, refs []Reference, targets []target, imported bool,
	depth int,
) (form, int, error) {
	height := 0
	deps := make([]dependency, len(refs))
	for i, target := range targets {
		f, below, err := c.stored(target.schema, depth-1)
		if err != nil {
			return nil, 0, err
		}
		deps[i] = dependency{Reference: refs[i], form: f}
		if height = max(height, below+1); height > maxReferenceDepth {
			return nil, 0, errTooDeep
		}
	}
	f, err := c.parseAs(parseKey(t, text, refs, targets, c.st.epoch, imported), t, text, deps, imported)
	return f, height, err
}

func (c *closure) stored(s *Schema, depth int) (form, int, error) {
	if seen, ok := c.known[s]; ok {
		return seen.form, seen.height, nil
	}
	if depth < 0 {
		return nil, 0, errTooDeep
	}
	if c.bytes += len(s.body); c.bytes > maxClosureBytes || len(c.known) > maxDependencies {
		return nil, 0, errTooMany
	}
	targets := make([]target, len(s.References))
	for i, ref := range s.References {
		// What a stored schema refers to can be soft-deleted.
		v, err := c.st.version(ref.Subject, VersionID(ref.Version), true)
		if err != nil {
			return nil, 0, refuse(ErrInvalidSchema, noReference, ref.Subject, VersionID(ref.Version))
		}
		targets[i] = target{subject: ref.Subject, version: ref.Version, schema: v.Schema}
	}
	// A Protobuf file is linked with everything below it. What is stored was
	// linked when it came; doing so again for each of hundreds of files would
	// take their number squared.
	imported := s.unchecked || s.Type == Protobuf
	f, height, err := c.parseBelow(s.Type, s.Text(), s.References, targets, imported, depth)
	if err != nil {
		return nil, 0, err
	}
	if c.known == nil {
		c.known = make(map[*Schema]drawnIn)
	}
	c.known[s] = drawnIn{form: f, height: height}
	return f, height, nil
}

func (c *closure) parseAs(key parseID, t Type, text string, deps []dependency, imported bool) (form, error) {
	if f, ok := c.r.parsed.Get(key); ok {
		return f, nil
	}
	if f, ok := c.work.parsed[key]; ok {
		return f, nil
	}
	var f form
	err := c.work.at(parseLane(t, text, len(c.known), c.bytes), func() (err error) {
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

// parsedCost is what a parsed schema takes in the cache: several times its text.
func parsedCost(text string) int64 { return 1024 + 10*int64(len(text)) }

// parseID names a parsed schema in the cache.
type parseID [sha256.Size]byte

// parseKey names a text together with everything it draws in. An id means the
// same content forever, except where an import binds it again after a hard
// delete; the epoch tells those apart.
func parseKey(t Type, text string, refs []Reference, targets []target, epoch uint64, imported bool) parseID {
	b := make([]byte, 0, 16+len(text)+128*len(refs))
	b = append(b, byte(t), flags(imported))
	b = appendString(b, text)
	for i, ref := range refs {
		b = appendString(b, ref.Name)
		b = appendString(b, ref.Subject)
		b = appendInt(b, int64(ref.Version))
		b = appendInt(b, int64(targets[i].schema.ID))
		b = binary.AppendUvarint(b, epoch)
	}
	return sha256.Sum256(b)
}
