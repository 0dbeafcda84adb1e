package apikey

import (
	"strings"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// lasting lists the permissions of a key whose effects outlive the key: what its holder could do
// with each, and how to undo that.
var lasting = []struct {
	permission access.Permission
	could      string
	then       string
}{
	{
		access.ReadCredentials, "read the credentials of service accounts",
		"rotate those credentials (POST …/serviceaccounts/{name}/rotate with overlapSeconds 0)",
	},
	{"cloud.apikeys.create", "create other keys and tokens", "revoke the keys that it created"},
	{"cloud.rolebindings.create", "bind roles", "delete the role bindings that it created"},
}

// revocationWarnings lists what the holder of a leaked key may have obtained. A key that is bound
// to an instance has no access to accounts.
func (k *Kind) revocationWarnings(key *object) []string {
	account, ok := k.directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	if !ok || key.Spec.InstanceName != "" {
		return nil
	}
	who := &identity.Principal{
		Organization: account.Organization, ServiceAccount: account.Name, UID: account.UID, Admin: account.Admin ||
			account.System, KeyName: key.Name,
	}
	var could, then []string
	for _, l := range lasting {
		if reach := k.authorizer.Filter(who, l.permission, access.Scope{Organization: key.Namespace}); !reach.None() {
			could, then = append(could, l.could), append(then, l.then)
		}
	}
	if len(could) == 0 {
		return nil
	}
	return []string{"the key is revoked, but it could " + strings.Join(could, ", ") + "; if it has leaked, " +
		strings.Join(then, ", ") +
		"; the audit log contains its actions under keyId " + key.Status.KeyID}
}
