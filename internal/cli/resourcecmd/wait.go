package resourcecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newWait(env *command.Env) *cobra.Command {
	var goal string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait KIND NAME... | KIND/NAME...",
		Short: "Wait until resources are ready or deleted",
		Long: `Wait until resources have a condition, exist, or are deleted:

  --for condition=Ready          the condition is True (the default)
  --for condition=Revoked=False  the condition has another value
  --for create                   the objects exist
  --for delete                   the objects do not exist

The exit code is 6 if that does not happen in time; the error then shows the current
condition.`,
		Example: `  # until a cluster is ready
  freshet wait mc/default

  # until an account is ready, for at most ten seconds
  freshet wait sa admin --timeout 10s

  # until a cluster is deleted
  freshet wait mc/old --for delete`,
		ValidArgsFunction: complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			until, err := parseGoal(cmd, goal)
			if err != nil {
				return err
			}
			s, err := connect(cmd.Context(), env)
			if err != nil {
				return err
			}
			what, err := s.selection(cmd, args)
			if err != nil {
				return err
			}
			if len(what.refs) == 0 {
				return command.Usagef(cmd, "argument is missing: KIND NAME or KIND/NAME")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return each(what.refs, func(ref resources.Ref) error {
				if err := s.waitFor(ctx, ref, until); err != nil {
					return err
				}
				return env.Done(command.Result{Kind: ref.Kind.Resource, Name: ref.String(), Action: until.reachedText},
					"%s %s", ref, until.reachedText)
			})
		},
	}
	cmd.Flags().StringVar(&goal, "for", "condition=Ready",
		"`goal` to wait for: condition=NAME[=VALUE], create or delete")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	return cmd
}

// goal is the state to wait for.
type goal struct {
	reachedText string // text to print when it is reached
	reached     func(resources.Object) bool
	missingText func(resources.Object) string // describes why it is not reached yet
}

func parseGoal(cmd *cobra.Command, text string) (goal, error) {
	form, condition, _ := strings.Cut(text, "=")
	switch {
	case text == "delete":
		return deleted, nil
	case text == "create":
		return goal{
			"exists", func(o resources.Object) bool { return o != nil },
			func(resources.Object) string { return "object does not exist" },
		}, nil
	case form == "condition" && condition != "":
		name, value, _ := strings.Cut(condition, "=")
		return conditionIs(name, cmp.Or(value, "True")), nil
	}
	return goal{}, command.Usagef(cmd, "--for takes condition=NAME, condition=NAME=VALUE, create or delete, not %q",
		text)
}

var deleted = goal{
	"is deleted", func(o resources.Object) bool { return o == nil },
	func(resources.Object) string { return "object still exists" },
}

func conditionIs(name, value string) goal {
	return goal{
		reachedText: fmt.Sprintf("condition %s is %s", name, value),
		reached: func(o resources.Object) bool {
			c := o.Condition(name)
			return o != nil && strings.EqualFold(c.Status, value) && !outdated(o, c)
		},
		missingText: func(o resources.Object) string {
			switch c := o.Condition(name); {
			case o == nil:
				return "object does not exist"
			case c.Status == "":
				return "object has no condition " + name
			case outdated(o, c):
				return "the server has not processed the last change"
			default:
				return fmt.Sprintf("%s is %s: %s %s", c.Type, c.Status, c.Reason, output.Clean(c.Message))
			}
		},
	}
}

// outdated reports whether a condition describes the object before its last change.
func outdated(o resources.Object, c resources.Condition) bool {
	var current struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	}
	return o.Into(&current) == nil && c.ObservedGeneration != 0 && c.ObservedGeneration < current.Metadata.Generation
}

// waitFor waits until one object reaches a goal, and shows progress on a terminal.
func (s *session) waitFor(ctx context.Context, ref resources.Ref, until goal) error {
	progress := s.env.Progress()
	defer progress.Clear()
	var last resources.Object
	_, err := s.Wait(ctx, ref, func(o resources.Object) (bool, error) {
		last = o
		if until.reached(o) {
			return true, nil
		}
		if o == nil && until.reachedText != "exists" {
			return false, hint.Add(errs.Newf(errs.NotFound, "%s does not exist", ref),
				"'freshet get %s' lists those in organization %s; --for create waits until it exists.",
				ref.Kind.Resource, s.at.Organization)
		}
		progress.Printf("waiting for %s: %s", ref, until.missingText(o))
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrUnavailable) && ctx.Err() != nil {
		return command.Timeoutf("waiting for %s timed out: %s", ref, strings.TrimSpace(until.missingText(last)))
	}
	return err
}
