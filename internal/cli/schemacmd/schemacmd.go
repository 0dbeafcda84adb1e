// Package schemacmd has the commands about the schema registry. They do what
// package client/schemas can do and nothing else.
package schemacmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/client/schemas"
	"freshet/internal/cli/command"
)

// Commands makes the family.
func Commands(env *command.Env) []*cobra.Command {
	cmd := &cobra.Command{
		Use:     "schema",
		Aliases: []string{"schemas"},
		Short:   "Register, check, compare and delete schemas",
		Long: `Register, check, compare and delete schemas of the cluster's registry: Avro, JSON
Schema and Protobuf.`,
		Example: `  # would this be accepted as the next version? (for continuous integration)
  freshet schema check orders-value order.avsc

  # then register it
  freshet schema register orders-value order.avsc

  # what is there
  freshet schema list`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newRegister(env), newGet(env), newList(env), newCheck(env), newDiff(env), newDelete(env),
		newExport(env), newImport(env), newLevel(env), newMode(env))
	return command.InGroup(command.GroupMessages, cmd)
}

// args demands arguments and says what they are; optional ones may follow.
func args(optional int, what ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) < len(what) {
			return command.Usagef(cmd, "say what to use: %s", strings.Join(what[len(given):], ", "))
		}
		return command.AtMost(len(what)+optional)(cmd, given)
	}
}

// connect returns the registry of the chosen cluster.
func connect(cmd *cobra.Command, env *command.Env) (*schemas.Registry, *client.Client, error) {
	c, err := env.ClusterClient(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	return schemas.New(c), c, nil
}

// onRegistry makes what a command runs of what it does with the chosen cluster's
// registry.
func onRegistry(env *command.Env,
	do func(cmd *cobra.Command, r *schemas.Registry, given []string) error,
) func(*cobra.Command, []string) error {
	return env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
		return do(cmd, schemas.New(c), given)
	})
}

// onRegistry is for a command whose arguments are a subject and a file with a schema.
// The file is read before the server is asked.
func (s *source) onRegistry(env *command.Env,
	do func(cmd *cobra.Command, r *schemas.Registry, subject string, schema schemas.Schema) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, given []string) error {
		schema, err := s.read(cmd, env, given[1])
		if err != nil {
			return err
		}
		return onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			return do(cmd, r, given[0], schema)
		})(cmd, given)
	}
}

// source is a schema that is read from a file.
type source struct {
	kind       string
	references []string
}

func (s *source) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.kind, "type", "", "`language` of the schema: avro, json or protobuf; told by the "+
		"file's name (.avsc, .json, .proto) when not given")
	cmd.Flags().StringArrayVar(&s.references, "reference", nil,
		"what the schema refers to, as `name=subject:version`; may be given several times")
}

// maxFile bounds a schema that is read: more than a server takes.
const maxFile = 16 << 20

// read reads the schema in a file, or on standard input.
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
		defer func() { _ = opened.Close() }() // it was only read
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return schema, fmt.Errorf("reading the schema: %w", err)
	}
	if len(text) > maxFile {
		return schema, fmt.Errorf("%s is larger than a schema can be", file)
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
		return r, fmt.Errorf("it is not of the form name=subject:version")
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
		return 0, fmt.Errorf("%q is not a version: give a number from 1, or latest", text)
	}
	return n, nil
}

// completeSubjects offers the names of subjects for a first argument, and files
// for others.
func completeSubjects(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		r, c, err := connect(cmd, env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		subjects, err := r.Subjects(cmd.Context(), false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return subjects, cobra.ShellCompDirectiveNoFileComp
	}
}
