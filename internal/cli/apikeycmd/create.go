package apikeycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// spec is the spec of an APIKey object.
type spec struct {
	ServiceAccountName string            `json:"serviceAccountName"`
	InstanceName       string            `json:"instanceName,omitempty"`
	Description        string            `json:"description,omitempty"`
	ExpirationTime     string            `json:"expirationTime,omitempty"`
	CustomizedMetadata map[string]string `json:"customizedMetadata,omitempty"`
	EncryptionKey      map[string]string `json:"encryptionKey"`
}

func newCreate(env *command.Env) *cobra.Command {
	d := tokenFiles{explain: true}
	var s spec
	var expires string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME --account ACCOUNT",
		Short: "Create an API key and print its token",
		Long: `Create an API key of a service account, wait until it works, and print its token, and on
standard error the other variables that its recipient needs. --out and --env-file write
the token to a file that only you can read.

The environment file has FRESHET_SERVER, FRESHET_ORGANIZATION, FRESHET_CLUSTER,
FRESHET_INSTANCE and FRESHET_API_KEY, which this program reads; FRESHET_CA_DATA, the
certificate authority of the server in base64; and for the Kafka protocol
FRESHET_KAFKA (its address), FRESHET_KAFKA_SECURITY and FRESHET_KAFKA_USER.

A key is valid for messages and schemas of one instance (--instance), or for the whole
organization, including the resource API. Without --expires it never expires.`,
		Example: `  # for one instance and 90 days, as an environment file
  freshet apikey create orders --account shop --instance default --expires 90d --env-file orders.env

  # to a file with mode 0600
  freshet apikey create reports --account shop --out reports.token

  # in a script
  token=$(freshet apikey create nightly --account shop --expires 24h)`,
		Args: command.OneArg("the name of the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.ServiceAccountName == "" {
				return command.Usagef(cmd, "--account is missing; name the service account of the key")
			}
			if expires != "" {
				moment, err := parseExpiry(expires, time.Now())
				if err != nil {
					return command.Usagef(cmd, "%w", err)
				}
				s.ExpirationTime = moment.UTC().Format(time.RFC3339)
			}
			k, err := connect(env)
			if err != nil {
				return err
			}
			if d.env != "" { // report an unclear cluster before the key exists
				if _, err := k.clusterFor(cmd.Context(), s.InstanceName); err != nil {
					return err
				}
			}
			token, err := k.create(cmd.Context(), args[0], s, timeout)
			if err != nil {
				return err
			}
			return k.writeToken(cmd.Context(), d, s.InstanceName, token)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.ServiceAccountName, "account", "", "service `account` of the key")
	completeAccount(cmd, env)
	f.StringVar(&s.InstanceName, "instance", "",
		"`instance` for which the key is valid (default: the whole organization)")
	completeInstance(cmd, env)
	f.StringVar(&expires, "expires", "", "`time` at which the key expires: 90d, 12h or a date (default: never)")
	f.StringVar(&s.Description, "description", "", "description `text` of the key")
	f.StringToStringVar(&s.CustomizedMetadata, "metadata", nil, "`name=value` pairs to add to the token's claims")
	f.Lookup("metadata").DefValue = ""
	f.DurationVar(&timeout, "timeout", time.Minute, "how long to wait until the key works")
	d.addFlags(f)
	return cmd
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

var days = regexp.MustCompile(`^(\d{1,5})d$`)

// parseExpiry parses 90d, 12h30m, 2027-01-31 or a time in RFC 3339.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if match := days.FindStringSubmatch(text); match != nil {
		n, err := strconv.Atoi(match[1])
		return now.AddDate(0, 0, n), err
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if moment, err := time.Parse(form, text); err == nil {
			if !moment.After(now) {
				return moment, fmt.Errorf("expiry %s is in the past", text)
			}
			return moment, nil
		}
	}
	return time.Time{}, fmt.Errorf("--expires takes a duration (90d, 12h) or a date (2027-01-31), not %q", text)
}

// create creates a key, waits until it works, and returns its token. It stores the private
// key before it sends the request, because the token of a key without one is lost.
func (k *keys) create(ctx context.Context, name string, s spec, timeout time.Duration) (string, error) {
	if !nameForm.MatchString(name) { // the name becomes part of a path
		return "", errs.Newf(errs.Invalid,
			"key name %q is not valid; use at most 253 lower-case letters, digits, '-' and '.'", name)
	}
	if err := k.requireAccount(ctx, s.ServiceAccountName); err != nil {
		return "", err
	}
	if err := k.requireInstance(ctx, s.InstanceName); err != nil {
		return "", err
	}
	file := k.keyFile(name)
	if err := k.freeName(ctx, name, timeout); err != nil {
		return "", err
	}
	public, err := generateKeyPair(file)
	if err != nil {
		return "", err
	}
	s.EncryptionKey = map[string]string{"pem": public}
	_, err = k.Create(ctx, resources.APIKeys, k.at.Organization, map[string]any{
		"apiVersion": resources.APIKeys.APIVersion(), "kind": "APIKey",
		"metadata": map[string]any{"name": name}, "spec": s,
	}, resources.WriteOptions{FieldManager: fieldManager})
	if err != nil {
		if _, ok := errors.AsType[*client.Error](err); ok { // the server created no key for this key pair
			err = errors.Join(err, os.Remove(file))
		}
		if errors.Is(err, client.ErrConflict) {
			return "", hint.Add(err, "Choose another name, or replace the key with 'freshet apikey rotate %s'.", name)
		}
		return "", err
	}
	waitCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	key, err := k.waitIssued(waitCtx, name)
	if err != nil {
		return "", err
	}
	private, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return decryptToken(key, private)
}

// waitIssued waits until a key works.
func (k *keys) waitIssued(ctx context.Context, name string) (resources.Object, error) {
	progress := k.env.Progress()
	defer progress.Clear()
	key, err := k.Wait(ctx, k.ref(name), func(o resources.Object) (bool, error) {
		if o == nil {
			return false, errs.Newf(errs.NotFound, "key %s was deleted", name)
		}
		c := o.Condition("Issued")
		progress.Printf("waiting for key %s: %s", name, cmp.Or(c.Reason, "not issued yet"))
		return c.Status == "True", nil
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c := key.Condition("Issued")
		return nil, hint.Add(command.Timeoutf("key %s was created but does not work yet: %s %s", name, c.Reason,
			output.Clean(c.Message)),
			"When the cause is removed, 'freshet apikey decrypt %s' prints its token.", name)
	}
	return key, err
}
