package apikey_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/apikey"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
)

// start runs a resource API with this kind and its reconciler.
func start(t *testing.T) (typed.CloudV1alpha1Interface, *identitytest.World) {
	t.Helper()
	world := identitytest.New(t)
	kind := apikey.New(world.Issuer, world.Directory, access.NewPolicy(), slog.New(slog.DiscardHandler))
	definitions := kindstest.NewSet(t).Definitions()
	for i, definition := range definitions {
		if definition.Info().Kind == "APIKey" {
			definitions[i] = store.Define(kind)
		}
	}
	s := kindstest.Start(t, kindstest.Options{Kinds: definitions})
	client, err := versioned.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kindstest.Run(t, client, kind))
	return client.CloudV1alpha1(), world
}

// wait watches a key until its state is as wanted.
func wait(t *testing.T, keys typed.APIKeyInterface, name, want string) *v1alpha1.APIKey {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watch, err := keys.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	last := "nothing"
	for event := range watch.ResultChan() {
		key, ok := event.Object.(*v1alpha1.APIKey)
		if !ok {
			continue
		}
		ready, reason := apikey.State(key)
		if last = ready + " " + reason; last == want {
			return key
		}
	}
	t.Fatalf("key %s: got state %s, want %s", name, last, want)
	return nil
}

// public is an RSA key of 2048 bits; its private key was not kept.
const public = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo
4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u
+qKhbwKfBstIs+bMY2Zkp18gnTxKLxoS2tFczGkPLPgizskuemMghRniWaoLcyeh
kd3qqGElvW/VDL5AaWTg0nLVkjRo9z+40RQzuVaE8AkAFmxZzow3x+VJYKdjykkJ
0iT9wCS0DRTXu269V264Vf/3jvredZiKRkgwlL9xNAwxXFg0x/XFw005UWVRIkdg
cKWTjpBP2dPwVZ4WWC+9aGVd+Gyn1o0CLelf4rEjGoXbAAEgAqeGUxrcIlbjXfbc
mwIDAQAB
-----END PUBLIC KEY-----`

func TestKeyIsIssuedWhenItsAccountIsCreated(t *testing.T) {
	t.Parallel()
	cloud, world := start(t)
	keys := cloud.APIKeys("acme")
	_, err := keys.Create(t.Context(), &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Name: "early"},
		Spec: v1alpha1.APIKeySpec{
			ServiceAccountName: "late", EncryptionKey: &v1alpha1.EncryptionKey{PEM: public},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, keys, "early", "False ServiceAccountNotFound")
	account, _ := world.Account("acme", "late") // as the account's feed does
	if _, err := cloud.ServiceAccounts("acme").Create(t.Context(),
		&v1alpha1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	key := wait(t, keys, "early", "True Issued")
	if key.Status.EncryptedToken == nil || len(key.OwnerReferences) != 1 ||
		string(key.OwnerReferences[0].UID) != account.UID {
		t.Errorf("got token %v and owners %+v, want an encrypted token and the account %s",
			key.Status.EncryptedToken, key.OwnerReferences, account.UID)
	}
	if n := world.Directory.KeysOf("acme", ""); n != 1 {
		t.Errorf("keys of the organization in the directory: got %d, want 1", n)
	}
}

func TestKeyExpires(t *testing.T) {
	t.Parallel()
	cloud, world := start(t)
	world.Account("acme", "robot")
	keys := cloud.APIKeys("acme")
	end := metav1.NewTime(time.Now().Add(2 * time.Second))
	_, err := keys.Create(t.Context(), &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Name: "short"},
		Spec:       v1alpha1.APIKeySpec{ServiceAccountName: "robot", ExpirationTime: &end},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, keys, "short", "True Issued")
	wait(t, keys, "short", "False Expired")
}

// TestKeyOfAWithdrawnSigningKey checks that a key whose token is rejected shows that in its status,
// and that a key of the next signing key stays valid.
func TestKeyOfAWithdrawnSigningKey(t *testing.T) {
	t.Parallel()
	cloud, world := start(t)
	world.Account("acme", "robot")
	keys := cloud.APIKeys("acme")
	create := func(name string) {
		t.Helper()
		_, err := keys.Create(t.Context(), &v1alpha1.APIKey{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.APIKeySpec{ServiceAccountName: "robot"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	create("lost")
	wait(t, keys, "lost", "True Issued")
	world.RotateKeys() // a rotation alone invalidates no tokens
	create("kept")
	wait(t, keys, "kept", "True Issued")
	key := wait(t, keys, "lost", "True Issued")
	_, signer, _ := strings.Cut(key.Status.KeyID, ".")
	if err := world.Keys.Withdraw(t.Context(), signer); err != nil {
		t.Fatal(err)
	}
	wait(t, keys, "lost", "False SigningKeyWithdrawn")
	wait(t, keys, "kept", "True Issued")
}
