// Package kubeconfig writes the file with which kubectl and client-go find a
// Freshet server. It knows the format and nothing else: server writes one at
// the first start, cli on demand. The format is small and stable, so it is
// spelled out here instead of linking the Kubernetes client into both.
package kubeconfig

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Options says what the file should point at.
type Options struct {
	// Server is the base URL.
	Server string
	// CA is the PEM text of the authority that signed the server's certificate;
	// empty for a publicly trusted one.
	CA []byte
	// Token is the bearer token. It stands in the file, which makes that a secret:
	// of the official clients, that of Python takes a token file's last newline
	// into the header, and that of JavaScript does not read token files.
	Token string
	// Namespace is the organization of the context.
	Namespace string
}

// name is that of the file's one cluster, user and context.
const name = "freshet"

type file struct {
	APIVersion     string    `json:"apiVersion"`
	Kind           string    `json:"kind"`
	CurrentContext string    `json:"current-context"`
	Clusters       []cluster `json:"clusters"`
	Users          []user    `json:"users"`
	Contexts       []context `json:"contexts"`
}

type cluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data,omitempty"`
	} `json:"cluster"`
}

type user struct {
	Name string `json:"name"`
	User struct {
		Token string `json:"token"`
	} `json:"user"`
}

type context struct {
	Name    string `json:"name"`
	Context struct {
		Cluster   string `json:"cluster"`
		User      string `json:"user"`
		Namespace string `json:"namespace"`
	} `json:"context"`
}

// Marshal returns the file's text.
func Marshal(o Options) ([]byte, error) {
	if o.Server == "" || o.Namespace == "" || o.Token == "" || strings.ContainsAny(o.Token, " \t\r\n") {
		return nil, errors.New("a kubeconfig needs a server, a namespace and a token without white space")
	}
	c := cluster{Name: name}
	c.Cluster.Server, c.Cluster.CA = o.Server, o.CA
	u := user{Name: name}
	u.User.Token = o.Token
	ctx := context{Name: name}
	ctx.Context.Cluster, ctx.Context.User, ctx.Context.Namespace = name, name, o.Namespace
	text, err := yaml.Marshal(file{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []cluster{c}, Users: []user{u}, Contexts: []context{ctx},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return text, nil
}
