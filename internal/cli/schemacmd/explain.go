package schemacmd

import (
	"errors"
	"strings"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// explainInvalid replaces the registry's error about a schema that is not valid. That error
// contains the text of the schema, which may be that of another file with secrets.
func explainInvalid(err error, file string) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	details, ok := invalidDetails(refused.Message)
	if !ok {
		return err
	}
	return hint.Add(errs.Newf(errs.Invalid, "file %s is not a valid schema: %s", file, details),
		"Set the language of the schema with --type avro, json or protobuf.")
}

// invalidDetails returns the part of the registry's message about an invalid schema that follows
// the text of the schema.
func invalidDetails(message string) (string, bool) {
	const begin, end = "Invalid schema {", "}, details: "
	i := strings.LastIndex(message, end)
	if !strings.HasPrefix(message, begin) || i < 0 {
		return "", false
	}
	return message[i+len(end):], true
}

// describeProblem returns the description of a problem without the text of the schema.
func describeProblem(description string) string {
	if details, ok := invalidDetails(description); ok {
		return "not a valid schema: " + details
	}
	return description
}
