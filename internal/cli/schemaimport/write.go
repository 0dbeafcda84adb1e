package schemaimport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

// A batch is sent when it has maxLines lines or maxBytes bytes. It fits into one batch of the registry,
// so that it is written as a whole or not at all.
const (
	maxLines = 190
	maxBytes = 3 << 20
)

// line is a line of an export file, which the registry imports.
type line struct {
	Kind          string              `json:"kind"`
	Format        string              `json:"format,omitempty"`
	Edition       int                 `json:"edition,omitempty"`
	LastID        int                 `json:"lastId,omitempty"`
	Subject       string              `json:"subject,omitempty"`
	Version       int                 `json:"version,omitempty"`
	ID            int                 `json:"id,omitempty"`
	SchemaType    string              `json:"schemaType,omitempty"`
	References    []schemas.Reference `json:"references,omitempty"`
	Schema        string              `json:"schema,omitempty"`
	Deleted       bool                `json:"deleted,omitempty"`
	Compatibility string              `json:"compatibility,omitempty"`
	Lines         int                 `json:"lines,omitempty"`
}

// writer is the sink that writes to the registry of the cluster.
type writer struct {
	registry *schemas.Registry
	sum      *Summary

	body    bytes.Buffer // the lines of the batch, without header and trailer
	lines   int
	current existing
	remove  []key // versions to soft-delete at the end
}

// existing has the active versions of one subject of the cluster.
type existing struct {
	subject string
	active  []int
}

func (w *writer) addVersion(ctx context.Context, v *version, deleted bool) error {
	if deleted {
		active, err := w.isActive(ctx, v)
		if err != nil {
			return err
		}
		if active { // the source has deleted it since the last import
			w.remove = append(w.remove, key{v.Subject, v.Version})
			deleted = false
		}
	}
	return w.add(ctx, &line{
		Kind: "version", Subject: v.Subject, Version: v.Version, ID: v.ID, SchemaType: v.Type,
		References: v.References, Schema: v.Schema, Deleted: deleted,
	})
}

// isActive reports whether the cluster has a version, not soft-deleted.
func (w *writer) isActive(ctx context.Context, v *version) (bool, error) {
	if w.current.subject != v.Subject {
		numbers, err := w.registry.Versions(ctx, v.Subject, false)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return false, fmt.Errorf("listing the versions of subject %s in the cluster: %w", v.Subject, err)
		}
		w.current = existing{v.Subject, numbers}
	}
	return slices.Contains(w.current.active, v.Version), nil
}

func (w *writer) addLevel(ctx context.Context, subject, level string) error {
	return w.add(ctx, &line{Kind: "level", Subject: subject, Compatibility: level})
}

// add adds a line to the batch. It sends the batch when it is full.
func (w *writer) add(ctx context.Context, l *line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encoding subject %s version %d: %w", l.Subject, l.Version, err)
	}
	if w.lines > 0 && (w.lines == maxLines || w.body.Len()+len(text) > maxBytes) {
		if err := w.flush(ctx, 0); err != nil {
			return err
		}
	}
	w.body.Write(text)
	w.body.WriteByte('\n')
	w.lines++
	return nil
}

// flush sends the batch. highest is an id above which the registry assigns ids from now on, or 0.
func (w *writer) flush(ctx context.Context, highest int) error {
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	header := line{Kind: "registry", Format: "freshet-registry", Edition: 1, LastID: highest}
	trailer := line{Kind: "end", Lines: w.lines + 1}
	if err := encoder.Encode(header); err != nil {
		return err
	}
	file.Write(w.body.Bytes())
	if err := encoder.Encode(trailer); err != nil {
		return err
	}
	done, err := w.registry.Import(ctx, &file)
	if err != nil {
		return fmt.Errorf("writing to the cluster: %w", withoutLine(err))
	}
	w.sum.Versions += done.Versions
	w.sum.Levels += done.Levels
	w.sum.Existing += done.Known
	w.body.Reset()
	w.lines = 0
	return nil
}

// lineNumber matches what the registry adds to the text of an error about a line of a file.
var lineNumber = regexp.MustCompile(`(?s)^Line \d+: (.*?)(?: \(already imported: [^()]*\))?$`)

// withoutLine removes the number of the line from an error: the user knows no file.
func withoutLine(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	shown := *refused
	shown.Message = lineNumber.ReplaceAllString(shown.Message, "$1")
	return &shown
}

// finish sends the last batch, and soft-deletes the versions that the source has deleted since the last
// import. It deletes the last ones first, because later versions may refer to earlier ones.
func (w *writer) finish(ctx context.Context, highest int) error {
	if err := w.flush(ctx, highest); err != nil {
		return err
	}
	for _, k := range slices.Backward(w.remove) {
		if _, err := w.registry.DeleteVersion(ctx, k.subject, k.number, false); err != nil {
			return fmt.Errorf("deleting subject %s version %d, which the source has deleted: %w", k.subject,
				k.number, err)
		}
		w.sum.Removed++
	}
	return nil
}
