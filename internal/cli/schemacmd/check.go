package schemacmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// errIncompatible is the result of a check that found incompatibilities. Its exit code is
// that of a conflict.
var errIncompatible = errs.New(errs.Conflict, "schema is not compatible")

func newCheck(env *command.Env) *cobra.Command {
	var in source
	var against string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "check SUBJECT FILE",
		Short: "Check whether a schema can become the next version",
		Long: `Check whether a schema can become the next version of a subject at the subject's
compatibility level, and show why not. The command changes nothing. The exit code is 0 if
the schema is compatible and 5 if not, for use in continuous integration. A subject that
does not exist accepts any valid schema.`,
		Example: `  # check a schema
  freshet schema check orders-value order.avsc

  # compare with one version only
  freshet schema check orders-value order.avsc --against 1

  # in a script
  if freshet schema check orders-value broken.avsc; then echo "fine"; else echo "better not"; fi`,
		Args:              command.Args(0, "the subject", "a file with the schema, or - for standard input"),
		ValidArgsFunction: completeSubjects(env),
		RunE: in.onRegistry(env,
			func(cmd *cobra.Command, r *schemas.Registry, subject string, schema schemas.Schema) error {
				var result *schemas.Compatibility
				var err error
				if against == "" {
					result, err = r.Check(cmd.Context(), subject, schema)
				} else {
					var version int
					if version, err = parseVersion(against); err != nil {
						return command.Usagef(cmd, "--against: %w", err)
					}
					result, err = r.CheckVersion(cmd.Context(), subject, version, schema)
				}
				if err != nil {
					return err
				}
				if result.Level == "" { // the server returns the level only with incompatibilities
					if result.Level, err = r.Level(cmd.Context(), subject); err != nil &&
						!errors.Is(err, client.ErrNotFound) {
						return err
					}
				}
				if format != output.FormatText {
					err = output.Value(env.Out, format, result)
				} else {
					err = printCheck(env.Out, env.Style(), subject, result)
				}
				if err == nil && !result.Compatible {
					err = errIncompatible
				}
				return err
			}),
	}
	cmd.Flags().StringVar(&against, "against", "", "compare only with this `version`")
	in.addFlags(cmd)
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func printCheck(w io.Writer, style output.Style, subject string, result *schemas.Compatibility) error {
	if result.Compatible {
		_, err := fmt.Fprintf(w, "%s compatible with %s%s\n", style.Good("✓"), subject, atLevel(result.Level))
		return err
	}
	head := "not compatible with " + subject + atLevel(result.Level)
	if result.Against > 0 {
		head += fmt.Sprintf(", compared with version %d", result.Against)
	}
	if _, err := fmt.Fprintf(w, "%s %s:\n", style.Bad("✗"), head); err != nil {
		return err
	}
	for _, p := range result.Problems {
		if _, err := fmt.Fprintf(w, "  - %s\n", indent(output.Clean(describeProblem(p.Description)))); err != nil {
			return err
		}
		if advice := suggestions[p.Type]; advice != "" {
			if _, err := fmt.Fprintf(w, "    %s\n", style.Faint(advice)); err != nil {
				return err
			}
		}
	}
	return nil
}

func atLevel(level string) string {
	if level == "" {
		return ""
	}
	return " at the level " + level
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// suggestions are suggestions for the most common problems, by type.
var suggestions = map[string]string{
	"READER_FIELD_MISSING_DEFAULT_VALUE": "Give the field a default, so that data without it can be read.",
	"MISSING_ENUM_SYMBOLS":               "Keep the symbols, or give the enum a default.",
	"TYPE_MISMATCH":                      "Keep the type, or add a field with the new one.",
	"NAME_MISMATCH":                      "Keep the name, or add the old one as an alias.",
	"MISSING_UNION_BRANCH":               "Keep all branches of the union.",
	"FIXED_SIZE_MISMATCH":                "Keep the size, or add a field of a new type.",
	"FIELD_SCALAR_KIND_CHANGED":          "Keep the type of the field, or add one with a new number.",
	"FIELD_KIND_CHANGED":                 "Keep the type of the field, or add one with a new number.",
	"FIELD_NAMED_TYPE_CHANGED":           "Keep the type of the field, or add one with a new number.",
	"REQUIRED_FIELD_ADDED":               "Make the field optional.",
	"REQUIRED_FIELD_REMOVED":             "Keep the field, which old readers require.",
	"MESSAGE_REMOVED":                    "Keep the message, or set the subject's level to NONE for this change.",
	"PACKAGE_CHANGED":                    "Keep the package, or use another subject.",
	"REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "Make the property optional and the content model closed " +
		"(additionalProperties: false), or give it a default.",
	"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "Make the property optional, or give it a default.",
	"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "Old data may contain this property with any type: close the " +
		"content model (additionalProperties: false) first.",
	"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "Keep the property, or let additionalProperties cover it.",
	"REQUIRED_ATTRIBUTE_ADDED":                   "Keep the property optional, or give it a default.",
	"TYPE_NARROWED":                              "Keep the wider type.",
	"TYPE_CHANGED":                               "Keep the type, or add a property with the new one.",
	"ENUM_ARRAY_NARROWED":                        "Keep the values that old data may have.",
}

func newDiff(env *command.Env) *cobra.Command {
	var in source
	var file string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "diff SUBJECT [FROM [TO]]",
		Short: "Compare two versions, or a version and a file",
		Long: `Compare two versions of a subject, or a version and a file: list every change and its
effect on readers. The default is to compare the last two versions, or with --file the
latest version and the file.`,
		Example: `  # the last two versions
  freshet schema diff orders-value

  # two given versions
  freshet schema diff orders-value 1 2

  # the latest version and a draft
  freshet schema diff orders-value --file order.avsc`,
		Args:              command.Args(2, "the subject"),
		ValidArgsFunction: completeSubjects(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if file != "" && len(given) > 2 {
				return command.Usagef(cmd, "set one version and --file, or two versions")
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			r := schemas.New(c)
			from, to, err := versionsToCompare(cmd, r, given)
			if err != nil {
				return err
			}
			if file != "" {
				draft, err := in.read(cmd, env, file)
				if err != nil {
					return err
				}
				if len(given) < 2 {
					from.Version = schemas.Latest
				}
				to = schemas.Side{Subject: given[0], Draft: &draft}
			}
			d, err := r.Diff(cmd.Context(), from, to)
			if err != nil {
				return explainInvalid(err, file)
			}
			if format != output.FormatText {
				return output.Value(env.Out, format, d)
			}
			return printDiff(env, d)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "compare with the schema in this `file`, or - for standard input")
	in.addFlags(cmd)
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// versionsToCompare returns the versions to compare: those of the arguments, else the last two.
func versionsToCompare(cmd *cobra.Command, r *schemas.Registry, given []string) (from, to schemas.Side, err error) {
	from, to = schemas.Side{Subject: given[0]}, schemas.Side{Subject: given[0], Version: schemas.Latest}
	if len(given) > 1 {
		if from.Version, err = parseVersion(given[1]); err != nil {
			return from, to, command.Usagef(cmd, "%w", err)
		}
		if len(given) > 2 {
			if to.Version, err = parseVersion(given[2]); err != nil {
				return from, to, command.Usagef(cmd, "%w", err)
			}
		}
		return from, to, nil
	}
	versions, err := r.Versions(cmd.Context(), given[0], false)
	if err != nil {
		return from, to, err
	}
	from.Version = versions[max(len(versions)-2, 0)]
	return from, to, nil
}

func printDiff(env *command.Env, d *schemas.Difference) error {
	style := env.Style()
	if len(d.Changes) == 0 {
		return env.Println("No difference.")
	}
	for _, change := range d.Changes {
		bullet := style.Good("○")
		if !change.Compatible {
			bullet = style.Bad("●")
		}
		text := strings.TrimSpace(change.Type + " " + change.Path)
		if change.Text != "" {
			text += ": " + change.Text
		}
		if _, err := fmt.Fprintf(env.Out, "%s %s\n", bullet, indent(output.Clean(text))); err != nil {
			return err
		}
	}
	if err := printReading(env.Out, "New readers read old data", d.Backward); err != nil {
		return err
	}
	if err := printReading(env.Out, "Old readers read new data", d.Forward); err != nil {
		return err
	}
	return env.Printf("Allowed at the levels: %s\n", cmp.Or(strings.Join(d.Levels, ", "), "none"))
}

func printReading(w io.Writer, what string, reading schemas.Reading) error {
	text := "yes"
	if !reading.Compatible {
		text = "no"
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", what, text)
	return err
}
