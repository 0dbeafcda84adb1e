package resourcecmd

import (
	"context"
	"fmt"

	"freshet.dev/client/resources"
	"freshet/internal/cli/output"
)

// shownVersions are the resource versions of the objects that get -w has printed last, by
// organization and name. A watch begins with all existing objects, and may repeat them after
// a lost connection.
type shownVersions map[string]string

// isNew reports whether a version of an object was not printed yet, and records it.
func (v shownVersions) isNew(organization, name, version string, deleted bool) bool {
	key := organization + "/" + name
	if v[key] == version && !deleted {
		return false
	}
	if deleted {
		delete(v, key)
	} else {
		v[key] = version
	}
	return true
}

const eventDeleted = "DELETED"

// followObjects prints the current objects and then every change, in a format for programs.
func (g *get) followObjects(ctx context.Context, kind resources.Kind, organization string,
	o resources.ListOptions,
) error {
	shown := shownVersions{}
	for event, err := range g.Watch(ctx, kind, organization, o) {
		if err != nil {
			return err
		}
		object := event.Object
		if !shown.isNew(object.Organization(), object.Name(), object.ResourceVersion(), event.Type == eventDeleted) {
			continue
		}
		if g.format == output.FormatYAML {
			_, _ = fmt.Fprintln(g.env.Out, "---") // the next write reports an error
		}
		if err := g.print([]resources.Object{object}, true); err != nil {
			return err
		}
	}
	return nil
}

// followTable prints the current objects as one table, and then a row for every change.
func (g *get) followTable(ctx context.Context, kind resources.Kind, organization string,
	o resources.ListOptions,
) error {
	list, err := g.Table(ctx, kind, organization, o)
	if err != nil {
		return err
	}
	shown := shownVersions{}
	for _, row := range list.Rows {
		shown.isNew(row.Organization, row.Name, row.ResourceVersion, false)
	}
	t := g.table(kind, list, false)
	if t.Rows = g.rows(kind, list, false); len(t.Rows) > 0 {
		if err := t.Write(g.env.Out); err != nil {
			return err
		}
	}
	for event, err := range g.WatchTable(ctx, kind, organization, o) {
		if err != nil {
			return err
		}
		deleted := event.Type == eventDeleted
		changes := &resources.Table{Columns: event.Table.Columns}
		for _, row := range event.Table.Rows {
			if shown.isNew(row.Organization, row.Name, row.ResourceVersion, deleted) {
				changes.Rows = append(changes.Rows, row)
			}
		}
		if len(changes.Rows) == 0 {
			continue
		}
		if len(t.Columns) == 0 {
			t = g.table(kind, changes, false)
		}
		t.Rows = g.rows(kind, changes, false)
		if deleted {
			markDeleted(t)
		}
		if err := t.Write(g.env.Out); err != nil {
			return err
		}
	}
	return nil
}
