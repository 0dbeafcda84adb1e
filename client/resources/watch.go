package resources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"freshet.dev/client"
)

// Event is a change of an object. Watch sets Object, WatchTable sets Table.
type Event struct {
	// Type is ADDED, MODIFIED or DELETED. The first events are ADDED, one for each existing
	// object. If the object was deleted while the connection was interrupted, the DELETED event
	// may have only its kind, organization, name and last version.
	Type   string
	Object Object
	Table  *Table
}

// Watch yields the existing objects and then every change, until the context is canceled or the
// loop ends. When the connection ends, Watch reconnects and continues from the last resource
// version. If the server has compacted that version, Watch lists the objects again and yields
// only those that have changed since. An error ends Watch.
func (c *Client) Watch(ctx context.Context, kind Kind, organization string, o ListOptions) iter.Seq2[Event, error] {
	return c.watch(ctx, kind, organization, o, plainJSON)
}

// WatchTable is Watch with objects in the server's table format for people.
func (c *Client) WatchTable(ctx context.Context, kind Kind, organization string,
	o ListOptions,
) iter.Seq2[Event, error] {
	return c.watch(ctx, kind, organization, o, tableJSON)
}

// errStop is returned by watchOnce when yield has returned false.
var errStop = errors.New("stop")

// watchInterval is the minimum interval between two watch requests.
const watchInterval = 200 * time.Millisecond

func (c *Client) watch(ctx context.Context, kind Kind, organization string, o ListOptions,
	accept string,
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		version, seen := "", seenVersions{}
		for {
			begin := time.Now()
			err := error(nil)
			if version == "" {
				version, err = c.relist(ctx, kind, organization, o, accept, seen, yield)
			}
			if err == nil {
				err = c.watchOnce(ctx, kind, organization, o, accept, &version, seen.record(yield))
			}
			var refused *client.Error
			switch {
			case errors.Is(err, errStop):
				return
			case ctx.Err() != nil:
				yield(Event{}, context.Cause(ctx))
				return
			case errors.As(err, &refused) && refused.Status == http.StatusGone:
				version = "" // of the watch, or of a page of the list
			case err != nil && !errors.Is(err, client.ErrUnavailable):
				yield(Event{}, err)
				return
			}
			if time.Since(begin) < watchInterval {
				select {
				case <-time.After(watchInterval):
				case <-ctx.Done():
				}
			}
		}
	}
}

// watchOnce reads the events of one connection. The end of the connection is not an error. It
// sets version to the resource version from which the next connection continues.
func (c *Client) watchOnce(ctx context.Context, kind Kind, organization string, o ListOptions, accept string,
	version *string, yield func(Event, error) bool,
) error {
	query := o.query()
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	if *version != "" {
		query.Set("resourceVersion", *version)
	}
	response, err := c.conn.Stream(ctx, &client.Request{
		Method: http.MethodGet, Path: kind.path(organization), Query: query, Header: http.Header{"Accept": {accept}},
	})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // an error does not matter after reading
	c.warn(response.Header)
	decoder := json.NewDecoder(response.Body)
	for {
		var wire struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&wire); err != nil {
			return connectionEnd(err)
		}
		event, next, err := readEvent(wire.Type, wire.Object, accept == tableJSON)
		if err != nil {
			return err
		}
		if next != "" {
			*version = next
		}
		if wire.Type != "BOOKMARK" && !yield(event, nil) {
			return errStop
		}
	}
}

// connectionEnd returns nil for the end of a stream, and ErrUnavailable for a broken connection.
func connectionEnd(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("decoding watch events: %w", err)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("%w: %w", client.ErrUnavailable, err)
}

func readEvent(kind string, text []byte, table bool) (event Event, version string, err error) {
	event.Type = kind
	if kind == "ERROR" {
		var status struct {
			Code            int
			Reason, Message string
		}
		if err := json.Unmarshal(text, &status); err != nil {
			return event, "", err
		}
		return event, "", &client.Error{
			Status: status.Code, Code: status.Code, Reason: status.Reason,
			Message: status.Message,
		}
	}
	if table {
		parsed, meta, err := parseTable(text)
		if err != nil {
			return event, "", err
		}
		event.Table, version = parsed, meta.ResourceVersion
		for _, row := range parsed.Rows {
			version = row.ResourceVersion
		}
		return event, version, nil
	}
	if event.Object, err = ParseObject(text); err != nil {
		return event, "", err
	}
	return event, event.Object.ResourceVersion(), nil
}

// Wait watches one object until done returns true or an error, and returns the object of that
// call. done gets nil if the object does not exist.
func (c *Client) Wait(ctx context.Context, ref Ref, done func(Object) (bool, error)) (Object, error) {
	for {
		object, err := c.Get(ctx, ref)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return nil, err
		}
		if ok, err := done(object); ok || err != nil {
			return object, err
		}
		// The watch starts at the version of Get, so that it misses no change.
		version := object.ResourceVersion()
		failed := error(nil)
		finished := false
		err = c.watchOnce(ctx, ref.Kind, ref.Organization, ListOptions{FieldSelector: Name(ref.Name)}, plainJSON,
			&version, func(event Event, _ error) bool {
				object = event.Object
				if event.Type == "DELETED" {
					object = nil
				}
				finished, failed = done(object)
				return !finished && failed == nil
			})
		var refused *client.Error
		switch {
		case errors.Is(err, errStop):
			return object, failed
		case ctx.Err() != nil:
			return object, fmt.Errorf("waiting for %s: %w", ref, context.Cause(ctx))
		case errors.As(err, &refused) && refused.Status == http.StatusGone: // version was compacted
		case err != nil && !errors.Is(err, client.ErrUnavailable):
			return object, err
		}
		select { // the connection has ended, so Get is called again after a pause
		case <-time.After(watchInterval):
		case <-ctx.Done():
		}
	}
}
