package resourcecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// get has the connection and the flags of one get command.
type get struct {
	*session
	format             output.Format
	list               resources.ListOptions
	watch, everywhere  bool
	noHeaders, managed bool
}

func newGet(env *command.Env) *cobra.Command {
	var g get
	cmd := &cobra.Command{
		Use:   "get KIND [NAME...] | KIND/NAME...",
		Short: "List resources",
		Long: `List resources of one kind, of several kinds (sa,mc), or of all kinds of an organization
(all). Kinds have short names: sa, sab, usr, mi, mc, ak, rb, ro, cr, pool, pm, and ns
for organizations. The server defines the columns of the table.`,
		Example: `  # all clusters of the organization
  freshet get mc

  # one cluster, as YAML
  freshet get messagingcluster default -o yaml

  # all kinds, with all columns
  freshet get all -o wide

  # watch the accounts of all organizations
  freshet get sa -A -w`,
		ValidArgsFunction: complete(env),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if g.session, err = connect(cmd.Context(), env); err != nil {
				return err
			}
			what, err := g.selection(cmd, args)
			if err != nil {
				return err
			}
			if len(what.refs) > 0 && (g.list.LabelSelector != "" || g.list.FieldSelector != "" || g.everywhere) {
				return command.Usagef(cmd, "names cannot be combined with -A, -l or --field-selector")
			}
			if g.watch {
				return g.follow(cmd, what)
			}
			return g.printOnce(cmd.Context(), what)
		},
	}
	f := cmd.Flags()
	output.AddFlag(f, &g.format, output.FormatTable, output.FormatWide, output.FormatJSON, output.FormatYAML,
		output.FormatName)
	f.BoolVarP(&g.watch, "watch", "w", false, "show every change until interrupted")
	f.BoolVarP(&g.everywhere, "all-organizations", "A", false, "list the objects of all organizations that you may see")
	f.BoolVar(&g.everywhere, "all-namespaces", false, "")
	_ = f.MarkHidden("all-namespaces") // kubectl's name; fails only for a flag that does not exist
	f.StringVarP(&g.list.LabelSelector, "selector", "l", "", "list only objects with these `labels`, such as team=web")
	f.StringVar(&g.list.FieldSelector, "field-selector", "",
		"list only objects with these `fields`, such as spec.instanceName=prod")
	f.BoolVar(&g.noHeaders, "no-headers", false, "omit the headings of a table")
	f.BoolVar(&g.managed, "show-managed-fields", false, "with -o yaml and json, show the owners of the fields")
	return cmd
}

// organization returns the organization to list, "" for all or for a kind without one.
func (g *get) organization(kind resources.Kind) string {
	if g.everywhere || !kind.Namespaced {
		return ""
	}
	return g.at.Organization
}

func (g *get) printOnce(ctx context.Context, what selected) error {
	if g.format == output.FormatTable || g.format == output.FormatWide {
		return g.tables(ctx, what)
	}
	var objects []resources.Object
	err := each(what.refs, func(ref resources.Ref) error {
		object, err := g.getNamed(ctx, ref)
		if err == nil {
			objects = append(objects, object)
		}
		return err
	})
	if len(what.refs) == 0 {
		err = each(what.kinds, func(kind resources.Kind) error {
			list, err := g.List(ctx, kind, g.organization(kind), g.list)
			objects = append(objects, list...)
			return err
		})
	}
	if len(objects) == 0 && err != nil {
		return err
	}
	if printErr := g.print(objects, len(what.refs) == 1); printErr != nil {
		return printErr
	}
	return err
}

// print prints objects as JSON, YAML or names. A single named object is printed alone,
// others are printed as a List.
func (g *get) print(objects []resources.Object, single bool) error {
	for _, o := range objects {
		if metadata, ok := o.Field("metadata").(map[string]any); ok && !g.managed {
			delete(metadata, "managedFields")
		}
	}
	switch {
	case g.format == output.FormatName:
		for _, o := range objects {
			if _, err := fmt.Fprintln(g.env.Out, output.Clean(g.nameOf(o))); err != nil {
				return err
			}
		}
		return nil
	case single && len(objects) == 1:
		return output.Value(g.env.Out, g.format, objects[0])
	}
	if objects == nil {
		objects = []resources.Object{}
	}
	return output.Value(g.env.Out, g.format, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

// nameOf returns the name of an object in the form of kubectl, KIND.GROUP/NAME.
func (s *session) nameOf(o resources.Object) string {
	kind, ok := resources.Of(s.kinds, o)
	if !ok {
		kind = resources.Kind{Kind: o.Kind()}
	}
	return resources.Ref{Kind: kind, Name: o.Name()}.String()
}

func (g *get) tables(ctx context.Context, what selected) error {
	kinds := what.kinds
	if len(what.refs) > 0 {
		return g.printNamed(ctx, what.refs)
	}
	shown := 0
	err := each(kinds, func(kind resources.Kind) error {
		table, err := g.Table(ctx, kind, g.organization(kind), g.list)
		if err != nil || len(table.Rows) == 0 {
			return err
		}
		if shown > 0 {
			_, _ = fmt.Fprintln(g.env.Out) // the next write reports an error
		}
		shown++
		return g.table(kind, table, len(kinds) > 1).Write(g.env.Out)
	})
	if shown == 0 && err == nil {
		return g.reportEmpty(kinds)
	}
	return err
}

// reportEmpty reports an empty result on standard error.
func (g *get) reportEmpty(kinds []resources.Kind) error {
	what := kinds[0].Resource
	if len(kinds) > 1 {
		what = "resources"
	}
	where := " in organization " + g.at.Organization
	if g.everywhere || !kinds[0].Namespaced {
		where = ""
	}
	return g.env.Notef("No %s%s.\n", what, where)
}

// printNamed prints named objects, one table for each kind.
func (g *get) printNamed(ctx context.Context, refs []resources.Ref) error {
	var order []resources.Kind
	rows := map[string]*resources.Table{}
	err := each(refs, func(ref resources.Ref) error {
		table, err := g.Table(ctx, ref.Kind, ref.Organization,
			resources.ListOptions{FieldSelector: resources.Name(ref.Name)})
		if err != nil {
			return err
		}
		if len(table.Rows) == 0 { // returns the server's error for a missing object
			if _, err := g.getNamed(ctx, ref); err != nil {
				return err
			}
		}
		key := ref.Kind.QualifiedName()
		if rows[key] == nil {
			rows[key] = &resources.Table{Columns: table.Columns}
			order = append(order, ref.Kind)
		}
		rows[key].Rows = append(rows[key].Rows, table.Rows...)
		return nil
	})
	for i, kind := range order {
		if i > 0 {
			_, _ = fmt.Fprintln(g.env.Out) // the next write reports an error
		}
		t := g.table(kind, rows[kind.QualifiedName()], len(order) > 1)
		if writeErr := t.Write(g.env.Out); writeErr != nil {
			return writeErr
		}
	}
	return err
}

// table returns a table with the server's columns and rows, and a column for the organization with
// -A.
func (g *get) table(kind resources.Kind, table *resources.Table, several bool) *output.Table {
	t := &output.Table{
		Wide: g.format == output.FormatWide, NoHeaders: g.noHeaders, Rows: g.rows(kind, table, several),
	}
	if g.everywhere && kind.Namespaced {
		t.Columns = append(t.Columns, output.Column{Name: "Organization"})
	}
	for _, c := range table.Columns {
		t.Columns = append(t.Columns, output.Column{Name: c.Name, Wide: c.Priority > 0})
	}
	style := g.env.Style()
	t.Paint = func(column int, cell string) string {
		switch name := t.Columns[column].Name; {
		case name != "Ready" && name != "Issued":
			return cell
		case cell == "True":
			return style.Good(cell)
		case cell == "False":
			return style.Bad(cell)
		}
		return style.Warn(cell)
	}
	return t
}

// rows returns the server's rows. If several kinds are listed, the kind precedes the name.
func (g *get) rows(kind resources.Kind, table *resources.Table, several bool) [][]string {
	var rows [][]string
	for _, row := range table.Rows {
		cells := row.Cells
		if several && len(cells) > 0 {
			cells[0] = resources.Ref{Kind: kind, Name: cells[0]}.String()
		}
		if g.everywhere && kind.Namespaced {
			cells = append([]string{row.Organization}, cells...)
		}
		rows = append(rows, cells)
	}
	return rows
}

// follow prints the current objects and then every change, until it is interrupted.
func (g *get) follow(cmd *cobra.Command, what selected) error {
	if len(what.refs) > 1 || len(what.refs) == 0 && len(what.kinds) > 1 {
		return command.Usagef(cmd, "-w watches one kind, or one object, at a time")
	}
	var kind resources.Kind
	var organization string
	o := g.list
	if len(what.refs) == 1 {
		kind, organization = what.refs[0].Kind, what.refs[0].Organization
		o.FieldSelector = resources.Name(what.refs[0].Name)
		if _, err := g.getNamed(cmd.Context(), what.refs[0]); err != nil {
			return err
		}
	} else {
		kind = what.kinds[0]
		organization = g.organization(kind)
	}
	if g.format != output.FormatTable && g.format != output.FormatWide {
		return g.followObjects(cmd.Context(), kind, organization, o)
	}
	return g.followTable(cmd.Context(), kind, organization, o)
}

// markDeleted sets the column Reason of deleted objects.
func markDeleted(t *output.Table) {
	for i, c := range t.Columns {
		if !strings.EqualFold(c.Name, "Reason") {
			continue
		}
		for _, row := range t.Rows {
			row[i] = "Deleted"
		}
	}
}
