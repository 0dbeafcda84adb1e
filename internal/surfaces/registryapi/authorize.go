package registryapi

import (
	"fmt"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/identity/access"
	"freshet/internal/registry/schemas"
	"freshet/internal/surfaces/pipeline"
)

// The permissions that calls need. A consumer's role (schema-reader) has the first two,
// a producer's (schema-writer) the first three.
const (
	describeSubject access.Permission = "schema.subjects.describe"
	listSubjects    access.Permission = "schema.subjects.list"
	createSubject   access.Permission = "schema.subjects.create"
	updateSubject   access.Permission = "schema.subjects.update"
	deleteSubject   access.Permission = "schema.subjects.delete"
	updateMode      access.Permission = "schema.mode.update"
)

// denial is a 403. Clients know the beginning of its text. The missing permission is also in a header.
type denial struct {
	role       string
	target     string
	permission access.Permission
}

func (d *denial) Error() string {
	hint := ""
	if role, ok := access.SmallestRole(d.permission); ok {
		hint = fmt.Sprintf(", which the predefined role %s contains", role.Name)
	}
	return fmt.Sprintf("Role %s cannot access %s: permission %s is missing%s", d.role, d.target, d.permission, hint)
}
func (d *denial) Unwrap() error { return errDenied }

// namespaceMissing is also a 403, but more permissions do not help.
type namespaceMissing struct {
	role    string
	subject string
	name    names.Namespace
}

func (m *namespaceMissing) Error() string {
	return fmt.Sprintf("Role %s cannot access subject %s: namespace %s does not exist; create it with PUT "+
		"/admin/v2/namespaces/%s, after its tenant with PUT /admin/v2/tenants/%s",
		m.role, m.subject, m.name, m.name, m.name.Tenant)
}
func (m *namespaceMissing) Unwrap() error { return errDenied }

// scopeOf returns the scope of a subject: the topic that its name refers to
// (docs/spec/registry.md#subjects).
func (c *call) scopeOf(subject string) (access.Scope, error) {
	scope := c.Scope
	topic, err := names.SubjectTopic(subject)
	if err != nil {
		return scope, schemas.CheckSubject(subject)
	}
	scope = access.TopicScope(scope, topic)
	scope.Subject = subject
	return scope, nil
}

// onSubject returns the check of a permission on the subject of the path. It validates the
// name before it checks the permission.
func onSubject(need access.Permission) func(*call) error {
	return func(c *call) error {
		c.subject = c.param("subject")
		if err := schemas.CheckSubject(c.subject); err != nil {
			return err
		}
		return c.authorize(c.subject, need)
	}
}

// requireNamespace rejects a subject whose name refers to a namespace that does not
// exist (docs/spec/registry.md#d11).
func (c *call) requireNamespace(subject string) error {
	topic, err := names.SubjectTopic(subject)
	if err != nil {
		return schemas.CheckSubject(subject)
	}
	if topic.Namespace == names.PublicDefault {
		return nil
	}
	ok, err := c.Namespaces.HasNamespace(c.R.Context(), topic.Namespace)
	if ok || err != nil {
		return err
	}
	return &namespaceMissing{role: c.Principal.Name, subject: subject, name: topic.Namespace}
}

func (c *call) authorize(subject string, need access.Permission) error {
	scope, err := c.scopeOf(subject)
	if err != nil {
		return err
	}
	return c.require(need, scope, "subject "+subject)
}

// require checks a permission. It returns a denial as an error of the registry.
func (c *call) require(need access.Permission, scope access.Scope, target string) error {
	decision, err := c.Surface.Authorizer.Authorize(c.R.Context(), c.Principal, need, scope)
	c.Authorization = pipeline.Authorization{Permission: need, Scope: scope, Decision: decision}
	if err != nil && errs.KindOf(err) == errs.Denied {
		return &denial{role: c.Principal.Name, target: target, permission: need}
	}
	return err
}

// allowed reports whether the caller has a permission on a subject.
func (c *call) allowed(subject string, need access.Permission) (bool, error) {
	scope, err := c.scopeOf(subject)
	if err != nil {
		return false, nil //nolint:nilerr // a subject with an invalid name cannot exist
	}
	return c.Surface.Allowed(c.R.Context(), c.Principal, need, scope)
}

// authorizeID allows a read by id if the caller may read any subject that has the id.
// The denial does not name the subjects, because the caller must not see them.
func (c *call) authorizeID(id int32) error {
	var ok bool
	var err error
	c.Registry.VisitSubjectsOf(id, func(subject string) bool {
		ok, err = c.allowed(subject, describeSubject)
		return !ok && err == nil
	})
	if ok || err != nil {
		return err
	}
	c.Authorization = pipeline.Authorization{Permission: describeSubject, Scope: c.Scope}
	return &denial{role: c.Principal.Name, target: "schema " + strconv.Itoa(int(id)), permission: describeSubject}
}

// reader decides which subjects a draft may refer to. It implements schemas.Reader.
type reader struct {
	call   *call
	filter *filter // nil before the first reference
}

// MayRead implements schemas.Reader.
func (r *reader) MayRead(subject string) (bool, error) {
	if r.filter == nil {
		f, err := r.call.newFilter(describeSubject)
		if err != nil {
			return false, err
		}
		r.filter = f
	}
	return r.filter.includes(subject)
}

// filter checks a permission on many subjects: once for the whole registry if that is
// allowed, otherwise once per namespace, otherwise for each subject.
type filter struct {
	c          *call
	need       access.Permission
	all        bool
	namespaces map[[2]string]bool
}

func (c *call) newFilter(need access.Permission) (*filter, error) {
	f := &filter{c: c, need: need, namespaces: make(map[[2]string]bool)}
	var err error
	f.all, err = f.allowed(c.Scope)
	return f, err
}

func (f *filter) allowed(scope access.Scope) (bool, error) {
	return f.c.Surface.Allowed(f.c.R.Context(), f.c.Principal, f.need, scope)
}

func (f *filter) includes(subject string) (bool, error) {
	if f.all {
		return true, nil
	}
	scope, err := f.c.scopeOf(subject)
	if err != nil {
		return false, nil //nolint:nilerr // a subject with an invalid name cannot exist
	}
	key := [2]string{scope.Tenant, scope.Namespace}
	namespaceAllowed, known := f.namespaces[key]
	if !known {
		ns := f.c.Scope
		ns.Tenant, ns.Namespace = scope.Tenant, scope.Namespace
		if namespaceAllowed, err = f.allowed(ns); err != nil {
			return false, err
		}
		f.namespaces[key] = namespaceAllowed
	}
	if namespaceAllowed {
		return true, nil
	}
	return f.allowed(scope)
}
