package serviceaccount_test

import (
	"context"
	"encoding/base64"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/kinds/serviceaccount"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// run runs a controller with the issuer until stop is called.
func run(t *testing.T, client versioned.Interface, w *identitytest.World, issuer *identity.Issuer) (stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	kind := serviceaccount.New(serviceaccount.Options{
		Issuer: issuer, Directory: w.Directory,
		Sealer: w.Sealer, Log: log,
	})
	return kindstest.Run(t, client, kind)
}

// credentials watches the account until its file contains the issuer's URL.
func credentials(t *testing.T, accounts typed.ServiceAccountInterface, issuer *identity.Issuer) identity.Credentials {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watch, err := accounts.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		sa, ok := event.Object.(*v1alpha1.ServiceAccount)
		if !ok || sa.Status.PrivateKeyData == "" {
			continue
		}
		file, err := base64.StdEncoding.DecodeString(sa.Status.PrivateKeyData)
		if err != nil {
			t.Fatal(err)
		}
		c, err := identity.ParseCredentials(file)
		if err != nil {
			t.Fatal(err)
		}
		if c.IssuerURL == issuer.URL() {
			return c
		}
	}
	t.Fatal("timed out waiting for credentials with the issuer's URL")
	return identity.Credentials{}
}

func TestCredentialsMoveWithTheIssuer(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	client, err := versioned.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	accounts := client.CloudV1alpha1().ServiceAccounts("acme")
	_, err = accounts.Create(t.Context(), &v1alpha1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "ci"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := identitytest.New(t)
	stop := run(t, client, w, w.Issuer)
	before := credentials(t, accounts, w.Issuer)
	stop()

	moved, err := identity.NewIssuer("https://elsewhere.example.org", w.Issuer.Keys())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run(t, client, w, moved))
	after := credentials(t, accounts, moved)
	if after.ClientID != before.ClientID || after.ClientSecret.Reveal() != before.ClientSecret.Reveal() {
		t.Error("credentials changed with the issuer's address")
	}
	if after.ClientEmail != "ci@acme.elsewhere.example.org" {
		t.Errorf("principal: got %s, want ci@acme.elsewhere.example.org", after.ClientEmail)
	}
	if _, err := identity.Authenticate(w.Directory, w.Sealer, before.ClientID, before.ClientSecret); err != nil {
		t.Errorf("authenticating with the old credentials: %v", err)
	}
}
