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

// Path prefixes of the APIs for messages, administration and Kafka resources.
const (
	messageRoot = "/admin/rest/topics/v1/"
	adminRoot   = "/admin/v2/"
	streamRoot  = "/rest-stream/admin/v1/"
)

// Topic refers to a topic of the cluster, which need not exist.
type Topic struct {
	c                       *Client
	tenant, namespace, name string
	err                     error // of an invalid name; every call returns it
}

// Topic returns a reference to a topic. It makes no call. The name is orders in public/default,
// tenant/namespace/orders, or persistent://tenant/namespace/orders. orders-partition-3 is one
// partition of a topic. The first call returns the error of an invalid name.
func (c *Client) Topic(name string) *Topic {
	t := &Topic{c: c, tenant: "public", namespace: "default", name: name}
	full, isFull := strings.CutPrefix(name, "persistent://")
	parts := strings.SplitN(full, "/", 3)
	switch {
	case len(parts) == 3:
		t.tenant, t.namespace, t.name = parts[0], parts[1], parts[2]
	case isFull || len(parts) == 2 || strings.Contains(name, "://"):
		t.err = fmt.Errorf("%q is not a topic name; write it as topic, tenant/namespace/topic or "+
			"persistent://tenant/namespace/topic", name)
	}
	if t.err == nil && (t.tenant == "" || t.namespace == "" || t.name == "") {
		t.err = errors.New("topic name, or a part of it, is empty")
	}
	return t
}

// Name returns the full name of the topic, persistent://tenant/namespace/topic.
func (t *Topic) Name() string {
	return "persistent://" + t.tenant + "/" + t.namespace + "/" + t.name
}

// ShortName returns the name of the topic without the default tenant and namespace.
func (t *Topic) ShortName() string {
	if t.tenant == "public" && t.namespace == "default" {
		return t.name
	}
	return t.tenant + "/" + t.namespace + "/" + t.name
}

// path returns the path of the topic under a root. suffix starts with a slash or is empty.
func (t *Topic) path(root, suffix string) string {
	return t.c.ClusterPath(root + url.PathEscape(t.tenant) + "/" + url.PathEscape(t.namespace) + "/" +
		url.PathEscape(t.name) + suffix)
}

func (t *Topic) admin(suffix string) string { return t.path(adminRoot+"persistent/", suffix) }

// TopicOptions are the options of a new topic.
type TopicOptions struct {
	// Partitions is the number of partitions, at most 1,024; 0 is a topic without
	// partitions.
	Partitions int
	// Properties are the properties of the topic, including settings of the Kafka protocol.
	Properties map[string]string
	// Contract is an expression that must be true for every message of the topic, such as
	// `payload.total >= 0` (docs/spec/messages.md#contracts). The server rejects other messages.
	Contract string
}

// Create creates the topic. ErrConflict means that it exists.
func (t *Topic) Create(ctx context.Context, options TopicOptions) error {
	var query url.Values
	if options.Contract != "" {
		query = url.Values{"require": {options.Contract}}
	}
	if options.Partitions == 0 {
		return t.call(ctx, http.MethodPut, t.admin(""), query, orNil(options.Properties), nil)
	}
	body := map[string]any{"partitions": options.Partitions, "properties": orEmpty(options.Properties)}
	return t.call(ctx, http.MethodPut, t.admin("/partitions"), query, body, nil)
}

// Delete deletes the topic with its messages and subscriptions. Without force, ErrInvalid means
// that it has consumers.
func (t *Topic) Delete(ctx context.Context, force bool) error {
	count, err := t.Partitions(ctx)
	if err != nil {
		return err
	}
	path := t.admin("")
	if count > 0 {
		path = t.admin("/partitions")
	}
	return t.call(ctx, http.MethodDelete, path, flagQuery("force", force), nil, nil)
}

// Partitions returns the number of partitions, or 0 for a topic without partitions.
func (t *Topic) Partitions(ctx context.Context) (int, error) {
	var body struct {
		Partitions int `json:"partitions"`
	}
	err := t.call(ctx, http.MethodGet, t.admin("/partitions"), nil, nil, &body)
	return body.Partitions, err
}

// Grow increases the number of partitions. Keys then map to other partitions.
func (t *Topic) Grow(ctx context.Context, partitions int) error {
	return t.call(ctx, http.MethodPost, t.admin("/partitions"), nil, partitions, nil)
}

// Properties returns the properties of the topic.
func (t *Topic) Properties(ctx context.Context) (map[string]string, error) {
	var properties map[string]string
	err := t.call(ctx, http.MethodGet, t.admin("/properties"), nil, nil, &properties)
	return properties, err
}

// SetProperties adds or replaces properties.
func (t *Topic) SetProperties(ctx context.Context, properties map[string]string) error {
	return t.callIdempotent(ctx, http.MethodPut, t.admin("/properties"), nil, orEmpty(properties), nil)
}

// DeleteProperty removes one property.
func (t *Topic) DeleteProperty(ctx context.Context, name string) error {
	return t.call(ctx, http.MethodDelete, t.admin("/properties"), url.Values{"key": {name}}, nil, nil)
}

// Contract returns the expression that must be true for every message of the topic, or "".
func (t *Topic) Contract(ctx context.Context) (string, error) {
	var expression *string
	err := t.call(ctx, http.MethodGet, t.admin("/require"), nil, nil, &expression)
	if err != nil || expression == nil {
		return "", err
	}
	return *expression, nil
}

// SetContract sets the expression that must be true for every message that the topic gets from now on; ""
// removes it. ErrInvalid means that the expression is not valid or too costly.
func (t *Topic) SetContract(ctx context.Context, expression string) error {
	return t.call(ctx, http.MethodPut, t.admin("/require"), nil, expression, nil)
}

// Subscriptions returns the names of the topic's subscriptions.
func (t *Topic) Subscriptions(ctx context.Context) ([]string, error) {
	var list []string
	err := t.call(ctx, http.MethodGet, t.admin("/subscriptions"), nil, nil, &list)
	return list, err
}

// TopicEntry is a topic in a list.
type TopicEntry struct {
	// Name is the shortest unique name: orders, or tenant.namespace.orders.
	Name string `json:"topic_name"`
	// Partitions is at least 1.
	Partitions int  `json:"partitions_count"`
	Internal   bool `json:"is_internal"`
}

// Topics returns the topics that the caller may see, of one namespace (tenant/namespace), or
// of all if it is empty.
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

// call makes a call that is idempotent only if it is a GET.
func (t *Topic) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	if t.err != nil {
		return t.err
	}
	return t.c.callJSON(ctx, &Request{Method: method, Path: path, Query: query}, body, result)
}

// callIdempotent makes an idempotent call.
func (t *Topic) callIdempotent(ctx context.Context, method, path string, query url.Values, body, result any) error {
	if t.err != nil {
		return t.err
	}
	return t.c.callJSON(ctx, &Request{Method: method, Path: path, Query: query, Idempotent: true}, body, result)
}

// callJSON sends body as JSON and decodes the JSON of the response. Body and target may be nil.
func (c *Client) callJSON(ctx context.Context, r *Request, body, result any) error {
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
		r.Body, r.Header = text, http.Header{"Content-Type": {"application/json"}}
	}
	response, err := c.Do(ctx, r)
	if err != nil || result == nil || len(response.Body) == 0 {
		return err
	}
	return response.JSON(result)
}

func flagQuery(name string, set bool) url.Values {
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

// orNil returns nil for an empty map, so that the call has no body.
func orNil(m map[string]string) any {
	if len(m) == 0 {
		return nil
	}
	return m
}
