package kubeconfig_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"freshet/internal/ops/kubeconfig"
)

func TestClientGoReadsIt(t *testing.T) {
	t.Parallel()
	text, err := kubeconfig.Marshal(kubeconfig.Options{
		Server: "https://127.0.0.1:8443", CA: []byte("-----BEGIN CERTIFICATE-----\n"), Token: "secret",
		Namespace: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := raw.Contexts[raw.CurrentContext]; got == nil || got.Namespace != "acme" || got.Cluster != "freshet" ||
		got.AuthInfo != "freshet" {
		t.Errorf("got context %+v, want namespace acme, cluster and user freshet", got)
	}
	if got := raw.Clusters["freshet"]; got.Server != "https://127.0.0.1:8443" ||
		string(got.CertificateAuthorityData) != "-----BEGIN CERTIFICATE-----\n" {
		t.Errorf("got cluster %+v, want the server and its certificate authority", got)
	}
	if got := raw.AuthInfos["freshet"]; got.Token != "secret" || got.TokenFile != "" || got.Exec != nil {
		t.Errorf("got user %+v, want the token only", got)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	o := kubeconfig.Options{
		Server: "https://h:1", Namespace: "acme", Name: "mine",
		Exec: &kubeconfig.Exec{
			Command: "freshet", Args: []string{"auth", "exec"},
			Env: map[string]string{"B": "2", "A": "1"}, InstallHint: "get it",
		},
	}
	const other = "current-context: prod\ncontexts:\n- {name: prod, context: {cluster: prod, user: me}}\n- {name: " +
		"mine, context: {cluster: old, user: old}}\n" +
		"users:\n- {name: me, user: {token: x, extra: kept}}\nextensions: [{name: e}]\n"
	for name, use := range map[string]bool{"prod": false, "mine": true} {
		text, err := kubeconfig.Merge([]byte(other), o, use)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := clientcmd.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		if raw.CurrentContext != name || len(raw.Contexts) != 2 || raw.Contexts["mine"].Cluster != "mine" ||
			raw.AuthInfos["me"].Token != "x" {
			t.Errorf("got\n%s\nwant two contexts, %s as the current one, and all other entries unchanged", text, name)
		}
		exec := raw.AuthInfos["mine"].Exec
		if exec == nil || exec.Command != "freshet" || exec.APIVersion != kubeconfig.ExecVersion ||
			len(exec.Env) != 2 || exec.Env[0].Name != "A" || exec.InteractiveMode != "Never" {
			t.Errorf("got exec %+v, want the program of the options", exec)
		}
	}
	if text, err := kubeconfig.Merge(nil, o, false); err != nil ||
		!strings.Contains(string(text), "current-context: mine") {
		t.Errorf("without a file: got\n%s, error %v, want mine as the current context", text, err)
	}
	for _, text := range []string{"contexts: {}", ": :", "[]"} {
		if _, err := kubeconfig.Merge([]byte(text), o, true); err == nil {
			t.Errorf("merging into %q: got no error, want one", text)
		}
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
			t.Errorf("Marshal(%+v): got no error, want one", o)
		}
	}
}
