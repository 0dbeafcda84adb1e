package resourcecmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// description is an object with its events, in the form of -o json.
type description struct {
	Object resources.Object   `json:"object"`
	Events []resources.Object `json:"events"`
}

func newDescribe(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe KIND [NAME...] | KIND/NAME...",
		Short: "Show the details of resources and their events",
		Long: `Show the details of resources: spec, status, the conditions with their messages, and the
events of the last hour. Secrets are hidden.`,
		Example: `  # a cluster: its addresses and its conditions
  freshet describe mc default

  # an account
  freshet describe sa/admin

  # all instances of the organization
  freshet describe mi`,
		ValidArgsFunction: complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			s, err := connect(ctx, env)
			if err != nil {
				return err
			}
			what, err := s.selection(cmd, args)
			if err != nil {
				return err
			}
			if len(what.refs) == 0 {
				err = each(what.kinds, func(kind resources.Kind) error {
					objects, err := s.List(ctx, kind, s.ref(kind, "").Organization, resources.ListOptions{})
					for _, o := range objects {
						what.refs = append(what.refs, s.ref(kind, o.Name()))
					}
					return err
				})
				if err == nil && len(what.refs) == 0 {
					return (&get{session: s}).reportEmpty(what.kinds)
				}
			}
			list := []description{}
			err = joinErrors(err, each(what.refs, func(ref resources.Ref) error {
				object, err := s.getNamed(ctx, ref)
				if err != nil {
					return err
				}
				list = append(list, description{object, s.eventsOf(ctx, ref, object.Text("metadata", "uid"))})
				if format.IsData() {
					hide(object)
					return nil
				}
				if len(list) > 1 {
					_, _ = fmt.Fprintln(env.Out) // the next write reports an error
				}
				return s.describe(env.Out, list[len(list)-1])
			}))
			if format.IsData() {
				err = joinErrors(err, output.Value(env.Out, format, list))
			}
			return err
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func joinErrors(all ...error) error { return each(all, func(err error) error { return err }) }

func (s *session) describe(w io.Writer, d description) error {
	o := d.Object
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s %s\n", name+":", output.Clean(value))
		}
	}
	row("Name", o.Name())
	row("Organization", o.Organization())
	row("Kind", o.Kind())
	row("Created", sinceText(o.Text("metadata", "creationTimestamp")))
	row("Being deleted", sinceText(o.Text("metadata", "deletionTimestamp")))
	s.section(&b, "Labels", o.Field("metadata", "labels"))
	s.section(&b, "Annotations", o.Field("metadata", "annotations"))
	var owners []string
	if list, ok := o.Field("metadata", "ownerReferences").([]any); ok {
		for _, owner := range list {
			if fields, ok := owner.(map[string]any); ok {
				owners = append(owners, fmt.Sprintf("%v/%v", fields["kind"], fields["name"]))
			}
		}
	}
	row("Belongs to", strings.Join(owners, ", "))
	s.section(&b, "Spec", o["spec"])
	conditions := o.Conditions()
	hide(o)
	if status, ok := o["status"].(map[string]any); ok {
		delete(status, "conditions")
		s.section(&b, "Status", status)
	}
	for _, name := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		delete(o, name)
	}
	for _, name := range slices.Sorted(maps.Keys(o)) { // fields of kinds without spec and status
		s.section(&b, name, o[name])
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(conditions) > 0 {
		if err := conditionTable(conditions, s.env.Style()).Write(w); err != nil {
			return err
		}
	}
	if len(d.Events) > 0 {
		_, _ = fmt.Fprintln(w, "Events:") // the next write reports an error
		return eventTable(d.Events).Write(w)
	}
	return nil
}

// secretFields are the fields whose values a description hides.
var secretFields = []string{"privateKeyData", "encryptedToken", "token", "clientSecret"}

// hide removes the secrets of an object's status.
func hide(o resources.Object) {
	status, _ := o["status"].(map[string]any)
	for _, name := range secretFields {
		if _, ok := status[name]; ok {
			status[name] = "(hidden; 'freshet get -o yaml' shows it)"
		}
	}
}

// section writes a value as indented YAML under a heading.
func (s *session) section(b *strings.Builder, name string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case map[string]any:
		if len(v) == 0 {
			return
		}
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	for line := range strings.Lines(output.Clean(string(text))) {
		b.WriteString("  " + line)
	}
}

// sinceText formats a time with its age.
func sinceText(text string) string {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s (%s ago)", moment.UTC().Format("2006-01-02 15:04:05 UTC"), output.Age(time.Since(moment)))
}

func conditionTable(conditions []resources.Condition, style output.Style) *output.Table {
	t := &output.Table{Columns: output.Columns("  Condition", "Status", "Reason", "Since", "Message")}
	t.Paint = func(column int, cell string) string {
		if column != 1 {
			return cell
		}
		if cell == "True" {
			return style.Good(cell)
		}
		return style.Warn(cell)
	}
	for _, c := range conditions {
		since := c.LastTransitionTime
		if moment, err := time.Parse(time.RFC3339, since); err == nil {
			since = output.Age(time.Since(moment))
		}
		t.Rows = append(t.Rows, []string{"  " + c.Type, c.Status, c.Reason, since, c.Message})
	}
	return t
}

// events is the kind of events. The server keeps them for an hour.
var events = resources.Kind{Version: "v1", Resource: "events", Kind: "Event", Namespaced: true}

// eventsOf returns the events of an object, oldest first. It has none if the caller may not read them.
func (s *session) eventsOf(ctx context.Context, ref resources.Ref, uid string) []resources.Object {
	if ref.Organization == "" {
		return []resources.Object{}
	}
	list, err := s.List(ctx, events, ref.Organization, resources.ListOptions{
		FieldSelector: "involvedObject.name=" + ref.Name + ",involvedObject.kind=" + ref.Kind.Kind,
	})
	if err != nil {
		return []resources.Object{} // events are optional
	}
	slices.SortFunc(list, func(a, b resources.Object) int {
		return strings.Compare(a.Text("lastTimestamp"), b.Text("lastTimestamp"))
	})
	return slices.DeleteFunc(list, func(e resources.Object) bool { return e.Text("involvedObject", "uid") != uid })
}

func eventTable(list []resources.Object) *output.Table {
	t := &output.Table{Columns: output.Columns("  Age", "Type", "Reason", "Message")}
	for _, e := range list {
		age := e.Text("lastTimestamp")
		if moment, err := time.Parse(time.RFC3339, age); err == nil {
			age = output.Age(time.Since(moment))
		}
		if count := fmt.Sprint(e["count"]); count != "1" && count != "<nil>" {
			age += " (x" + count + ")"
		}
		t.Rows = append(t.Rows, []string{"  " + age, e.Text("type"), e.Text("reason"), e.Text("message")})
	}
	return t
}
