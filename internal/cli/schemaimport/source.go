package schemaimport

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

// maxVersionBytes limits the response for one version: a schema of 5 MB with escapes.
const maxVersionBytes = 16 << 20

// Credentials authenticate at the source: a user and a password, or a bearer token. The zero value is
// for a registry without authentication.
type Credentials struct {
	User, Password string
	Token          string
}

// authorization returns the value of the Authorization header, or "".
func (c Credentials) authorization() string {
	switch {
	case c.Token != "":
		return "Bearer " + c.Token
	case c.User != "" || c.Password != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
	}
	return ""
}

// Source is the registry that is read.
type Source struct {
	c      *client.Client
	header http.Header
	// context is the schema context to read, without its leading dot; "" is the default context.
	context string
}

// SourceConfig configures a Source.
type SourceConfig struct {
	// URL is the address of the registry, to which /subjects is appended.
	URL         string
	Credentials Credentials
	// CA contains PEM certificates to trust instead of those of the system.
	CA []byte
	// Context is the name of a schema context of Confluent Schema Registry; "" is the default context.
	Context string
	// UserAgent identifies the program in the log of the source.
	UserAgent string
}

// NewSource returns a Source. It makes no request. Redirects are not followed, so the credentials reach
// no other address.
func NewSource(config SourceConfig) (*Source, error) {
	c, err := client.New(client.Config{BaseURL: config.URL, CA: config.CA, UserAgent: config.UserAgent})
	if err != nil {
		return nil, err
	}
	s := &Source{
		c: c, context: strings.TrimPrefix(config.Context, "."),
		header: http.Header{"Accept": {"application/vnd.schemaregistry.v1+json, application/json"}},
	}
	if value := config.Credentials.authorization(); value != "" {
		s.header.Set("Authorization", value)
	}
	return s, nil
}

// Close closes idle connections.
func (s *Source) Close() { s.c.Close() }

// ErrSource matches every error of a request to the source.
var ErrSource = errors.New("source")

// sourceError is an error of a request to the source.
type sourceError struct{ err error }

func (e *sourceError) Error() string        { return e.err.Error() }
func (e *sourceError) Unwrap() error        { return e.err }
func (e *sourceError) Is(target error) bool { return target == ErrSource }

// errRedirect is the error of a source that redirects to another address.
var errRedirect = errors.New("registry redirects to another address; import from that address if you trust it with " +
	"the credentials")

// get reads a path of the source.
func (s *Source) get(ctx context.Context, path string, query url.Values, limit int64, result any) error {
	response, err := s.c.Do(ctx, &client.Request{
		Method: http.MethodGet, Path: path, Query: query, Header: s.header, MaxResponse: limit,
	})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status >= 300 && refused.Status < 400 {
		return fmt.Errorf("%w (status %d)", errRedirect, refused.Status)
	}
	if err != nil {
		return &sourceError{err}
	}
	if err := json.Unmarshal(response.Body, result); err != nil {
		return errors.New("response is not that of a schema registry; check the path of the URL")
	}
	return nil
}

// version is a version of a subject at the source.
type version struct {
	Subject    string              `json:"subject"`
	Version    int                 `json:"version"`
	ID         int                 `json:"id"`
	Type       string              `json:"schemaType"`
	References []schemas.Reference `json:"references"`
	Schema     string              `json:"schema"`
	Metadata   json.RawMessage     `json:"metadata"`
	RuleSet    json.RawMessage     `json:"ruleSet"`
}

// hasContract reports whether the version has metadata or rules, which Freshet does not store.
func (v *version) hasContract() bool { return isSet(v.Metadata) || isSet(v.RuleSet) }

// isSet reports whether an optional JSON value is there.
func isSet(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// subjects returns the sorted names of all subjects of the context, soft-deleted ones included, and the
// names of the other contexts that the source lists.
func (s *Source) subjects(ctx context.Context) (own, contexts []string, err error) {
	query := url.Values{"deleted": {"true"}}
	if s.context != "" {
		query.Set("subjectPrefix", ":."+s.context+":")
	}
	var names []string
	if err := s.get(ctx, "/subjects", query, 0, &names); err != nil {
		return nil, nil, fmt.Errorf("listing the subjects: %w", err)
	}
	for _, name := range names {
		if in, subject := splitContext(name); in == s.context {
			own = append(own, subject)
		} else {
			contexts = append(contexts, in)
		}
	}
	slices.Sort(own)
	slices.Sort(contexts)
	return slices.Compact(own), slices.Compact(contexts), nil
}

// splitContext splits a qualified subject, :.CONTEXT:SUBJECT, into the context and the subject.
func splitContext(name string) (in, subject string) {
	rest, qualified := strings.CutPrefix(name, ":.")
	if !qualified {
		return "", name
	}
	in, subject, found := strings.Cut(rest, ":")
	if !found {
		return "", name
	}
	return in, subject
}

// path returns the path of a subject in a collection of the source: subjects, config or mode.
func (s *Source) path(collection, subject string) string {
	if s.context != "" {
		subject = ":." + s.context + ":" + subject
	}
	return "/" + collection + "/" + url.PathEscape(subject)
}

// versions returns the version numbers of a subject; with deleted also the soft-deleted ones. It
// returns none if the subject has none.
func (s *Source) versions(ctx context.Context, subject string, deleted bool) ([]int, error) {
	query := url.Values{}
	if deleted {
		query.Set("deleted", "true")
	}
	var numbers []int
	err := s.get(ctx, s.path("subjects", subject)+"/versions", query, 0, &numbers)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return nil, fmt.Errorf("listing the versions of subject %s: %w", subject, err)
	}
	slices.Sort(numbers)
	return numbers, nil
}

// version returns a version of a subject, soft-deleted or not, with its references resolved to subjects
// of the same context and to version numbers.
func (s *Source) version(ctx context.Context, subject string, number int) (*version, error) {
	v := new(version)
	path := s.path("subjects", subject) + "/versions/" + strconv.Itoa(number)
	err := s.get(ctx, path, url.Values{"deleted": {"true"}}, maxVersionBytes, v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading subject %s version %d: %w", subject, number, err)
	case v.ID < 1 || v.Schema == "":
		return nil, fmt.Errorf("reading subject %s version %d: response of the source has no id or no schema", subject,
			number)
	}
	v.Subject, v.Version = subject, number
	for i := range v.References {
		if err := s.resolve(ctx, &v.References[i]); err != nil {
			return nil, fmt.Errorf("reading subject %s version %d: %w", subject, number, err)
		}
	}
	return v, nil
}

// resolve replaces a qualified subject of a reference by its name in the context, and the version -1
// (the latest) by its number.
func (s *Source) resolve(ctx context.Context, r *schemas.Reference) error {
	if strings.HasPrefix(r.Subject, ":.") {
		in, subject := splitContext(r.Subject)
		if in != s.context {
			return fmt.Errorf("it refers to %s in another context; register that schema in this context first",
				r.Subject)
		}
		r.Subject = subject
	}
	if r.Version != schemas.Latest {
		return nil
	}
	var latest version
	if err := s.get(ctx, s.path("subjects", r.Subject)+"/versions/latest", nil, maxVersionBytes, &latest); err != nil {
		return fmt.Errorf("reading the latest version of %s, to which it refers: %w", r.Subject, err)
	}
	r.Version = latest.Version
	return nil
}

// level returns the compatibility level of a subject, or of the registry if subject is "". It is ""
// if none is set.
func (s *Source) level(ctx context.Context, subject string) (string, error) {
	path := s.path("config", subject)
	if subject == "" {
		path = "/config"
	}
	var config struct {
		Level string `json:"compatibilityLevel"`
	}
	err := s.get(ctx, path, nil, 0, &config)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return "", fmt.Errorf("reading the compatibility level of %s: %w", described(subject), err)
	}
	return config.Level, nil
}

// mode returns the mode of a subject, or of the registry if subject is "". It is "" if none is set,
// or if the source has no modes of that kind.
func (s *Source) mode(ctx context.Context, subject string) (string, error) {
	path := s.path("mode", subject)
	if subject == "" {
		path = "/mode"
	}
	var result struct {
		Mode string `json:"mode"`
	}
	err := s.get(ctx, path, nil, 0, &result)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return "", fmt.Errorf("reading the mode of %s: %w", described(subject), err)
	}
	return result.Mode, nil
}

func described(subject string) string {
	if subject == "" {
		return "the source"
	}
	return "subject " + subject
}

// maxID returns the highest id that the source has ever assigned, or 0 if it does not report it.
func (s *Source) maxID(ctx context.Context, known int) (int, error) {
	var schema struct {
		MaxID int `json:"maxId"`
	}
	query := url.Values{"fetchMaxId": {"true"}}
	if s.context != "" {
		query.Set("subject", ":."+s.context+":")
	}
	err := s.get(ctx, "/schemas/ids/"+strconv.Itoa(known), query, maxVersionBytes, &schema)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return 0, fmt.Errorf("reading the highest id: %w", err)
	}
	return schema.MaxID, nil
}
