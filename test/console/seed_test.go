package console

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"time"
)

// keyPEM is a private key in PKCS #1, which openssl wrote for a long time; publicPEM is its public key.
var keyPEM, publicPEM = func() (private, public string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	private = string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	return private, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}()

type object = map[string]any

func named(name string, spec object) object {
	return object{"metadata": object{"name": name}, "spec": spec}
}

func binding(name, kind, role, subjectKind, subject string, more object) object {
	spec := object{
		"roleRef":  object{"apiGroup": "cloud.vendor.io", "kind": kind, "name": role},
		"subjects": []object{{"apiGroup": "cloud.vendor.io", "kind": subjectKind, "name": subject}},
	}
	for k, v := range more {
		spec[k] = v
	}
	return named(name, spec)
}

// seed fills the organization acme with the objects of a small company.
func seed(ctx context.Context) error {
	shared := object{"resourceSpec": object{"nodeType": "shared"}}
	cluster := func(instance, display string) object {
		return object{
			"instanceName": instance, "location": "local", "displayName": display, "broker": shared, "storage": shared,
			"config": object{"protocols": object{"stream": object{}}},
		}
	}
	key := func(account, instance, description string, days int) object {
		return object{
			"serviceAccountName": account, "instanceName": instance, "description": description,
			"encryptionKey":  object{"pem": publicPEM},
			"expirationTime": time.Now().AddDate(0, 0, days).UTC().Format(time.RFC3339),
		}
	}
	person := func(first, last string) object {
		return object{"email": fmt.Sprintf("%s@acme.example", first), "name": object{"first": first, "last": last}}
	}
	for _, o := range []struct {
		plural string
		object object
	}{
		{"messaginginstances", named("shop", object{})},
		{"messaginginstances", named("analytics", object{"type": "dedicated", "availabilityMode": "regional"})},
		{"messagingclusters", named("orders", cluster("shop", "Shop, production"))},
		{"messagingclusters", named("payments", cluster("shop", "Payments"))},
		{"messagingclusters", named("events", cluster("analytics", ""))},
		{"messagingclusters", named("waiting", cluster("later", "Comes with its instance"))},
		{"serviceaccounts", named("checkout", object{})},
		{"serviceaccounts", named("billing", object{})},
		{"serviceaccounts", named("warehouse", object{})},
		{"serviceaccounts", named("reporting", object{})},
		{"serviceaccounts", object{"metadata": object{
			"name":        "platform",
			"annotations": object{"annotations.cloud.vendor.io/service-account-role": "admin"},
		}}},
		{"apikeys", named("checkout-prod", key("checkout", "shop", "Production checkout", 80))},
		{"apikeys", named("checkout-ci", key("checkout", "shop", "Runs in CI", 4))},
		{"apikeys", named("billing-batch", key("billing", "shop", "Nightly run", 20))},
		{"apikeys", named("reporting-old", key("reporting", "analytics", "Replaced", 30))},
		{"users", named("ada@acme.example", person("Ada", "Lovelace"))},
		{"users", named("grace@acme.example", person("Grace", "Hopper"))},
		{"roles", named("shop-writer",
			object{
				"description": "Produces to topics and registers schemas.",
				"permissions": []string{
					"messaging.topics.describe", "messaging.topics.produce",
					"schema.subjects.create",
				},
			})},
		{"rolebindings", binding("checkout-writes", "Role", "shop-writer", "ServiceAccount", "checkout",
			object{"resourceNameRestriction": object{"common": object{"instance": "shop", "topic": "orders-*"}}})},
		{"rolebindings", binding("billing-consumes", "ClusterRole", "topic-consumer", "ServiceAccount", "billing",
			object{"resourceNameRestriction": object{"common": object{"instance": "shop"}}})},
		{"rolebindings", binding("ada-admin", "ClusterRole", "org-admin", "User", "ada@acme.example", nil)},
		{"rolebindings", binding("reporting-reads", "ClusterRole", "org-readonly", "ServiceAccount", "reporting", nil)},
		{"rolebindings", binding("warehouse-eu", "ClusterRole", "topic-consumer", "ServiceAccount", "warehouse",
			object{"cel": "srn.topic_name.startsWith('eu-')"})},
		{
			"serviceaccountbindings",
			named("checkout.default.local",
				object{
					"serviceAccountName": "checkout",
					"poolMemberRef":      object{"namespace": "default", "name": "local"},
				}),
		},
	} {
		status, text, err := call(ctx, server.Token, http.MethodPost, namespaces+"acme/"+o.plural, o.object)
		if err != nil || status >= 300 {
			return fmt.Errorf("seeding %s: %d %s %w", o.plural, status, text, err)
		}
	}
	status, text, err := call(ctx, server.Token, http.MethodPatch, namespaces+"acme/apikeys/reporting-old",
		object{"spec": object{"revoke": true}}, "Content-Type", "application/merge-patch+json")
	if err != nil || status >= 300 {
		return fmt.Errorf("revoking a key: %d %s %w", status, text, err)
	}
	return nil
}

// traffic produces some messages until the tests end, so that plots show data.
func traffic(ctx context.Context) {
	const root = "/clusters/acme/orders"
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	made := false
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !made { // the cluster may not be running yet
			status, _, err := call(ctx, server.Token, http.MethodPut,
				root+"/admin/v2/persistent/public/default/orders-placed/subscription/billing", nil)
			made = err == nil && (status < 300 || status == http.StatusConflict)
			continue
		}
		for range n%7 + 1 {
			_, _, _ = call(ctx, server.Token, http.MethodPost,
				root+"/admin/rest/topics/v1/public/default/orders-placed/message",
				[]byte(fmt.Sprintf(`{"order": %d}`, n)))
		}
	}
}
