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

	"freshet/client"
)

// Event is a change of an object. Exactly one of Object and Table is set, by what
// was asked for.
type Event struct {
	// Type is ADDED, MODIFIED or DELETED. The first events are ADDED, one for each
	// object that is there already.
	Type   string
	Object Object
	Table  *Table
}

// Watch yields the objects that are there and then every change, until the context
// ends or the loop does. A connection that ends is made again where it broke off;
// when the server no longer knows that place, all objects come once more as ADDED.
// An error ends it.
func (c *Client) Watch(ctx context.Context, kind Kind, organization string, o ListOptions) iter.Seq2[Event, error] {
	return c.watch(ctx, kind, organization, o, plainJSON)
}

// WatchTable is Watch for the objects as the server shows them to people.
func (c *Client) WatchTable(ctx context.Context, kind Kind, organization string,
	o ListOptions,
) iter.Seq2[Event, error] {
	return c.watch(ctx, kind, organization, o, tableJSON)
}

// errStop is how a yield that returned false ends the reading.
var errStop = errors.New("stop")

// pause is between a watch that the server ended at once and the next.
const pause = 200 * time.Millisecond

func (c *Client) watch(ctx context.Context, kind Kind, organization string, o ListOptions,
	accept string,
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		version := ""
		for {
			begin := time.Now()
			err := c.watchOnce(ctx, kind, organization, o, accept, &version, yield)
			var refused *client.Error
			switch {
			case errors.Is(err, errStop):
				return
			case ctx.Err() != nil:
				yield(Event{}, context.Cause(ctx))
				return
			case errors.As(err, &refused) && refused.Status == http.StatusGone && version != "":
				version = ""
			case err != nil && !errors.Is(err, client.ErrUnavailable):
				yield(Event{}, err)
				return
			}
			if time.Since(begin) < pause {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		}
	}
}

// watchOnce reads one connection to its end, which is no error. version is where
// the next one begins.
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
	defer func() { _ = response.Body.Close() }() // read as far as wanted
	c.warn(response.Header)
	decoder := json.NewDecoder(response.Body)
	for {
		var wire struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&wire); err != nil {
			return ended(err)
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

// ended makes the end of a stream, however it came, no error.
func ended(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the server's events cannot be read: %w", err)
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

// Wait watches one object until done says so, and returns it as it was then. done
// gets nil for an object that does not exist.
func (c *Client) Wait(ctx context.Context, ref Ref, done func(Object) (bool, error)) (Object, error) {
	for {
		object, err := c.Get(ctx, ref)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return nil, err
		}
		if ok, err := done(object); ok || err != nil {
			return object, err
		}
		// From what was read on, so that nothing is missed in between.
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
		case errors.As(err, &refused) && refused.Status == http.StatusGone: // too long ago
		case err != nil && !errors.Is(err, client.ErrUnavailable):
			return object, err
		}
		select { // the connection ended: look again, and not too often
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
