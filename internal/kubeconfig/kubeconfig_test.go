package kubeconfig_test

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"freshet/internal/kubeconfig"
)

func TestClientGoReadsIt(t *testing.T) {
	t.Parallel()
	text, err := kubeconfig.Marshal(kubeconfig.Options{
		Server: "https://127.0.0.1:8443", CA: []byte("-----BEGIN CERTIFICATE-----\n"), Token: "secret", Namespace: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := raw.Contexts[raw.CurrentContext]; got == nil || got.Namespace != "acme" || got.Cluster != "freshet" || got.AuthInfo != "freshet" {
		t.Errorf("context %+v, want namespace acme, cluster and user freshet", got)
	}
	if got := raw.Clusters["freshet"]; got.Server != "https://127.0.0.1:8443" || string(got.CertificateAuthorityData) != "-----BEGIN CERTIFICATE-----\n" {
		t.Errorf("cluster %+v, want the server and its authority", got)
	}
	if got := raw.AuthInfos["freshet"]; got.Token != "secret" || got.TokenFile != "" || got.Exec != nil {
		t.Errorf("user %+v, want the token only", got)
	}
}

func TestNeedsServerNamespaceAndToken(t *testing.T) {
	t.Parallel()
	for _, o := range []kubeconfig.Options{
		{},
		{Server: "http://h"},
		{Namespace: "n"},
		{Server: "http://h", Namespace: "n"},
		{Server: "http://h", Namespace: "n", Token: "with a newline\n"},
	} {
		if _, err := kubeconfig.Marshal(o); err == nil {
			t.Errorf("Marshal(%+v) succeeds, want an error", o)
		}
	}
}
