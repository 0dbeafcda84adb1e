package messagecmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// topicUpdate has the flags of one topic update command.
type topicUpdate struct {
	partitions         int
	properties, remove []string
	require            string
	settings           settingChanges

	propertyMap map[string]string
}

func newTopicUpdate(env *command.Env) *cobra.Command {
	u := topicUpdate{settings: settingChanges{ofTopic: true}}
	cmd := &cobra.Command{
		Use:   "update TOPIC",
		Short: "Add partitions, and change properties and settings of a topic",
		Long: `Add partitions to a topic, and change its properties and settings. Partitions can be added
but not removed, and keys may move to other partitions. A setting that is not set has the
value of the namespace:

` + settingHelp(true),
		Example: `  # eight partitions
  freshet topic update orders --partitions 8

  # keep acknowledged messages for seven days, and reject messages with a negative total
  freshet topic update orders --set retention=7d --require 'payload.total >= 0'

  # change a property, remove another, and use the namespace's retention again
  freshet topic update orders --property owner=sales --remove-property note --unset retention`,
		Args:              command.Args(0, "the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := u.check(cmd); err != nil {
				return err
			}
			return env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
				if err := u.run(cmd, c, c.Topic(given[0])); err != nil {
					return err
				}
				name := c.Topic(given[0]).ShortName()
				return env.Done(command.Result{Kind: "topic", Name: name, Action: "updated"}, "topic %s updated", name)
			})(cmd, given)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&u.partitions, "partitions", "p", 0, "new `number` of partitions")
	f.StringArrayVar(&u.properties, "property", nil, "set a property, as `name=value`; may be repeated")
	f.StringArrayVar(&u.remove, "remove-property", nil, "`name` of a property to remove; may be repeated")
	f.StringVar(&u.require, requireSetting, "", "`expression` that must be true for every message; '' accepts all")
	u.settings.addFlags(cmd)
	return cmd
}

func (u *topicUpdate) check(cmd *cobra.Command) (err error) {
	if u.propertyMap, err = pairs(cmd, "property", u.properties); err != nil {
		return err
	}
	if err := u.settings.check(cmd); err != nil {
		return err
	}
	if cmd.Flags().Changed(requireSetting) {
		u.settings.values[requireSetting] = u.require
	}
	switch {
	case cmd.Flags().Changed("partitions") && u.partitions < 1:
		return command.Usagef(cmd, "--partitions must be at least 1")
	case u.partitions == 0 && len(u.propertyMap)+len(u.remove)+len(u.settings.values)+len(u.settings.remove) == 0:
		return command.Usagef(cmd,
			"nothing to change; use --partitions, --property, --remove-property, --require, --set or --unset")
	}
	return nil
}

func (u *topicUpdate) run(cmd *cobra.Command, c *client.Client, topic *client.Topic) error {
	ctx := cmd.Context()
	before, err := topic.Partitions(ctx)
	if err != nil {
		return err
	}
	switch {
	case u.partitions == 0 || u.partitions == before:
	case before == 0:
		return hint.Add(errs.Newf(errs.Invalid, "topic %s was created without partitions and cannot get any",
			topic.ShortName()), "Create another topic with 'freshet topic create NAME --partitions %d'.", u.partitions)
	case u.partitions < before:
		return errs.Newf(errs.Invalid, "topic %s has %d partitions, and partitions cannot be removed",
			topic.ShortName(), before)
	default:
		if err := topic.Grow(ctx, u.partitions); err != nil {
			return err
		}
	}
	if len(u.propertyMap) > 0 {
		if err := topic.SetProperties(ctx, u.propertyMap); err != nil {
			return err
		}
	}
	for _, name := range u.remove {
		if err := topic.DeleteProperty(ctx, name); err != nil {
			return fmt.Errorf("removing property %s: %w", name, err)
		}
	}
	return u.settings.apply(ctx, c, topicPath(topic))
}
