package resources

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// objectKey identifies an object of a kind.
type objectKey struct{ organization, name string }

// seenVersions are the resource versions of the objects that a watch has yielded, without those that
// were deleted.
type seenVersions map[objectKey]string

// record returns a yield function that records the objects and skips those that were yielded
// already in the same version.
func (s seenVersions) record(yield func(Event, error) bool) func(Event, error) bool {
	return func(e Event, err error) bool {
		for key, version := range e.versions() {
			switch {
			case e.Type == eventDeleted:
				delete(s, key)
			case s[key] == version:
				return true
			default:
				s[key] = version
			}
		}
		return yield(e, err)
	}
}

const (
	eventAdded    = "ADDED"
	eventModified = "MODIFIED"
	eventDeleted  = "DELETED"
)

// versions returns the resource versions of the event's objects. Events have one object.
func (e Event) versions() map[objectKey]string {
	versions := map[objectKey]string{}
	if e.Object != nil {
		versions[objectKey{e.Object.Organization(), e.Object.Name()}] = e.Object.ResourceVersion()
	}
	if e.Table != nil {
		for _, row := range e.Table.Rows {
			versions[objectKey{row.Organization, row.Name}] = row.ResourceVersion
		}
	}
	return versions
}

// relist lists the objects, yields those that differ from seen, and returns the resource version of
// the list. It returns errStop if yield returns false.
func (c *Client) relist(ctx context.Context, kind Kind, organization string, o ListOptions, accept string,
	seen seenVersions, yield func(Event, error) bool,
) (version string, err error) {
	gone := maps.Clone(seen)
	var columns []TableColumn
	emit := seen.record(yield)
	err = c.pages(ctx, kind, organization, o, accept, func(body []byte) (string, error) {
		events, meta, err := listEvents(body, kind, accept == tableJSON)
		if err != nil {
			return "", err
		}
		version = cmp.Or(version, meta.ResourceVersion)
		for _, e := range events {
			e.Type = eventAdded
			for key := range e.versions() {
				if _, known := seen[key]; known {
					e.Type = eventModified
				}
				delete(gone, key)
			}
			if e.Table != nil {
				columns = e.Table.Columns
			}
			if !emit(e, nil) {
				return "", errStop
			}
		}
		return meta.Continue, nil
	})
	if err != nil {
		return "", err
	}
	for _, key := range slices.SortedFunc(maps.Keys(gone), func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), cmp.Compare(a.name, b.name))
	}) {
		if !emit(deletedEvent(kind, key, gone[key], columns, accept == tableJSON), nil) {
			return "", errStop
		}
	}
	return version, nil
}

// listEvents returns an event for each object of a page of a list.
func listEvents(body []byte, kind Kind, table bool) (events []Event, meta listMeta, err error) {
	if table {
		page, meta, err := parseTable(body)
		if err != nil {
			return nil, meta, err
		}
		for _, row := range page.Rows {
			events = append(events, Event{Table: &Table{Columns: page.Columns, Rows: []TableRow{row}}})
		}
		return events, meta, nil
	}
	var list struct {
		Metadata listMeta          `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, meta, fmt.Errorf("decoding the list of %s: %w", kind.Resource, err)
	}
	for _, item := range list.Items {
		object, err := ParseObject(item)
		if err != nil {
			return nil, meta, err
		}
		// Items of some lists have no kind.
		if object.Kind() == "" {
			object["kind"], object["apiVersion"] = kind.Kind, kind.APIVersion()
		}
		events = append(events, Event{Object: object})
	}
	return events, list.Metadata, nil
}

// deletedEvent returns the event of an object that was deleted while the watch was interrupted.
func deletedEvent(kind Kind, key objectKey, version string, columns []TableColumn, table bool) Event {
	if table {
		cells := make([]string, max(len(columns), 1))
		cells[0] = key.name
		return Event{Type: eventDeleted, Table: &Table{Columns: columns, Rows: []TableRow{{
			Cells: cells, Name: key.name, Organization: key.organization, ResourceVersion: version,
		}}}}
	}
	metadata := map[string]any{"name": key.name, "resourceVersion": version}
	if key.organization != "" {
		metadata["namespace"] = key.organization
	}
	return Event{Type: eventDeleted, Object: Object{
		"kind": kind.Kind, "apiVersion": kind.APIVersion(), "metadata": metadata,
	}}
}
