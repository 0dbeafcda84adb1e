package messagecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newGroup(env *command.Env) *cobra.Command {
	var tenant string
	cmd := command.Parent(&cobra.Command{
		Use:     "group",
		Aliases: []string{"groups"},
		Short:   "List, describe, reset and delete Kafka consumer groups",
		Long: `List, describe, reset and delete Kafka consumer groups. The Kafka protocol must be
enabled for the cluster (spec.config.protocols.stream).`,
		Example: `  # list the groups
  freshet group list

  # members, offsets and lag
  freshet group describe workers

  # read a topic again from the beginning
  freshet group reset workers --topic orders --to earliest`,
	}, newGroupList(env, &tenant), newGroupDescribe(env, &tenant), newGroupReset(env, &tenant),
		newGroupDelete(env, &tenant))
	cmd.PersistentFlags().StringVar(&tenant, "tenant", "", "`tenant` of the group (default: public; list: all tenants)")
	return cmd
}

// explainNoKafka adds a hint to the error of a cluster without the Kafka protocol.
func explainNoKafka(err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok && strings.Contains(refused.Message, "protocols.stream") {
		return hint.Add(errs.Newf(errs.Invalid, "%s", refused.Message),
			"Add spec.config.protocols.stream to the cluster, and start the server with --stream ADDRESS.")
	}
	return err
}

func newGroupList(env *command.Env, tenant *string) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List consumer groups",
		Example: `  # all groups that you may see
  freshet group list

  # names only, for scripts
  freshet group list -o name

  # the groups of one tenant
  freshet group list --tenant public -o json`,
		Args: command.NoArgs,
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			groups, err := c.Groups(cmd.Context(), *tenant)
			if err != nil {
				return explainNoKafka(err)
			}
			if len(groups) == 0 {
				if err := env.CheckListed(cmd.Context(), "messaging.topics", "consumer groups",
					listProbe(cmd.Context(), c, "")); err != nil {
					return err
				}
			}
			list := []groupEntry{}
			table := output.Table{Columns: output.Columns("Name", "Tenant", "State", "Protocol")}
			for _, g := range groups {
				list = append(list, groupEntry{g.Name, g.Tenant, g.State, g.ProtocolType})
				table.Rows = append(table.Rows, []string{g.Name, g.Tenant, g.State, g.ProtocolType})
			}
			return env.List(format, list, &table, "No consumer groups.")
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

func newGroupDescribe(env *command.Env, tenant *string) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe GROUP",
		Short: "Show a group's members, offsets and lag",
		Example: `  # members, offsets and lag
  freshet group describe workers

  # for scripts
  freshet group describe workers -o json

  # as YAML
  freshet group describe workers -o yaml`,
		Args:              command.OneArg("the group's name"),
		ValidArgsFunction: completeGroups(env, tenant),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			info, err := c.Group(cmd.Context(), *tenant, given[0])
			if err != nil {
				return explainNoKafka(err)
			}
			if format != output.FormatText {
				return output.Value(env.Out, format, newGroupDescription(info))
			}
			return writeGroup(env.Out, info)
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func writeGroup(w io.Writer, info *client.GroupInfo) error {
	_, err := fmt.Fprintf(w, "Name:          %s\nTenant:        %s\nState:         %s\nLag:           %d\n",
		output.Clean(info.Name), info.Tenant, info.State, info.Lag)
	if err != nil {
		return err
	}
	if len(info.Members) > 0 {
		table := output.Table{Columns: output.Columns("Member", "Client", "Host")}
		for _, m := range info.Members {
			table.Rows = append(table.Rows, []string{cmp.Or(m.InstanceID, m.ID), m.ClientID, m.ClientHost})
		}
		if err := writeTable(w, &table); err != nil {
			return err
		}
	}
	if len(info.Offsets) == 0 {
		return nil
	}
	table := output.Table{Columns: output.Columns("Topic", "Partition", "Offset", "End", "Lag", "Committed")}
	for i := range info.Offsets {
		o := &info.Offsets[i]
		committed := o.Committed()
		table.Rows = append(table.Rows, []string{
			o.Topic, strconv.Itoa(o.Partition), formatInt(o.Offset), formatInt(o.EndOffset), formatInt(o.Lag),
			formatTime(&committed),
		})
	}
	return writeTable(w, &table)
}

func newGroupReset(env *command.Env, tenant *string) *cobra.Command {
	var to string
	var topics []string
	var partition int
	var offset int64
	var create bool
	cmd := &cobra.Command{
		Use:   "reset GROUP --topic TOPIC --to POSITION",
		Short: "Reset the offsets of a consumer group without members",
		Long: `Reset the offsets of a consumer group without members to the beginning or the end of
topics, to a time, or on one partition to an offset. With --create, a missing group is
created.`,
		Example: `  # read again from the beginning
  freshet group reset workers --topic orders --to earliest

  # from an hour ago
  freshet group reset workers --topic orders --to 1h

  # one partition, to an offset
  freshet group reset workers --topic orders --partition 0 --offset 0`,
		Args:              command.OneArg("the group's name"),
		ValidArgsFunction: completeGroups(env, tenant),
		RunE: func(cmd *cobra.Command, given []string) error {
			byOffset := cmd.Flags().Changed("offset")
			switch {
			case len(topics) == 0:
				return command.Usagef(cmd, "--topic is missing; name the topics to reset")
			case byOffset == (to != ""):
				return command.Usagef(cmd, "set either --to or --offset")
			case byOffset && partition < 0:
				return command.Usagef(cmd, "--offset requires --partition")
			}
			at, err := position(cmd, "to", to)
			if err != nil {
				return err
			}
			var positions []client.GroupPosition
			for _, topic := range topics {
				position := client.GroupPosition{Topic: topic, At: at}
				if partition >= 0 {
					position.Partition = &partition
				}
				if byOffset {
					position.Offset = &offset
				}
				positions = append(positions, position)
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if err := checkReset(cmd.Context(), c, *tenant, given[0], topics, create); err != nil {
				return explainNoKafka(err)
			}
			err = c.ResetGroup(cmd.Context(), *tenant, given[0], positions...)
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "Stop its members first; 'freshet group describe %s' shows them.", given[0])
			}
			if err != nil {
				return explainNoKafka(err)
			}
			return env.Done(command.Result{Kind: "group", Name: given[0], Action: "reset"},
				"group %s reset", given[0])
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&topics, "topic", nil, "`topic` to reset; may be repeated")
	// RegisterFlagCompletionFunc fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("topic",
		func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeTopics(env)(cmd, nil, typed)
		})
	f.StringVar(&to, "to", "", "new `position`: earliest, latest, a time or a duration ago")
	f.IntVar(&partition, "partition", -1, "reset only this `partition`; -1 resets all")
	f.Int64Var(&offset, "offset", 0, "new `offset` on --partition")
	f.BoolVar(&create, "create", false, "create the group if it does not exist")
	return cmd
}

// checkReset returns an error if the group or a topic of a reset does not exist, because the
// name may be a typo.
func checkReset(ctx context.Context, c *client.Client, tenant, group string, topics []string, create bool) error {
	for _, topic := range topics {
		if err := requireTopic(ctx, c, topic); err != nil {
			return err
		}
	}
	if create {
		return nil
	}
	_, err := c.Group(ctx, tenant, group)
	if errors.Is(err, client.ErrNotFound) {
		return hint.Add(errs.Newf(errs.NotFound, "group %s does not exist", group),
			"'freshet group list' lists the consumer groups; --create creates the group.")
	}
	return err
}

func newGroupDelete(env *command.Env, tenant *string) *cobra.Command {
	return &cobra.Command{
		Use:     "delete GROUP",
		Aliases: []string{"rm"},
		Short:   "Delete a consumer group without members, and its offsets",
		Example: `  # show its members
  freshet group describe workers

  # delete the group
  freshet group delete workers

  # list the remaining groups
  freshet group list`,
		Args:              command.OneArg("the group's name"),
		ValidArgsFunction: completeGroups(env, tenant),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			if err := c.DeleteGroup(cmd.Context(), *tenant, given[0]); err != nil {
				return explainNoKafka(err)
			}
			return env.Done(command.Result{Kind: "group", Name: given[0], Action: "deleted"},
				"group %s deleted", given[0])
		}),
	}
}

// completeGroups completes the first argument with the names of consumer groups.
func completeGroups(env *command.Env, tenant *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := env.ClusterClient(cmd.Context())
		if err != nil || len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		groups, err := c.Groups(cmd.Context(), *tenant)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, g := range groups {
			names = append(names, g.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
