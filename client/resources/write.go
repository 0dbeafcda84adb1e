package resources

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"freshet.dev/client"
)

// WriteOptions are options of writes.
type WriteOptions struct {
	// DryRun makes the server validate the write without storing it.
	DryRun bool
	// FieldManager is the owner of the written fields; required for Apply.
	FieldManager string
	// Force overwrites fields of other field managers; only for Apply.
	Force bool
	// Unchecked makes the server ignore unknown fields instead of rejecting them.
	Unchecked bool
}

func (o WriteOptions) query() url.Values {
	query := url.Values{"fieldValidation": {"Strict"}}
	if o.Unchecked {
		query.Set("fieldValidation", "Ignore")
	}
	if o.DryRun {
		query.Set("dryRun", "All")
	}
	if o.FieldManager != "" {
		query.Set("fieldManager", o.FieldManager)
	}
	return query
}

// Create creates an object in an organization.
func (c *Client) Create(ctx context.Context, kind Kind, organization string, object any,
	o WriteOptions,
) (Object, error) {
	return c.write(ctx, http.MethodPost, kind.path(organization), plainJSON, object, o.query(), false)
}

// Apply sets the fields of the object and does not change fields of other field managers
// (server-side apply). It creates the object if it does not exist.
func (c *Client) Apply(ctx context.Context, ref Ref, object any, o WriteOptions) (Object, error) {
	query := o.query()
	if o.Force {
		query.Set("force", "true")
	}
	return c.write(ctx, http.MethodPatch, ref.path(), "application/apply-patch+yaml", object, query, true)
}

// Patch merges changes into an object (RFC 7396): null removes a field.
func (c *Client) Patch(ctx context.Context, ref Ref, changes any, o WriteOptions) (Object, error) {
	return c.write(ctx, http.MethodPatch, ref.path(), "application/merge-patch+json", changes, o.query(), false)
}

// Post calls a subresource, such as rotate of a service account. ref.Name is empty for kinds
// that only support create, such as reviews.
func (c *Client) Post(ctx context.Context, ref Ref, subresource string, body any) (Object, error) {
	path := ref.Kind.path(ref.Organization)
	if ref.Name != "" {
		path = ref.path() + "/" + subresource
	}
	return c.write(ctx, http.MethodPost, path, plainJSON, body, nil, false)
}

func (c *Client) write(ctx context.Context, method, path, contentType string, body any, query url.Values,
	idempotent bool,
) (Object, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	response, err := c.do(ctx, &client.Request{
		Method: method, Path: path, Query: query, Body: text, Idempotent: idempotent,
		Header: http.Header{"Content-Type": {contentType}, "Accept": {plainJSON}},
	})
	if err != nil {
		return nil, err
	}
	return ParseObject(response.Body)
}

// DeleteOptions are options of Delete.
type DeleteOptions struct {
	DryRun bool
	// Cascade is Background (the default), Foreground or Orphan.
	Cascade string
	// GracePeriod is the grace period in seconds; the server's default when negative.
	GracePeriod int
	// UID, if set, must match the object. Another object with the same name is not deleted.
	UID string
}

// Delete deletes an object. The deletion may continue after the call if finalizers remain; use
// Wait to wait for its end.
func (c *Client) Delete(ctx context.Context, ref Ref, o DeleteOptions) error {
	query := url.Values{}
	if o.DryRun {
		query.Set("dryRun", "All")
	}
	if o.Cascade != "" {
		query.Set("propagationPolicy", o.Cascade)
	}
	if o.GracePeriod >= 0 {
		query.Set("gracePeriodSeconds", strconv.Itoa(o.GracePeriod))
	}
	request := &client.Request{Method: http.MethodDelete, Path: ref.path(), Query: query}
	if o.UID != "" {
		body, err := json.Marshal(map[string]any{
			"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": map[string]string{"uid": o.UID},
		})
		if err != nil {
			return err
		}
		request.Body, request.Header = body, http.Header{"Content-Type": {plainJSON}}
	}
	_, err := c.do(ctx, request)
	return err
}
