package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Roots of the calls on messages.
const (
	messageRoot = "/admin/rest/topics/v1/"
	adminRoot   = "/admin/v2/"
	streamRoot  = "/rest-stream/admin/v1/"
)

// Topic is a topic of the cluster, whether or not it exists. Making one makes no
// call.
type Topic struct {
	c                       *Client
	tenant, namespace, name string
	err                     error // of the name; every call returns it
}

// Topic names a topic: orders in public/default, tenant/namespace/orders, or
// persistent://tenant/namespace/orders. One partition of a topic is
// orders-partition-3. What is wrong with a name is what the first call returns.
func (c *Client) Topic(name string) *Topic {
	t := &Topic{c: c, tenant: "public", namespace: "default", name: name}
	full, isFull := strings.CutPrefix(name, "persistent://")
	parts := strings.SplitN(full, "/", 3)
	switch {
	case len(parts) == 3:
		t.tenant, t.namespace, t.name = parts[0], parts[1], parts[2]
	case isFull || len(parts) == 2 || strings.Contains(name, "://"):
		t.err = fmt.Errorf("%q is not the name of a topic: write it as topic, tenant/namespace/topic or "+
			"persistent://tenant/namespace/topic", name)
	}
	if t.err == nil && (t.tenant == "" || t.namespace == "" || t.name == "") {
		t.err = errors.New("the name of a topic is empty, or a part of it")
	}
	return t
}

// Name is the topic's full name, persistent://tenant/namespace/topic.
func (t *Topic) Name() string {
	return "persistent://" + t.tenant + "/" + t.namespace + "/" + t.name
}

// ShortName is the name that people use: without what is the default.
func (t *Topic) ShortName() string {
	if t.tenant == "public" && t.namespace == "default" {
		return t.name
	}
	return t.tenant + "/" + t.namespace + "/" + t.name
}

// path is the topic's under a root; what follows begins with a slash.
func (t *Topic) path(root, suffix string) string {
	return t.c.ClusterPath(root + url.PathEscape(t.tenant) + "/" + url.PathEscape(t.namespace) + "/" +
		url.PathEscape(t.name) + suffix)
}

func (t *Topic) admin(suffix string) string { return t.path(adminRoot+"persistent/", suffix) }

// TopicOptions are those of a new topic.
type TopicOptions struct {
	// Partitions is their number, at most 1,024; 0 is a topic without.
	Partitions int
	// Properties of the topic, settings of the stream protocol among them.
	Properties map[string]string
}

// Create makes the topic. ErrConflict says that there is one.
func (t *Topic) Create(ctx context.Context, options TopicOptions) error {
	if options.Partitions == 0 {
		return t.call(ctx, http.MethodPut, t.admin(""), nil, orNil(options.Properties), nil)
	}
	body := map[string]any{"partitions": options.Partitions, "properties": orEmpty(options.Properties)}
	return t.call(ctx, http.MethodPut, t.admin("/partitions"), nil, body, nil)
}

// Delete removes the topic with its messages and subscriptions. Unless force is
// set, ErrInvalid says that somebody consumes from it.
func (t *Topic) Delete(ctx context.Context, force bool) error {
	count, err := t.Partitions(ctx)
	if err != nil {
		return err
	}
	path := t.admin("")
	if count > 0 {
		path = t.admin("/partitions")
	}
	return t.call(ctx, http.MethodDelete, path, flag("force", force), nil, nil)
}

// Partitions is the number of partitions, 0 of a topic without.
func (t *Topic) Partitions(ctx context.Context) (int, error) {
	var body struct {
		Partitions int `json:"partitions"`
	}
	err := t.call(ctx, http.MethodGet, t.admin("/partitions"), nil, nil, &body)
	return body.Partitions, err
}

// Grow gives the topic more partitions. Keys move to other partitions by it.
func (t *Topic) Grow(ctx context.Context, partitions int) error {
	return t.call(ctx, http.MethodPost, t.admin("/partitions"), nil, partitions, nil)
}

// Properties are the topic's.
func (t *Topic) Properties(ctx context.Context) (map[string]string, error) {
	var properties map[string]string
	err := t.call(ctx, http.MethodGet, t.admin("/properties"), nil, nil, &properties)
	return properties, err
}

// SetProperties adds properties, or gives those that are there other values.
func (t *Topic) SetProperties(ctx context.Context, properties map[string]string) error {
	return t.repeatable(ctx, http.MethodPut, t.admin("/properties"), nil, orEmpty(properties), nil)
}

// DeleteProperty removes one property.
func (t *Topic) DeleteProperty(ctx context.Context, name string) error {
	return t.call(ctx, http.MethodDelete, t.admin("/properties"), url.Values{"key": {name}}, nil, nil)
}

// Subscriptions are the names of the topic's.
func (t *Topic) Subscriptions(ctx context.Context) ([]string, error) {
	var list []string
	err := t.call(ctx, http.MethodGet, t.admin("/subscriptions"), nil, nil, &list)
	return list, err
}

// TopicEntry is a topic in a list.
type TopicEntry struct {
	// Name is as short as it can be without naming another topic: orders, or
	// tenant.namespace.orders.
	Name string `json:"topic_name"`
	// Partitions is at least 1.
	Partitions int  `json:"partitions_count"`
	Internal   bool `json:"is_internal"`
}

// Topics lists the topics that the caller may see, all of them or those of one
// namespace, which is written tenant/namespace.
func (c *Client) Topics(ctx context.Context, namespace string) ([]TopicEntry, error) {
	query := url.Values{}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	var list struct {
		Data []TopicEntry `json:"data"`
	}
	err := c.callJSON(ctx, &Request{Method: http.MethodGet, Path: c.ClusterPath(streamRoot + "topics"), Query: query},
		nil, &list)
	return list.Data, err
}

// call makes a call that is not safe to repeat unless it is a GET.
func (t *Topic) call(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	if t.err != nil {
		return t.err
	}
	return t.c.callJSON(ctx, &Request{Method: method, Path: path, Query: query}, body, answer)
}

// repeatable makes a call that does no harm when it comes twice.
func (t *Topic) repeatable(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	if t.err != nil {
		return t.err
	}
	return t.c.callJSON(ctx, &Request{Method: method, Path: path, Query: query, Idempotent: true}, body, answer)
}

// callJSON sends body, unless it is nil, and decodes the answer, unless that is.
func (c *Client) callJSON(ctx context.Context, r *Request, body, answer any) error {
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("making the call: %w", err)
		}
		r.Body, r.Header = text, http.Header{"Content-Type": {"application/json"}}
	}
	response, err := c.Do(ctx, r)
	if err != nil || answer == nil || len(response.Body) == 0 {
		return err
	}
	return response.JSON(answer)
}

func flag(name string, set bool) url.Values {
	if !set {
		return nil
	}
	return url.Values{name: {"true"}}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// orNil keeps a map without entries from becoming a body.
func orNil(m map[string]string) any {
	if len(m) == 0 {
		return nil
	}
	return m
}
