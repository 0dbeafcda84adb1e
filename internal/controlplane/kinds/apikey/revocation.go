package apikey

import (
	"strings"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// lasting are the permissions of a key whose use outlives it: what each lets its
// holder take along, and what there is to do about it.
var lasting = []struct {
	permission access.Permission
	could      string
	then       string
}{
	{
		access.ReadCredentials, "read the credentials of service accounts",
		"rotate those credentials (POST …/serviceaccounts/{name}/rotate with overlapSeconds 0)",
	},
	{"cloud.apikeys.create", "make other keys and tokens", "revoke the keys that it made"},
	{"cloud.rolebindings.create", "bind roles", "delete the role bindings that it made"},
}

// revocationWarnings say what else a leaked key may have given its holder. A key
// that is bound to an instance reaches no accounts.
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
		": the audit trail has what it did under keyId " + key.Status.KeyID}
}
