package schemas

import (
	"fmt"
	"strings"

	"freshet/internal/base/errs"
)

// The errors of the registry. errors.Is finds one of them in every error that is
// meant for a client. The text of the error is prescribed by
// docs/spec/registry.md#errors. registryapi maps each error to its numeric code.
var (
	ErrSubjectNotFound       = errs.New(errs.NotFound, "subject not found")
	ErrVersionNotFound       = errs.New(errs.NotFound, "version not found")
	ErrSchemaNotFound        = errs.New(errs.NotFound, "schema not found")
	ErrSubjectSoftDeleted    = errs.New(errs.NotFound, "subject is already soft-deleted")
	ErrSubjectNotSoftDeleted = errs.New(errs.NotFound, "subject is not soft-deleted")
	ErrVersionSoftDeleted    = errs.New(errs.NotFound, "version is already soft-deleted")
	ErrVersionNotSoftDeleted = errs.New(errs.NotFound, "version is not soft-deleted")
	ErrIncompatible          = errs.New(errs.Conflict, "schema is incompatible")
	ErrInvalidSchema         = errs.New(errs.Invalid, "schema is not valid")
	ErrInvalidVersion        = errs.New(errs.Invalid, "version is not valid")
	ErrInvalidLevel          = errs.New(errs.Invalid, "compatibility level is not valid")
	ErrInvalidMode           = errs.New(errs.Invalid, "mode is not valid")
	ErrNotPermitted          = errs.New(errs.Precondition, "operation is not permitted in this mode")
	ErrReferenceExists       = errs.New(errs.Conflict, "schema is referenced")
	ErrInvalidSubject        = errs.New(errs.Invalid, "subject is not valid")
	ErrImport                = errs.New(errs.Invalid, "file cannot be imported")
)

// rejection is a sentinel error with the text for the client.
type rejection struct {
	sentinel *errs.Error
	text     string
}

func (e *rejection) Error() string { return e.text }
func (e *rejection) Unwrap() error { return e.sentinel }

func reject(sentinel *errs.Error, format string, args ...any) error {
	return &rejection{sentinel: sentinel, text: fmt.Sprintf(format, args...)}
}

func subjectNotFound(subject string) error {
	return reject(ErrSubjectNotFound, "Subject '%s' not found.", subject)
}

func versionNotFound(v VersionID) error {
	return reject(ErrVersionNotFound, "Version %s not found.", v)
}

func schemaIDNotFound(id int32) error { return reject(ErrSchemaNotFound, "Schema %d not found", id) }

func schemaNotFound() error { return reject(ErrSchemaNotFound, "Schema not found") }

func subjectSoftDeleted(subject string) error {
	// Quirk: no space after the full stop.
	return reject(ErrSubjectSoftDeleted, "Subject '%s' was soft deleted.Set permanent=true to delete permanently",
		subject)
}

func subjectNotSoftDeleted(subject string) error {
	return reject(ErrSubjectNotSoftDeleted, "Subject '%s' was not deleted first before being permanently deleted",
		subject)
}

func versionSoftDeleted(subject string, v VersionID) error {
	// Quirk: no space after the full stop.
	return reject(ErrVersionSoftDeleted,
		"Subject '%s' Version %s was soft deleted.Set permanent=true to delete permanently", subject, v)
}

func versionNotSoftDeleted(subject string, v VersionID) error {
	return reject(ErrVersionNotSoftDeleted,
		"Subject '%s' Version %s was not deleted first before being permanently deleted", subject, v)
}

func invalidVersion(text string) error {
	return reject(ErrInvalidVersion, "The specified version '%s' is not a valid version id. Allowed values are "+
		"between [1, 2^31-1] and the string \"latest\"", clip(text, 64))
}

func invalidSubject(subject string) error {
	// Quirk: "is not a valid", as in Confluent Schema Registry.
	return reject(ErrInvalidSubject, "The specified subject '%s' is not a valid.", clip(subject, 512))
}

func invalidLevel() error {
	return reject(ErrInvalidLevel, "Invalid compatibility level. Valid values are none, backward, forward, full, "+
		"backward_transitive, forward_transitive, full_transitive, and always_incompatible")
}

func invalidMode() error {
	return reject(ErrInvalidMode, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT.")
}

func readOnly(subject string) error {
	return reject(ErrNotPermitted, "Subject %s in context . is in read-only mode", subject)
}

func notInImportMode(subject string) error {
	return reject(ErrNotPermitted, "Subject %s in context . is not in import mode", subject)
}

func notInReadWriteMode(subject string) error {
	return reject(ErrNotPermitted, "Subject %s in context . is not in read-write mode", subject)
}

func overwriteNotPermitted(id int32) error {
	return reject(ErrNotPermitted, "Overwrite new schema with id %d in context . is not permitted.", id)
}

func referenceExists(subject string, v VersionID) error {
	return reject(ErrReferenceExists,
		"One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=%s,version=%s}.", subject, v)
}

func incompatible(subject string, messages []string) error {
	return reject(ErrIncompatible,
		"Schema being registered is incompatible with an earlier schema for subject \"%s\", details: [%s]",
		subject, strings.Join(messages, ", "))
}

// invalidSchema returns an error with the draft and the reason of its rejection.
func invalidSchema(subject string, d *Draft, format string, args ...any) error {
	return reject(ErrInvalidSchema,
		"Invalid schema {subject=%s,version=%s,id=%d,schemaType=%s,references=%s,schema=%s}, details: %s",
		subject, VersionID(d.Version), d.ID, d.Type, describeReferences(d.References), clip(d.Text, 1024),
		fmt.Sprintf(format, args...))
}

func describeReferences(refs []Reference) string {
	parts := make([]string, 0, min(len(refs), 20))
	for i, ref := range refs {
		if i == 20 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts,
			fmt.Sprintf("{name='%s', subject='%s', version=%s}", clip(ref.Name, 256), clip(ref.Subject, 256),
				VersionID(ref.Version)))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// clip returns s, or at most its first n bytes, without a partial character, and
// "...".
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "..."
}
