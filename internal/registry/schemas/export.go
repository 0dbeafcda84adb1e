package schemas

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"time"
)

// The file of an export has one JSON object per line: a header, every version
// after the versions that it refers to, every level that was set, and a trailer
// with the number of lines, so that an import detects a truncated file.

const (
	exportFormat  = "freshet-registry"
	exportVersion = 1
)

// exportLine is any line of the file. Its Kind determines which members it has.
type exportLine struct {
	Kind string `json:"kind"` // registry, version, level, end

	Format  string `json:"format,omitempty"`  // registry
	Edition int    `json:"edition,omitempty"` // registry
	LastID  int32  `json:"lastId,omitempty"`  // registry

	Subject       string      `json:"subject,omitempty"`       // version, level
	Version       int32       `json:"version,omitempty"`       // version
	ID            int32       `json:"id,omitempty"`            // version
	SchemaType    string      `json:"schemaType,omitempty"`    // version
	References    []Reference `json:"references,omitempty"`    // version
	Schema        string      `json:"schema,omitempty"`        // version
	Deleted       bool        `json:"deleted,omitempty"`       // version
	RegisteredAt  string      `json:"registeredAt,omitempty"`  // version
	Compatibility string      `json:"compatibility,omitempty"` // level

	Lines int `json:"lines,omitempty"` // end
}

const (
	lineRegistry = "registry"
	lineVersion  = "version"
	lineLevel    = "level"
	lineEnd      = "end"
)

// Export writes the whole registry.
func (r *Registry) Export(ctx context.Context, w io.Writer) error {
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return err
	}
	e := &exporter{ctx: ctx, st: st, out: bufio.NewWriterSize(w, 64<<10), done: make(map[versionKey]struct{})}
	e.enc = json.NewEncoder(e.out)
	e.enc.SetEscapeHTML(false)
	e.write(exportLine{Kind: lineRegistry, Format: exportFormat, Edition: exportVersion, LastID: st.lastID})
	st.subjects.Scan(func(name string, sub *subject) bool {
		for _, v := range sub.versions {
			e.version(name, v, maxReferenceDepth)
		}
		return e.err == nil
	})
	st.subjects.Scan(func(name string, sub *subject) bool {
		if sub.level != 0 {
			e.write(exportLine{Kind: lineLevel, Subject: name, Compatibility: sub.level.String()})
		}
		return e.err == nil
	})
	e.write(exportLine{Kind: lineEnd, Lines: e.lines})
	if e.err != nil {
		return e.err
	}
	return e.out.Flush()
}

type versionKey struct {
	subject string
	version int32
}

type exporter struct {
	ctx   context.Context // of the call of Export
	st    *state
	out   *bufio.Writer
	enc   *json.Encoder
	done  map[versionKey]struct{}
	lines int
	err   error
}

// version writes a version after the versions that it refers to.
func (e *exporter) version(name string, v versionEntry, depth int) {
	key := versionKey{name, v.number}
	if _, ok := e.done[key]; ok || e.err != nil || depth == 0 {
		return
	}
	e.done[key] = struct{}{}
	for _, ref := range v.schema.References {
		if sub, ok := e.st.subjects.Get(ref.Subject); ok {
			if target, ok := sub.entry(VersionID(ref.Version), true); ok {
				e.version(ref.Subject, target, depth-1)
			}
		}
	}
	e.write(exportLine{
		Kind:         lineVersion,
		Subject:      name,
		Version:      v.number,
		ID:           v.schema.ID,
		SchemaType:   v.schema.Type.String(),
		References:   v.schema.References,
		Schema:       v.schema.Text(),
		Deleted:      v.deleted,
		RegisteredAt: time.UnixMilli(v.at).UTC().Format(time.RFC3339Nano),
	})
}

func (e *exporter) write(line exportLine) {
	if e.err == nil {
		e.err = e.ctx.Err()
	}
	if e.err == nil {
		e.err = e.enc.Encode(line)
		e.lines++
	}
}
