package apikeycmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// requireAccount returns an error if a service account does not exist: a key for it would never
// work, and its name may be a typo. A caller who may not read the account passes.
func (k *keys) requireAccount(ctx context.Context, name string) error {
	ref := resources.Ref{Kind: resources.ServiceAccounts, Organization: k.at.Organization, Name: name}
	if _, err := k.Get(ctx, ref); errors.Is(err, client.ErrNotFound) {
		return hint.Add(errs.Newf(errs.NotFound, "service account %s does not exist in organization %s", name,
			k.at.Organization),
			"'freshet sa list' lists the accounts, 'freshet sa create %s' creates it.", name)
	}
	return nil
}

// requireInstance returns an error if an instance does not exist, for the same reasons.
func (k *keys) requireInstance(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	ref := resources.Ref{Kind: resources.MessagingInstances, Organization: k.at.Organization, Name: name}
	if _, err := k.Get(ctx, ref); errors.Is(err, client.ErrNotFound) {
		return hint.Add(errs.Newf(errs.NotFound, "instance %s does not exist in organization %s", name,
			k.at.Organization), "'freshet get mi' lists the instances.")
	}
	return nil
}

// freeName makes the name of a key available: it deletes a key of that name that was revoked or
// has expired, and the private key of a key that no longer exists. It changes nothing if a key
// of that name works.
func (k *keys) freeName(ctx context.Context, name string, timeout time.Duration) error {
	key, err := k.Get(ctx, k.ref(name))
	switch {
	case errors.Is(err, client.ErrNotFound):
	case err != nil:
		return nil //nolint:nilerr // the caller may not read keys; creating the key reports a conflict
	case state(key) != "Revoked" && state(key) != "Expired":
		return nil
	default:
		if err := k.deleteKey(ctx, name, timeout); err != nil {
			return err
		}
	}
	if err := os.Remove(k.keyFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (k *keys) deleteKey(ctx context.Context, name string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := k.Delete(ctx, k.ref(name), resources.DeleteOptions{GracePeriod: -1})
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return hint.Add(err, "A revoked or expired key has this name and cannot be deleted; choose another name.")
	}
	_, err = k.Wait(ctx, k.ref(name), func(o resources.Object) (bool, error) { return o == nil, nil })
	return err
}
