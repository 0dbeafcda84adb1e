package kinds_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/identity"
)

// fixture is a system with an account ci in the organization acme.
type fixture struct {
	*testing.T
	*kindstest.System
}

func startWithAccount(t *testing.T) fixture {
	t.Helper()
	f := fixture{t, kindstest.StartSystem(t)}
	if _, err := f.Admin.CloudV1alpha1().ServiceAccounts("acme").Create(t.Context(), account("ci"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the account has credentials", func() bool {
		a, ok := f.Directory.Account("acme", "ci")
		return ok && a.ClientID != ""
	})
	return f
}

func (f fixture) key(name, instance string) (*v1alpha1.APIKey, error) {
	return f.Admin.CloudV1alpha1().APIKeys("acme").Create(f.Context(), &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.APIKeySpec{ServiceAccountName: "ci", InstanceName: instance},
	}, metav1.CreateOptions{})
}

func (f fixture) issued(name string) metav1.Condition {
	f.Helper()
	key, err := f.Admin.CloudV1alpha1().APIKeys("acme").Get(f.Context(), name, metav1.GetOptions{})
	if err != nil || len(key.Status.Conditions) == 0 {
		f.Fatalf("key %s: got %+v, %v, want conditions", name, key, err)
	}
	return key.Status.Conditions[0]
}

// atPlane authenticates like the data planes of instance prod.
func (f fixture) atPlane(token string) (*identity.Principal, error) {
	return f.Verifier.Authenticate(f.Context(), token, identity.InstanceAudience("acme", "prod"),
		identity.OrganizationAudience("acme"))
}

func (f fixture) patchInstance(body string) {
	f.Helper()
	_, err := f.Admin.CloudV1alpha1().MessagingInstances("acme").Patch(f.Context(), "prod", types.MergePatchType,
		[]byte(body), metav1.PatchOptions{})
	if err != nil {
		f.Fatal(err)
	}
}

// TestInstanceAuthDecidesAboutKeys checks that keys are valid only for instances whose spec.auth
// has apikey, from the moment that the call that changes it returns.
func TestInstanceAuthDecidesAboutKeys(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	if _, err := f.Admin.CloudV1alpha1().MessagingInstances("acme").Create(t.Context(), instance("prod"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{}
	principals := map[string]*identity.Principal{}
	for name, at := range map[string]string{"of-instance": "prod", "of-organization": ""} {
		key, err := f.key(name, at)
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = key.Status.Token
		if principals[name], err = f.atPlane(key.Status.Token); err != nil {
			t.Errorf("key %s at an instance that accepts keys: %v", name, err)
		}
	}
	f.patchInstance(`{"spec":{"auth":{"apikey":null,"oauth2":{}}}}`)
	for name, token := range tokens {
		if _, err := f.atPlane(token); !errors.Is(err, identity.ErrKeyNotAccepted) {
			t.Errorf("key %s at an instance without apikey: got %v, want %v", name, err, identity.ErrKeyNotAccepted)
		}
		if principals[name].Live() {
			t.Errorf("waiting call with key %s is still live, want it ended", name)
		}
	}
	if _, err := f.Verifier.Authenticate(t.Context(), tokens["of-organization"], identity.AnyOrganization); err != nil {
		t.Errorf("key of the organization at the resource API: %v", err)
	}
	if _, err := f.key("late", "prod"); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "spec.instanceName") {
		t.Errorf("creating a key for an instance without apikey: got %v, want spec.instanceName invalid", err)
	}
	f.Eventually("the instance's key has the reason APIKeysNotAccepted", func() bool {
		c := f.issued("of-instance")
		return c.Status == metav1.ConditionFalse && c.Reason == "APIKeysNotAccepted" &&
			strings.Contains(c.Message, "prod")
	})
	if c := f.issued("of-organization"); c.Status != metav1.ConditionTrue {
		t.Errorf("key of the organization: got %+v, want Issued True", c)
	}
	f.Restart()
	for name, token := range tokens {
		if _, err := f.atPlane(token); !errors.Is(err, identity.ErrKeyNotAccepted) {
			t.Errorf("key %s after a restart: got %v, want %v", name, err, identity.ErrKeyNotAccepted)
		}
	}
	f.patchInstance(`{"spec":{"auth":{"apikey":{}}}}`)
	for name, token := range tokens {
		if _, err := f.atPlane(token); err != nil {
			t.Errorf("key %s at an instance that accepts keys again: %v", name, err)
		}
	}
	f.Eventually("the instance's key is Issued again",
		func() bool { return f.issued("of-instance").Status == metav1.ConditionTrue })
}

const publicKey = `{"kty":"RSA","e":"AQAB","n":"` +
	"u1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0_IzW7yWR7QkrmBL7jTKEn5u-qKhbwKfBstIs-bM" +
	"Y2Zkp18gnTxKLxoS2tFczGkPLPgizskuemMghRniWaoLcyehkd3qqGElvW_VDL5AaWTg0nLVkjRo9z-40RQzuVaE8AkAFmxZzow3" +
	"x-VJYKdjykkJ0iT9wCS0DRTXu269V264Vf_3jvredZiKRkgwlL9xNAwxXFg0x_XFw005UWVRIkdgcKWTjpBP2dPwVZ4WWC-9aGVd" +
	"-Gyn1o0CLelf4rEjGoXbAAEgAqeGUxrcIlbjXfbcmw" + `"}`

// TestKeyWaitsForItsInstance checks that a key for a missing instance is issued when the instance
// is created.
func TestKeyWaitsForItsInstance(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	keys := f.Admin.CloudV1alpha1().APIKeys("acme")
	early, err := keys.Create(t.Context(), &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Name: "early"},
		Spec: v1alpha1.APIKeySpec{
			ServiceAccountName: "ci", InstanceName: "prod",
			EncryptionKey: &v1alpha1.EncryptionKey{JWK: publicKey},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := f.key("plain", "prod")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []*v1alpha1.APIKey{early, plain} {
		c := key.Status.Conditions[0]
		if c.Status != metav1.ConditionFalse || c.Reason != "InstanceNotFound" ||
			!strings.Contains(c.Message, "prod") || key.Status.KeyID != "" || key.Status.Token != "" {
			t.Errorf("key %s for a missing instance: got %+v, want it not issued and a message with the instance",
				key.Name, key.Status)
		}
	}
	if _, err := f.Admin.CloudV1alpha1().MessagingInstances("acme").Create(t.Context(), instance("prod"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the key is issued", func() bool { return f.issued("early").Status == metav1.ConditionTrue })
	f.Eventually("the key without an encryption key has the reason NoEncryptionKey",
		func() bool { return f.issued("plain").Reason == "NoEncryptionKey" })
}

// TestStatusDoesNotDecide checks that writes of the status by the system administrator have no
// effect: a revoked key stays rejected, a valid one valid, and credentials are kept.
func TestStatusDoesNotDecide(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	cloud := f.Admin.CloudV1alpha1()
	keys := cloud.APIKeys("acme")
	tokens := map[string]string{}
	for _, name := range []string{"good", "revoked"} {
		key, err := f.key(name, "")
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = key.Status.Token
	}
	if _, err := keys.Patch(t.Context(), "revoked", types.MergePatchType, []byte(`{"spec":{"revoke":true}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := cloud.ServiceAccounts("acme").Get(t.Context(), "ci", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patches := []string{
		`{"status":{"revokedAt":null,"conditions":[{"type":"Revoked","status":"False","reason":"x","message":"",` +
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		`{"status":{"keyId":"other","tokenHash":"00","issuedAt":null,"expiresAt":"2020-01-01T00:00:00Z",` +
			`"revokedAt":"2020-01-01T00:00:00Z"}}`,
		`{"status":null}`,
	}
	check := func(when string) {
		t.Helper()
		for name, wanted := range map[string]error{"good": nil, "revoked": identity.ErrKeyRevoked} {
			if _, err := f.Verifier.Authenticate(t.Context(), tokens[name],
				identity.AnyOrganization); !errors.Is(err, wanted) {
				t.Errorf("%s: key %s: got %v, want %v", when, name, err, wanted)
			}
		}
		key, err := keys.Get(t.Context(), "revoked", metav1.GetOptions{})
		if err != nil || key.Status.RevokedAt == nil || key.Status.KeyID == "" || len(key.Status.Conditions) != 3 ||
			key.Status.Conditions[2].Status != "True" {
			t.Errorf("%s: revoked key: got status %+v, want it revoked", when, key.Status)
		}
	}
	for _, body := range patches {
		for name := range tokens {
			if _, err := keys.Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{},
				"status"); err != nil {
				t.Fatal(err)
			}
		}
		check("after " + body)
	}
	_, err = cloud.ServiceAccounts("acme").Patch(t.Context(), "ci", types.MergePatchType,
		[]byte(`{"status":{"privateKeyData":"Z2FyYmFnZQ==","privateKeyType":"x","conditions":[]}}`),
		metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	sameCredentials := func() bool {
		sa, err := cloud.ServiceAccounts("acme").Get(t.Context(), "ci", metav1.GetOptions{})
		return err == nil && sa.Status.PrivateKeyData == before.Status.PrivateKeyData &&
			sa.Status.PrivateKeyType == before.Status.PrivateKeyType &&
			len(sa.Status.Conditions) == 1 && sa.Status.Conditions[0].Status == "True"
	}
	f.Eventually("the account is unchanged", sameCredentials)
	f.Restart()
	cloud = f.Admin.CloudV1alpha1()
	keys = cloud.APIKeys("acme")
	check("after a restart")
	if !sameCredentials() {
		t.Error("credentials changed with a restart")
	}
}

// state returns the status and reason of the condition Ready or Issued of an object in acme.
func (f fixture) state(resource, name string) string {
	f.Helper()
	raw, err := f.Admin.CloudV1alpha1().RESTClient().Get().Namespace("acme").Resource(resource).Name(
		name).DoRaw(f.Context())
	var object struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason string }
		}
	}
	if err = errors.Join(err, json.Unmarshal(raw, &object)); err != nil {
		f.Fatalf("%s: %v", resource, err)
	}
	for _, c := range object.Status.Conditions {
		if c.Type == "Ready" || c.Type == "Issued" {
			return c.Status + " " + c.Reason
		}
	}
	return "nothing"
}

// TestHeldObjectsAreNotReady checks that an object that is being deleted and held by a finalizer is
// not Ready, with the reason Deleting, when the delete call returns.
func TestHeldObjectsAreNotReady(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	client := f.Admin.CloudV1alpha1().RESTClient()
	objects := map[string]string{ // by resource
		"serviceaccounts":        `{}`,
		"serviceaccountbindings": `{"serviceAccountName":"ci","poolMemberRef":{"namespace":"default","name":"local"}}`,
		"users":                  `{"email":"ann@example.org"}`,
		"messaginginstances":     `{}`,
		"messagingclusters":      `{"instanceName":"held","location":"local"}`,
		"apikeys":                `{"serviceAccountName":"ci"}`,
		"rolebindings":           `{"roleRef":{"kind":"ClusterRole","name":"org-admin"}}`,
	}
	path := func(resource string) string {
		return "/apis/cloud.vendor.io/v1alpha1/namespaces/acme/" + resource
	}
	state := func(resource string) string { return f.state(resource, "held") }
	for _, grace := range []string{"0", "1"} {
		for resource, spec := range objects {
			body := `{"metadata":{"name":"held","finalizers":["example.com/hold"]},"spec":` + spec + `}`
			if err := client.Post().AbsPath(path(resource)).Body([]byte(body)).SetHeader("Content-Type",
				"application/json").Do(t.Context()).Error(); err != nil {
				t.Fatalf("%s: %v", resource, err)
			}
		}
		for resource := range objects {
			if resource == "messaginginstances" {
				continue // last, because its cluster must be deleted first
			}
			deleteHeld(t, f, path(resource), grace)
			if got := state(resource); grace == "0" && got != "False Deleting" {
				t.Errorf("%s being deleted: got %s, want False Deleting when the call returns", resource, got)
			}
			f.Eventually(resource+" has the reason Deleting",
				func() bool { return state(resource) == "False Deleting" })
		}
		deleteHeld(t, f, path("messaginginstances")+"?propagationPolicy=Foreground", grace)
		f.Eventually("the instance has the reason Deleting",
			func() bool { return state("messaginginstances") == "False Deleting" })
		for resource := range objects {
			err := client.Patch(types.MergePatchType).AbsPath(path(resource),
				"held").Body([]byte(`{"metadata":{"finalizers":null}}`)).Do(t.Context()).Error()
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatalf("%s: %v", resource, err)
			}
			f.Eventually(resource+" is deleted", func() bool {
				_, err := client.Get().AbsPath(path(resource), "held").DoRaw(t.Context())
				return apierrors.IsNotFound(err)
			})
		}
	}
}

func deleteHeld(t *testing.T, f fixture, path, grace string) {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	request := f.Admin.CloudV1alpha1().RESTClient().Delete().AbsPath(path, "held").Param("gracePeriodSeconds", grace)
	if name, value, ok := strings.Cut(query, "="); ok {
		request = request.Param(name, value)
	}
	if err := request.Do(t.Context()).Error(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
