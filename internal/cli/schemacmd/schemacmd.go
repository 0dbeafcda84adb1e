// Package schemacmd implements the commands for the schema registry. They use only the
// public package client/schemas.
package schemacmd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// Commands returns `freshet schema`.
func Commands(env *command.Env) []*cobra.Command {
	cmd := command.Parent(&cobra.Command{
		Use:     "schema",
		Aliases: []string{"schemas"},
		Short:   "Register, check, compare and delete schemas",
		Long: `Register, check, compare and delete schemas in the cluster's registry: Avro, JSON Schema
and Protobuf.`,
		Example: `  # check a schema, for example in continuous integration
  freshet schema check orders-value order.avsc

  # register it
  freshet schema register orders-value order.avsc

  # list the subjects
  freshet schema list`,
	}, newRegister(env), newGet(env), newList(env), newCheck(env), newDiff(env), newDelete(env),
		newExport(env), newImport(env), newLevel(env), newMode(env))
	return command.InSection(command.SectionMessages, cmd)
}

// missingSchema matches the registry's errors about a subject, a version or a schema that does not exist.
var missingSchema = regexp.MustCompile(`^(Subject|Version|Schema) .* not found`)

// onRegistry returns the RunE function of a command that needs the chosen cluster's
// registry.
func onRegistry(env *command.Env,
	do func(cmd *cobra.Command, r *schemas.Registry, given []string) error,
) func(*cobra.Command, []string) error {
	return env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
		err := do(cmd, schemas.New(c), given)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound && hint.Of(err) == "" &&
			missingSchema.MatchString(refused.Message) {
			return hint.Add(err, "'freshet schema list' lists the subjects with their versions.")
		}
		return err
	})
}

// onRegistry returns the RunE function of a command with the arguments SUBJECT and FILE. It
// reads the file before it connects to the server.
func (s *source) onRegistry(env *command.Env,
	do func(cmd *cobra.Command, r *schemas.Registry, subject string, schema schemas.Schema) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, given []string) error {
		schema, err := s.read(cmd, env, given[1])
		if err != nil {
			return err
		}
		return onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			return explainInvalid(do(cmd, r, given[0], schema), given[1])
		})(cmd, given)
	}
}

// source has the flags for reading a schema from a file.
type source struct {
	kind       string
	references []string
}

func (s *source) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.kind, "type", "", "`language` of the schema: avro, json or protobuf (default: by the "+
		"file name, .avsc, .json or .proto)")
	cmd.Flags().StringArrayVar(&s.references, "reference", nil,
		"reference to another schema, as `name=subject:version`; may be repeated")
}

// maxFile limits the size of a schema in bytes. It is larger than a server accepts.
const maxFile = 16 << 20

// read reads a schema from a file, or from standard input (-).
func (s *source) read(cmd *cobra.Command, env *command.Env, file string) (schemas.Schema, error) {
	schema := schemas.Schema{Type: languageOf(file)}
	if s.kind != "" {
		schema.Type = schemas.Type(strings.ToUpper(s.kind))
		if schema.Type != schemas.Avro && schema.Type != schemas.JSON && schema.Type != schemas.Protobuf {
			return schema, command.Usagef(cmd, "--type takes avro, json or protobuf")
		}
	}
	for _, text := range s.references {
		reference, err := parseReference(text)
		if err != nil {
			return schema, command.Usagef(cmd, "--reference %q: %w", text, err)
		}
		schema.References = append(schema.References, reference)
	}
	in := env.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return schema, err
		}
		defer func() { _ = opened.Close() }() // only read
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return schema, fmt.Errorf("reading the schema: %w", err)
	}
	if len(text) > maxFile {
		return schema, fmt.Errorf("file %s is larger than the maximum of a schema, %d bytes", file, maxFile)
	}
	schema.Text = string(text)
	return schema, nil
}

func languageOf(file string) schemas.Type {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json":
		return schemas.JSON
	case ".proto":
		return schemas.Protobuf
	}
	return schemas.Avro
}

func parseReference(text string) (schemas.Reference, error) {
	var r schemas.Reference
	name, rest, ok := strings.Cut(text, "=")
	at := strings.LastIndex(rest, ":")
	if !ok || name == "" || at <= 0 {
		return r, fmt.Errorf("not of the form name=subject:version")
	}
	version, err := parseVersion(rest[at+1:])
	if err != nil {
		return r, err
	}
	return schemas.Reference{Name: name, Subject: rest[:at], Version: version}, nil
}

func parseVersion(text string) (int, error) {
	if text == "latest" {
		return schemas.Latest, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("version %q is not valid; use a number from 1, or latest", text)
	}
	return n, nil
}

// completeSubjects completes the first argument with the names of subjects, and others with
// files.
func completeSubjects(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		c, err := env.ClusterClient(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		subjects, _ := schemas.New(c).Subjects(cmd.Context(), false) // none after an error
		return subjects, cobra.ShellCompDirectiveNoFileComp
	}
}
