package schemaimport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

// Options configure an import.
type Options struct {
	Source *Source
	Target *client.Client
	// SubjectPrefix limits the import to subjects that begin with it, and the versions that these refer
	// to.
	SubjectPrefix string
	// SkipInvalid skips subjects whose names Freshet does not accept, instead of returning an error.
	SkipInvalid bool
	// DryRun reads and compares everything, and writes nothing.
	DryRun bool
	// Progress, if not nil, is called after each subject and each version.
	Progress func(Summary)
}

// Summary counts what an import has read and written. Of a dry run, it counts what would be written.
type Summary struct {
	DryRun   bool `json:"dryRun,omitempty"`
	Subjects int  `json:"subjects"`          // subjects to import
	Begun    int  `json:"-"`                 // of these, the subjects whose reading has begun
	Read     int  `json:"read"`              // versions that were read
	Deleted  int  `json:"deleted,omitempty"` // of these, soft-deleted ones
	Versions int  `json:"versions"`          // versions that were written
	Levels   int  `json:"levels"`            // compatibility levels that were written
	Existing int  `json:"existing"`          // versions and levels that the cluster already had
	// Removed counts the versions that the source has soft-deleted since the last import, and that were
	// soft-deleted now.
	Removed int `json:"removed,omitempty"`
	// HighestID is the highest id of the source. The cluster assigns ids above it.
	HighestID int `json:"highestId,omitempty"`
	// Warnings name what the source has and Freshet has not.
	Warnings []string `json:"warnings,omitempty"`
	// Problems name what contradicts the cluster. Only a dry run has them; an import ends at the first.
	Problems []string `json:"problems,omitempty"`
}

// sink is where the versions and levels of the source go: a writer, or the comparer of a dry run.
type sink interface {
	addVersion(ctx context.Context, v *version, deleted bool) error
	addLevel(ctx context.Context, subject, level string) error
	// finish is called after everything was added, with the highest id of the source.
	finish(ctx context.Context, highest int) error
}

// importer is one running import.
type importer struct {
	Options
	registry *schemas.Registry
	sink     sink
	global   string           // level of the source for subjects without their own
	done     map[key]struct{} // versions that were added
	sum      Summary
	unlike   counters
}

// key is a version of a subject.
type key struct {
	subject string
	number  int
}

// maxDepth bounds the depth of references, as in the registry.
const maxDepth = 64

// Import copies the schemas of the source. The Summary is valid even with an error.
func Import(ctx context.Context, options Options) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the reading of the source
	in := &importer{Options: options, registry: schemas.New(options.Target), done: map[key]struct{}{}}
	in.sum.DryRun = options.DryRun
	if options.DryRun {
		in.sink = &comparer{registry: in.registry, sum: &in.sum}
	} else {
		in.sink = &writer{registry: in.registry, sum: &in.sum}
	}
	err := in.copySubjects(ctx)
	in.sum.Warnings = append(in.sum.Warnings, in.unlike.warnings()...)
	return in.sum, err
}

func (in *importer) copySubjects(ctx context.Context) error {
	subjects, err := in.prepare(ctx)
	if err != nil {
		return err
	}
	for next := range in.Source.read(ctx, subjects) {
		if next.err != nil {
			return next.err
		}
		if err := in.add(ctx, next.value); err != nil {
			return err
		}
		if in.Progress != nil {
			in.Progress(in.sum)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if in.sum.HighestID > 0 {
		highest, err := in.Source.maxID(ctx, in.sum.HighestID)
		if err != nil {
			return err
		}
		in.sum.HighestID = max(in.sum.HighestID, highest)
	}
	return in.sink.finish(ctx, in.sum.HighestID)
}

// add adds a subject or a version that was read.
func (in *importer) add(ctx context.Context, next item) error {
	if next.schema != nil {
		return in.addVersion(ctx, next.schema, next.of.deleted(next.schema.Version), maxDepth)
	}
	in.sum.Begun++
	if mode := strings.ToUpper(next.of.mode); mode != "" && mode != "READWRITE" {
		in.unlike.modes.add("%s is %s", next.of.subject, mode)
	}
	level := next.of.level
	if level == "" && in.global != "BACKWARD" {
		level = in.global // Freshet has no level for the whole registry
	}
	if level == "" {
		return nil
	}
	return in.sink.addLevel(ctx, next.of.subject, strings.ToUpper(level))
}

// addVersion adds a version after the versions that it refers to.
func (in *importer) addVersion(ctx context.Context, v *version, deleted bool, depth int) error {
	k := key{v.Subject, v.Version}
	if _, ok := in.done[k]; ok {
		return nil
	}
	if depth == 0 {
		return fmt.Errorf("subject %s version %d: references are nested more than %d deep", v.Subject, v.Version,
			maxDepth)
	}
	in.done[k] = struct{}{}
	for _, r := range v.References {
		if err := in.addReferenced(ctx, key{r.Subject, r.Version}, depth-1); err != nil {
			return fmt.Errorf("subject %s version %d refers to another schema: %w", v.Subject, v.Version, err)
		}
	}
	in.sum.Read++
	if deleted {
		in.sum.Deleted++
	}
	in.sum.HighestID = max(in.sum.HighestID, v.ID)
	if v.hasContract() {
		in.unlike.contracts.add("%s version %d", v.Subject, v.Version)
	}
	return in.sink.addVersion(ctx, v, deleted)
}

// addReferenced reads and adds a version to which another one refers, unless it was added.
func (in *importer) addReferenced(ctx context.Context, k key, depth int) error {
	if _, ok := in.done[k]; ok {
		return nil
	}
	v, err := in.Source.version(ctx, k.subject, k.number)
	if err != nil {
		return err
	}
	active, err := in.Source.versions(ctx, k.subject, false)
	if err != nil {
		return err
	}
	return in.addVersion(ctx, v, (&listing{active: active}).deleted(k.number), depth)
}

// errReadOnly is the error of a registry that accepts no schemas.
var errReadOnly = errors.New("registry of the cluster accepts no schemas; change its mode with " +
	"'freshet schema mode import' or 'freshet schema mode readwrite'")
