package schemas

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"freshet.dev/client"
)

// Type is the type of a schema.
type Type string

// Types of schemas.
const (
	Avro     Type = "AVRO"
	JSON     Type = "JSON"
	Protobuf Type = "PROTOBUF"
)

// Latest selects the latest version of a subject.
const Latest = -1

// Schema is a schema with its references.
type Schema struct {
	// Type is Avro when empty.
	Type       Type        `json:"schemaType,omitempty"`
	Text       string      `json:"schema"`
	References []Reference `json:"references,omitempty"`
}

// Reference is a reference to another schema. Name is its name in the referring schema: the
// full name of an Avro type, the URI of a $ref, the path of an import.
type Reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// Version is a schema as a version of a subject.
type Version struct {
	Schema
	Subject string `json:"subject"`
	Version int    `json:"version"`
	ID      int    `json:"id"`
}

// SubjectVersion is a subject and version under which a schema is registered.
type SubjectVersion struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// Registry is the schema registry of a Client's cluster. It is safe for concurrent use.
type Registry struct {
	c *client.Client
	// atRoot is set when the registry is at the cluster's root instead of under /stream,
	// which depends on the type of its instance.
	atRoot atomic.Bool
}

// New returns the registry of a Client's cluster.
func New(c *client.Client) *Registry { return &Registry{c: c} }

// Register registers a schema as the next version of a subject and returns its id. If the
// subject already has the schema, Register returns its id. client.ErrConflict means that the
// schema is not compatible.
func (r *Registry) Register(ctx context.Context, subject string, schema Schema) (int, error) {
	return r.register(ctx, subject, schema, nil)
}

// RegisterNormalized is Register with the normalized text of the schema.
func (r *Registry) RegisterNormalized(ctx context.Context, subject string, schema Schema) (int, error) {
	return r.register(ctx, subject, schema, flagQuery("normalize", true))
}

func (r *Registry) register(ctx context.Context, subject string, schema Schema, query url.Values) (int, error) {
	var result struct {
		ID int `json:"id"`
	}
	err := r.call(ctx, http.MethodPost, subjectPath(subject)+"/versions", query, schema, &result)
	return result.ID, err
}

// Lookup returns the version of a subject with a schema.
func (r *Registry) Lookup(ctx context.Context, subject string, schema Schema) (*Version, error) {
	return r.version(ctx, http.MethodPost, subjectPath(subject), nil, schema)
}

// ByID returns the schema with an id.
func (r *Registry) ByID(ctx context.Context, id int) (*Schema, error) {
	s := new(Schema)
	if err := r.call(ctx, http.MethodGet, "/schemas/ids/"+strconv.Itoa(id), nil, nil, s); err != nil {
		return nil, err
	}
	s.defaults()
	return s, nil
}

// SubjectVersions returns the subjects and versions of the schema with an id.
func (r *Registry) SubjectVersions(ctx context.Context, id int) ([]SubjectVersion, error) {
	var list []SubjectVersion
	err := r.call(ctx, http.MethodGet, "/schemas/ids/"+strconv.Itoa(id)+"/versions", nil, nil, &list)
	return list, err
}

// Version returns a version of a subject, or the Latest.
func (r *Registry) Version(ctx context.Context, subject string, version int) (*Version, error) {
	return r.version(ctx, http.MethodGet, versionPath(subject, version), nil, nil)
}

// DeletedVersion is like Version, but also returns deleted versions.
func (r *Registry) DeletedVersion(ctx context.Context, subject string, version int) (*Version, error) {
	return r.version(ctx, http.MethodGet, versionPath(subject, version), flagQuery("deleted", true), nil)
}

// Subjects returns the subjects that the caller may see; with deleted, also those that are
// soft-deleted.
func (r *Registry) Subjects(ctx context.Context, deleted bool) ([]string, error) {
	var list []string
	err := r.call(ctx, http.MethodGet, "/subjects", flagQuery("deleted", deleted), nil, &list)
	return list, err
}

// Versions returns the versions of a subject in order.
func (r *Registry) Versions(ctx context.Context, subject string, deleted bool) ([]int, error) {
	var list []int
	err := r.call(ctx, http.MethodGet, subjectPath(subject)+"/versions", flagQuery("deleted", deleted), nil, &list)
	return list, err
}

// ReferencedBy returns the ids of the schemas that refer to a version.
func (r *Registry) ReferencedBy(ctx context.Context, subject string, version int) ([]int, error) {
	var list []int
	err := r.call(ctx, http.MethodGet, versionPath(subject, version)+"/referencedby", nil, nil, &list)
	return list, err
}

// DeleteVersion deletes a version and returns its number. A soft-deleted version is not listed,
// but readers of old data can still use its id. A second call with permanent deletes it
// permanently.
func (r *Registry) DeleteVersion(ctx context.Context, subject string, version int, permanent bool) (int, error) {
	var number int
	err := r.delete(ctx, versionPath(subject, version), permanent, &number)
	return number, err
}

// DeleteSubject deletes all versions of a subject, like DeleteVersion, and returns their
// numbers.
func (r *Registry) DeleteSubject(ctx context.Context, subject string, permanent bool) ([]int, error) {
	var numbers []int
	err := r.delete(ctx, subjectPath(subject), permanent, &numbers)
	return numbers, err
}

// Level returns the compatibility level of a subject.
func (r *Registry) Level(ctx context.Context, subject string) (string, error) {
	var result struct {
		Level string `json:"compatibilityLevel"`
	}
	err := r.call(ctx, http.MethodGet, "/config/"+url.PathEscape(subject), nil, nil, &result)
	return result.Level, err
}

// SetLevel sets the compatibility level of a subject: NONE, BACKWARD, FORWARD, FULL, the last
// three with _TRANSITIVE, or ALWAYS_INCOMPATIBLE.
func (r *Registry) SetLevel(ctx context.Context, subject, level string) error {
	return r.call(ctx, http.MethodPut, "/config/"+url.PathEscape(subject), nil,
		map[string]string{"compatibility": level}, nil)
}

// Mode returns the mode of the registry: READWRITE, READONLY, READONLY_OVERRIDE or IMPORT.
func (r *Registry) Mode(ctx context.Context) (string, error) {
	var result struct {
		Mode string `json:"mode"`
	}
	err := r.call(ctx, http.MethodGet, "/mode", nil, nil, &result)
	return result.Mode, err
}

// SetMode sets the mode of the registry. IMPORT needs force if subjects exist.
func (r *Registry) SetMode(ctx context.Context, mode string, force bool) error {
	return r.call(ctx, http.MethodPut, "/mode", flagQuery("force", force), map[string]string{"mode": mode}, nil)
}

// call makes an idempotent call. All calls except for deletions are idempotent.
func (r *Registry) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	return r.send(ctx, &client.Request{Method: method, Path: path, Query: query, Idempotent: true}, body, result)
}

func (r *Registry) delete(ctx context.Context, path string, permanent bool, result any) error {
	query := flagQuery("permanent", permanent)
	return r.send(ctx, &client.Request{Method: http.MethodDelete, Path: path, Query: query}, nil, result)
}

func (r *Registry) send(ctx context.Context, request *client.Request, body, result any) error {
	if strings.Contains(request.Path, "//") {
		return errors.New("subject name is empty")
	}
	request.Header = http.Header{"Accept": {"application/vnd.schemaregistry.v1+json, application/json"}}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
		request.Body = text
		request.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	}
	response, err := r.do(ctx, request)
	if err != nil || result == nil {
		return err
	}
	return response.JSON(result)
}

// do makes a call. The registry is under /stream for instances of type standard, and at the
// root for others; the first response shows which.
func (r *Registry) do(ctx context.Context, request *client.Request) (*client.Response, error) {
	path := request.Path
	prefix := "/stream"
	if r.atRoot.Load() {
		prefix = ""
	}
	request.Path = r.c.ClusterPath(prefix + path)
	response, err := r.c.Do(ctx, request)
	var refused *client.Error
	if prefix == "" || !errors.As(err, &refused) || refused.Code != http.StatusNotFound {
		return response, err // error codes 404xx are about the requested object
	}
	request.Path = r.c.ClusterPath(path)
	again, rootErr := r.c.Do(ctx, request)
	if rootErr != nil && (!errors.As(rootErr, &refused) || refused.Code <= 999) {
		return response, err
	}
	r.atRoot.Store(true)
	return again, rootErr
}

// version makes a call that returns a version.
func (r *Registry) version(ctx context.Context, method, path string, query url.Values, body any) (*Version, error) {
	v := new(Version)
	if err := r.call(ctx, method, path, query, body, v); err != nil {
		return nil, err
	}
	v.defaults()
	return v, nil
}

func (s *Schema) defaults() { s.Type = cmp.Or(s.Type, Avro) }

func subjectPath(subject string) string { return "/subjects/" + url.PathEscape(subject) }

func versionPath(subject string, version int) string {
	number := strconv.Itoa(version)
	if version == Latest {
		number = "latest"
	}
	return subjectPath(subject) + "/versions/" + number
}

func flagQuery(name string, set bool) url.Values {
	if !set {
		return nil
	}
	return url.Values{name: {"true"}}
}
