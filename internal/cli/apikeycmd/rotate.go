package apikeycmd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/cli/command"
)

func newRevoke(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME...",
		Short: "Revoke API keys immediately and permanently",
		Long: `Revoke API keys immediately and permanently: when the command returns, no API accepts
their tokens. A revoked key stays in the list until you delete it, or create another key
with its name.`,
		Example: `  # a key that has leaked
  freshet apikey revoke leaked

  # several keys
  freshet apikey revoke old-1 old-2

  # delete it from the list
  freshet delete ak leaked`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef(cmd, "argument is missing: the names of the keys to revoke")
			}
			return nil
		},
		ValidArgsFunction: completeKeys(env, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := connect(env)
			if err != nil {
				return err
			}
			var failed []error
			for _, name := range args {
				failed = append(failed, k.revoke(cmd.Context(), name))
			}
			return errors.Join(failed...)
		},
	}
}

func (k *keys) revoke(ctx context.Context, name string) error {
	if _, err := k.get(ctx, name); err != nil {
		return err
	}
	_, err := k.Patch(ctx, k.ref(name), map[string]any{"spec": map[string]any{"revoke": true}},
		resources.WriteOptions{FieldManager: fieldManager})
	if err != nil {
		return err
	}
	if k.env.ResultIsText() { // standard output of rotate has only the token
		_, err = fmt.Fprintf(k.env.Err, "key %s is revoked\n", name)
		return err
	}
	return k.env.Done(command.Result{Kind: "apikey", Name: name, Action: "revoked"}, "")
}

// rotation has the flags of one rotate command.
type rotation struct {
	tokenFiles

	name, expires string
	revokeAfter   time.Duration
	timeout       time.Duration
}

func newRotate(env *command.Env) *cobra.Command {
	var r rotation
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Replace an API key with a new one",
		Long: `Replace an API key with a new one for the same account, instance, purpose and lifetime.
Both keys work, so that you can deploy the new one first and then revoke the old one.
With --revoke-after the command waits that long and revokes the old key; 0s revokes it
immediately.`,
		Example: `  # create worker-2 to replace worker; both work
  freshet apikey rotate worker --env-file worker.env

  # when the new key is deployed
  freshet apikey revoke worker

  # in one step
  freshet apikey rotate worker-2 --as worker-next --out worker.token --revoke-after 1s`,
		Args:              command.OneArg("the name of the key"),
		ValidArgsFunction: completeKeys(env, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("revoke-after") && r.revokeAfter < 0 {
				return command.Usagef(cmd, "--revoke-after takes a duration, not %s", r.revokeAfter)
			}
			k, err := connect(env)
			if err != nil {
				return err
			}
			return r.run(cmd.Context(), k, args[0], cmd.Flags().Changed("revoke-after"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.name, "as", "", "`name` of the new key (default: the old name with the next number)")
	f.StringVar(&r.expires, "expires", "",
		"`time` at which the new key expires: 90d, 12h or a date (default: the old key's lifetime)")
	f.DurationVar(&r.revokeAfter, "revoke-after", 0,
		"how long to wait before the old key is revoked (default: it is not revoked)")
	f.DurationVar(&r.timeout, "timeout", time.Minute, "how long to wait until the new key works")
	r.addFlags(f)
	return cmd
}

func (r *rotation) run(ctx context.Context, k *keys, old string, revokes bool) error {
	key, err := k.get(ctx, old)
	if err != nil {
		return err
	}
	next, err := r.newSpec(key)
	if err != nil {
		return err
	}
	name := r.name
	if name == "" {
		if name, err = k.nextName(ctx, old); err != nil {
			return err
		}
	}
	token, err := k.create(ctx, name, next, r.timeout)
	if err != nil {
		return err
	}
	if err := k.writeToken(ctx, r.tokenFiles, next.InstanceName, token); err != nil {
		return err
	}
	if !revokes {
		return k.env.Notef("keys %s and %s both work; revoke the old one with 'freshet apikey revoke %s'\n", name, old,
			old)
	}
	progress := k.env.Progress()
	defer progress.Clear()
	progress.Printf("key %s works; %s is revoked in %s", name, old, r.revokeAfter)
	if err := retry.Sleep(ctx, r.revokeAfter); err != nil {
		return fmt.Errorf("key %s works, but %s is not revoked: %w", name, old, err)
	}
	return k.revoke(ctx, old)
}

// newSpec returns the spec of the new key: the old key's, with the same lifetime from now on
// unless --expires is set.
func (r *rotation) newSpec(key resources.Object) (spec, error) {
	var old struct {
		Spec spec `json:"spec"`
	}
	if err := key.Into(&old); err != nil {
		return spec{}, fmt.Errorf("decoding the key: %w", err)
	}
	next, now := old.Spec, time.Now()
	if r.expires != "" {
		moment, err := parseExpiry(r.expires, now)
		if err != nil {
			return spec{}, errs.Newf(errs.Invalid, "%w", err)
		}
		next.ExpirationTime = moment.UTC().Format(time.RFC3339)
		return next, nil
	}
	if next.ExpirationTime == "" {
		return next, nil
	}
	created, err := time.Parse(time.RFC3339, key.Text("metadata", "creationTimestamp"))
	end, endErr := time.Parse(time.RFC3339, next.ExpirationTime)
	if err := errors.Join(err, endErr); err != nil {
		return spec{}, fmt.Errorf("parsing the creation and expiry times of the old key: %w", err)
	}
	next.ExpirationTime = now.Add(end.Sub(created)).UTC().Format(time.RFC3339)
	return next, nil
}

var numbered = regexp.MustCompile(`^(.*)-(\d{1,4})$`)

// maxNames bounds the search for an unused name.
const maxNames = 1000

// nextName returns the old name with the next unused number.
func (k *keys) nextName(ctx context.Context, old string) (string, error) {
	base, number := old, 1
	if match := numbered.FindStringSubmatch(old); match != nil {
		base = match[1]
		number, _ = strconv.Atoi(match[2]) // at most four digits
	}
	for i := number + 1; i < number+maxNames; i++ {
		name := fmt.Sprintf("%s-%d", base, i)
		_, err := k.Get(ctx, k.ref(name))
		if errors.Is(err, client.ErrNotFound) && !fileExists(k.keyFile(name)) {
			return name, nil
		}
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return "", err
		}
	}
	return "", errs.Newf(errs.Conflict, "names from %s-%d on are in use; set one with --as", base, number+1)
}
