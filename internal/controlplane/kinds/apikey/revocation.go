package apikey

import (
	"strings"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// lastingPermissions lists the permissions of a key whose effects outlive the key: what its holder could do
// with each, and how to undo that.
var lastingPermissions = []struct {
	permission access.Permission
	effect     string
	remedy     string
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
	principal := &identity.Principal{
		Organization: account.Organization, ServiceAccount: account.Name, UID: account.UID, Admin: account.Admin ||
			account.System, KeyName: key.Name,
	}
	var effects, remedies []string
	for _, l := range lastingPermissions {
		if filter := k.authorizer.Filter(principal, l.permission,
			access.Scope{Organization: key.Namespace}); !filter.None() {
			effects, remedies = append(effects, l.effect), append(remedies, l.remedy)
		}
	}
	if len(effects) == 0 {
		return nil
	}
	return []string{"the key is revoked, but it could " + strings.Join(effects, ", ") + "; if it has leaked, " +
		strings.Join(remedies, ", ") +
		"; the audit log contains its actions under keyId " + key.Status.KeyID}
}
