package schemacmd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newRegister(env *command.Env) *cobra.Command {
	var in source
	var normalize bool
	var format output.Format
	cmd := &cobra.Command{
		Use:   "register SUBJECT FILE",
		Short: "Register a schema as the next version of a subject",
		Long: `Register a schema as the next version of a subject. If the subject already has the
schema, nothing changes. The server rejects a change that the subject's compatibility
level does not allow.`,
		Example: `  # Avro, detected by the file name
  freshet schema register orders-value order.avsc

  # Protobuf that imports another schema
  freshet schema register invoice invoice.proto --reference customer.proto=customer:1

  # from a pipe; print only the id
  echo '"string"' | freshet schema register notes-value - -o name`,
		Args:              command.Args(0, "the subject", "a file with the schema, or - for standard input"),
		ValidArgsFunction: completeSubjects(env),
		RunE: in.onRegistry(env,
			func(cmd *cobra.Command, r *schemas.Registry, subject string, schema schemas.Schema) error {
				register := r.Register
				if normalize {
					register = r.RegisterNormalized
				}
				id, err := register(cmd.Context(), subject, schema)
				if errors.Is(err, client.ErrConflict) {
					return explainConflict(cmd, env, r, subject, schema, err)
				}
				if err != nil {
					return err
				}
				if format == output.FormatName {
					return env.Println(id)
				}
				version, err := versionOf(cmd, r, id, subject)
				if err != nil {
					return err
				}
				if format.IsData() {
					return output.Value(env.Out, format,
						map[string]any{"subject": subject, "version": version, "id": id})
				}
				return env.Printf("%s has the schema as version %d, id %d\n", subject, version, id)
			}),
	}
	cmd.Flags().BoolVar(&normalize, "normalize", false, "normalize the schema before it is registered")
	in.addFlags(cmd)
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML,
		output.FormatName)
	return cmd
}

// explainConflict prints why the server rejected a schema, in the format of check.
func explainConflict(cmd *cobra.Command, env *command.Env, r *schemas.Registry, subject string, schema schemas.Schema,
	refusal error,
) error {
	result, err := r.Check(cmd.Context(), subject, schema)
	if err != nil || result.Compatible {
		return refusal // the subject has changed in the meantime
	}
	if err := printCheck(env.Err, output.StyleFor(env.Err, env.Getenv), subject, result); err != nil {
		return err
	}
	return hint.Add(errIncompatible, "'freshet schema level %s' shows and sets the compatibility level.", subject)
}

// versionOf returns the latest version of a subject that has the schema with an id.
func versionOf(cmd *cobra.Command, r *schemas.Registry, id int, subject string) (int, error) {
	uses, err := r.SubjectVersions(cmd.Context(), id)
	if err != nil {
		return 0, err
	}
	version := 0
	for _, p := range uses {
		if p.Subject == subject {
			version = max(version, p.Version)
		}
	}
	return version, nil
}

func newGet(env *command.Env) *cobra.Command {
	var id int
	var deleted bool
	var format output.Format
	cmd := &cobra.Command{
		Use:   "get SUBJECT [VERSION]",
		Short: "Show a schema",
		Long:  `Show the text of a schema: the latest version of a subject, another version, or by its id.`,
		Example: `  # the latest version
  freshet schema get orders-value

  # version 1, with its id and references
  freshet schema get orders-value 1 -o json

  # by the id that messages contain
  freshet schema get --id $(freshet schema register orders-value order.avsc -o name)`,
		Args: func(cmd *cobra.Command, given []string) error {
			if cmd.Flags().Changed("id") {
				return command.NoArgs(cmd, given)
			}
			return command.Args(1, "the subject, or --id")(cmd, given)
		},
		ValidArgsFunction: completeSubjects(env),
		RunE: onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			if cmd.Flags().Changed("id") {
				schema, err := r.ByID(cmd.Context(), id)
				if err != nil {
					return err
				}
				return printSchema(env, format, schema, schema.Text)
			}
			version := schemas.Latest
			if len(given) > 1 {
				number, err := parseVersion(given[1])
				if err != nil {
					return command.Usagef(cmd, "%w", err)
				}
				version = number
			}
			get := r.Version
			if deleted {
				get = r.DeletedVersion
			}
			v, err := get(cmd.Context(), given[0], version)
			if err != nil {
				return err
			}
			return printSchema(env, format, v, v.Text)
		}),
	}
	cmd.Flags().IntVar(&id, "id", 0, "`id` of the schema, instead of a subject")
	cmd.Flags().BoolVar(&deleted, "deleted", false, "also find deleted versions")
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func printSchema(env *command.Env, format output.Format, value any, text string) error {
	if format != output.FormatText {
		return output.Value(env.Out, format, value)
	}
	if output.IsTerminal(env.Out) {
		text = output.Clean(text)
	}
	return env.Println(strings.TrimRight(text, "\n"))
}

// subjectSummary is a subject in a list.
type subjectSummary struct {
	Subject  string `json:"subject"`
	Versions []int  `json:"versions,omitempty"`
	Type     string `json:"type,omitempty"`
	ID       int    `json:"id,omitempty"`
	Level    string `json:"level,omitempty"`
}

func newList(env *command.Env) *cobra.Command {
	var deleted bool
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list [SUBJECT]...",
		Aliases: []string{"ls"},
		Short:   "List subjects with their versions",
		Example: `  # all subjects that you may see
  freshet schema list

  # names only, for scripts
  freshet schema list -o name

  # one subject
  freshet schema list orders-value`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeSubjects(env),
		RunE: onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			subjects := given
			if len(subjects) == 0 {
				all, err := r.Subjects(cmd.Context(), deleted)
				if err != nil {
					return err
				}
				subjects = all
			}
			if format == output.FormatName {
				for _, s := range subjects {
					if _, err := fmt.Fprintln(env.Out, s); err != nil {
						return err
					}
				}
				return nil
			}
			if len(subjects) == 0 {
				if err := env.CheckListed(cmd.Context(), "schema.subjects", "schemas", func() error {
					_, err := r.Versions(cmd.Context(), "any", false)
					return err
				}); err != nil {
					return err
				}
			}
			return listSubjects(cmd, env, r, subjects, deleted, format)
		}),
	}
	cmd.Flags().BoolVar(&deleted, "deleted", false,
		"also list deleted subjects and versions, unless permanently deleted")
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

func listSubjects(cmd *cobra.Command, env *command.Env, r *schemas.Registry, subjects []string, deleted bool,
	format output.Format,
) error {
	all := []subjectSummary{}
	for _, subject := range subjects {
		one := subjectSummary{Subject: subject}
		var err error
		if one.Versions, err = r.Versions(cmd.Context(), subject, deleted); err != nil {
			return err
		}
		if latest, err := r.Version(cmd.Context(), subject, schemas.Latest); err == nil {
			one.Type, one.ID = string(latest.Type), latest.ID
		} else if !errors.Is(err, client.ErrNotFound) { // not found: all versions are deleted
			return err
		}
		if one.Level, err = r.Level(cmd.Context(), subject); err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
		all = append(all, one)
	}
	table := output.Table{Columns: output.Columns("Subject", "Versions", "Type", "Latest id", "Level")}
	for _, s := range all {
		table.Rows = append(table.Rows, []string{s.Subject, ranges(s.Versions), s.Type, idText(s.ID), s.Level})
	}
	return env.List(format, all, &table, "No schemas. Register one with 'freshet schema register SUBJECT FILE'.")
}

func idText(id int) string {
	if id == 0 {
		return "deleted"
	}
	return strconv.Itoa(id)
}

// ranges formats 1, 2, 3, 5 as 1-3,5.
func ranges(versions []int) string {
	var parts []string
	for i := 0; i < len(versions); {
		end := i
		for end+1 < len(versions) && versions[end+1] == versions[end]+1 {
			end++
		}
		text := strconv.Itoa(versions[i])
		if end > i {
			text += "-" + strconv.Itoa(versions[end])
		}
		parts, i = append(parts, text), end+1
	}
	return strings.Join(parts, ",")
}

// levels describes the compatibility levels.
var levels = map[string]string{
	"NONE":                "any schema is accepted",
	"BACKWARD":            "the new version can read data of the last version",
	"FORWARD":             "the last version can read data of the new version",
	"FULL":                "BACKWARD and FORWARD",
	"BACKWARD_TRANSITIVE": "the new version can read data of all versions",
	"FORWARD_TRANSITIVE":  "all versions can read data of the new version",
	"FULL_TRANSITIVE":     "BACKWARD_TRANSITIVE and FORWARD_TRANSITIVE",
	"ALWAYS_INCOMPATIBLE": "no other version is accepted",
}

// levelHelp lists the levels for a help text.
func levelHelp() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&b, "  %-20s %s\n", name, levels[name])
	}
	return strings.TrimRight(b.String(), "\n")
}
