package kubeconfig_test

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"freshet/internal/kubeconfig"
)

func TestClientGoReadsIt(t *testing.T) {
	t.Parallel()
	text, err := kubeconfig.Marshal(kubeconfig.Options{
		Server: "https://127.0.0.1:8443", CAFile: "/d/tls/ca.crt", TokenFile: "/d/admin.token", Namespace: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := raw.Contexts[raw.CurrentContext]; got == nil || got.Namespace != "acme" || got.Cluster != "freshet" || got.AuthInfo != "freshet" {
		t.Errorf("context %+v", got)
	}
	if got := raw.Clusters["freshet"]; got.Server != "https://127.0.0.1:8443" || got.CertificateAuthority != "/d/tls/ca.crt" {
		t.Errorf("cluster %+v", got)
	}
	if got := raw.AuthInfos["freshet"]; got.TokenFile != "/d/admin.token" || got.Token != "" || got.Exec != nil {
		t.Errorf("user %+v", got)
	}
}

func TestExecCredential(t *testing.T) {
	t.Parallel()
	text, err := kubeconfig.Marshal(kubeconfig.Options{
		Server: "http://h", Namespace: "acme", Name: "prod", Exec: []string{"freshet", "auth", "exec"},
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.AuthInfos["prod"].Exec; got == nil || got.Command != "freshet" || len(got.Args) != 2 {
		t.Errorf("exec %+v", got)
	}
}

func TestNeedsServerAndNamespace(t *testing.T) {
	t.Parallel()
	for _, o := range []kubeconfig.Options{{}, {Server: "http://h"}, {Namespace: "n"}} {
		if _, err := kubeconfig.Marshal(o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}
