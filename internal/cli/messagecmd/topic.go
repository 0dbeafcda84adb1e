package messagecmd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/names"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newTopic(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:     "topic",
		Aliases: []string{"topics"},
		Short:   "Create, list, describe, change and delete topics",
		Long: `Create, list, describe, change and delete topics.

A topic name is tenant/namespace/topic, or just the topic in public/default.`,
		Example: `  # create a topic with four partitions; messages with the same key stay in order
  freshet topic create orders --partitions 4

  # list the topics
  freshet topic list

  # show its subscriptions and their backlogs
  freshet topic describe orders`,
	}, newTopicCreate(env), newTopicList(env), newTopicDescribe(env), newTopicUpdate(env), newTopicDelete(env))
}

func newTopicCreate(env *command.Env) *cobra.Command {
	var options client.TopicOptions
	var properties []string
	var ifNotExists, parents bool
	cmd := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic",
		Long: `Create a topic, without partitions or with a number of them. Messages with the same key go
to the same partition and stay in order. Partitions can be added later, but then keys may
move to other partitions.

Kafka clients can use a name of 1 to 249 of the characters a-z A-Z 0-9 . _ - only. The
command creates topics with other names for HTTP, and prints a warning.

With --require the topic has a contract: the expression must be true for every message, and
the server rejects others, over HTTP and Kafka alike. Expressions are those of 'freshet search'.`,
		Example: `  # without partitions, for messages whose total is not negative
  freshet topic create payments --require 'payload.total >= 0'

  # with four partitions, in a script that may run twice
  freshet topic create orders --partitions 4 --if-not-exists

  # in another namespace, which is created with its tenant
  freshet topic create sales/eu/prices --parents`,
		Args: command.OneArg("the topic's name"),
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			if options.Partitions < 0 {
				return command.Usagef(cmd, "--partitions must not be negative")
			}
			if options.Properties, err = pairs(cmd, "property", properties); err != nil {
				return err
			}
			c, err := env.ClusterClient(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if parents {
				if err := ensureParents(cmd.Context(), c, given[0], true); err != nil {
					return err
				}
			}
			topic := c.Topic(given[0])
			err = topic.Create(cmd.Context(), options)
			if errors.Is(err, client.ErrConflict) && ifNotExists {
				return env.Done(command.Result{Kind: "topic", Name: topic.ShortName(), Action: "exists"},
					"topic %s already exists", topic.ShortName())
			}
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "'freshet topic describe %s' shows it; --if-not-exists ignores this error.",
					given[0])
			}
			if err != nil {
				return err
			}
			warnKafkaName(env, topic)
			return env.Done(command.Result{Kind: "topic", Name: topic.ShortName(), Action: "created"},
				"topic %s created", topic.ShortName())
		},
	}
	cmd.Flags().IntVarP(&options.Partitions, "partitions", "p", 0, "`number` of partitions; 0 creates a topic without")
	cmd.Flags().StringArrayVar(&properties, "property", nil, "property of the topic, as `name=value`; may be repeated")
	cmd.Flags().StringVar(&options.Contract, "require", "", "`expression` that must be true for every message")
	cmd.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "succeed if the topic already exists")
	cmd.Flags().BoolVar(&parents, "parents", false, "create the tenant and the namespace too, if they do not exist")
	return cmd
}

// warnKafkaName warns that Kafka clients cannot use a topic's name. HTTP accepts more characters than Kafka
// (docs/spec/messages.md#names), so the topic is created.
func warnKafkaName(env *command.Env, topic *client.Topic) {
	// The parts of the full name are "persistent:", "", tenant, namespace and local name.
	parts := strings.SplitN(topic.Name(), "/", 5)
	local := parts[len(parts)-1]
	if names.IsKafkaTopic(local) {
		return
	}
	_, _ = fmt.Fprintf(env.Err, "Warning: Kafka clients cannot use the topic name %q; they accept 1 to %d of the "+
		"characters a-z A-Z 0-9 . _ -\n", local, names.MaxKafkaTopic) // the topic exists, with or without the warning
}

func newTopicList(env *command.Env) *cobra.Command {
	var format output.Format
	var internal bool
	cmd := &cobra.Command{
		Use:     "list [NAMESPACE]",
		Aliases: []string{"ls"},
		Short:   "List topics",
		Long:    `List the topics that you may see: all of them, or those of one tenant/namespace.`,
		Example: `  # all topics
  freshet topic list

  # the topics of one namespace
  freshet topic list public/default

  # names only, for scripts
  freshet topic list -o name`,
		Args:              command.MaxArgs(1),
		ValidArgsFunction: completeNamespaces(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			namespace := ""
			if len(given) > 0 {
				namespace = given[0]
			}
			topics, err := listTopics(cmd.Context(), c, namespace)
			if err != nil {
				return err
			}
			if len(topics) == 0 && namespace != "" {
				if err := requireNamespace(cmd.Context(), c, namespace); err != nil {
					return err
				}
			}
			if len(topics) == 0 {
				if err := env.CheckListed(cmd.Context(), "messaging.topics", "topics",
					listProbe(cmd.Context(), c, namespace)); err != nil {
					return err
				}
			}
			topics = slices.DeleteFunc(topics, func(t topicEntry) bool { return t.Internal && !internal })
			table := output.Table{Columns: output.Columns("Name", "Partitions")}
			for _, t := range topics {
				table.Rows = append(table.Rows, []string{t.Name, strconv.Itoa(t.Partitions)})
			}
			return env.List(format, topics, &table, "No topics. Create one with 'freshet topic create NAME'.")
		}),
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "list internal topics too")
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

func newTopicDelete(env *command.Env) *cobra.Command {
	var force, ignore bool
	cmd := &cobra.Command{
		Use:     "delete TOPIC...",
		Aliases: []string{"rm"},
		Short:   "Delete topics and all their messages",
		Example: `  # a topic without active consumers
  freshet topic delete payments

  # even if consumers are active
  freshet topic delete orders --force

  # in a script that may run twice
  freshet topic delete payments --ignore-not-found`,
		Args:              command.Args(command.Any, "the topic's name"),
		ValidArgsFunction: completeTopics(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			for _, name := range given {
				topic := c.Topic(name)
				err := topic.Delete(cmd.Context(), force)
				if ignore && errors.Is(err, client.ErrNotFound) {
					continue
				}
				if errors.Is(err, client.ErrInvalid) && !force {
					return hint.Add(err, "--force deletes it even if consumers are active.")
				}
				if err != nil {
					return err
				}
				if err := env.Done(command.Result{Kind: "topic", Name: topic.ShortName(), Action: "deleted"},
					"topic %s deleted", topic.ShortName()); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete them even if consumers are active")
	cmd.Flags().BoolVar(&ignore, "ignore-not-found", false, "ignore topics that do not exist")
	return cmd
}
