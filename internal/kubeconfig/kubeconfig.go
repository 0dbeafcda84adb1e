// Package kubeconfig writes the file with which kubectl and client-go find a
// Freshet server. It knows the format and nothing else: server writes one at
// the first start, cli on demand. The format is small and stable, so it is
// spelled out here instead of linking the Kubernetes client into both.
package kubeconfig

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Options says what the file should point at.
type Options struct {
	// Server is the base URL.
	Server string
	// CAFile is the authority that signed the server's certificate; empty for
	// plain HTTP or a publicly trusted certificate.
	CAFile string
	// TokenFile holds the bearer token and is read again on every use, so that
	// the kubeconfig itself is no secret. Token puts the token in the file.
	TokenFile string
	Token     string
	// Exec is a command that prints an ExecCredential, with its arguments.
	Exec []string
	// Namespace is the organization of the context.
	Namespace string
	// Name is the name of cluster, user and context; "freshet" when empty.
	Name string
}

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
		CAFile string `json:"certificate-authority,omitempty"`
	} `json:"cluster"`
}

type user struct {
	Name string `json:"name"`
	User struct {
		Token     string `json:"token,omitempty"`
		TokenFile string `json:"tokenFile,omitempty"`
		Exec      *exec  `json:"exec,omitempty"`
	} `json:"user"`
}

type exec struct {
	APIVersion      string   `json:"apiVersion"`
	Command         string   `json:"command"`
	Args            []string `json:"args,omitempty"`
	InteractiveMode string   `json:"interactiveMode"`
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
	if o.Server == "" || o.Namespace == "" {
		return nil, errors.New("a kubeconfig needs a server and a namespace")
	}
	if o.Name == "" {
		o.Name = "freshet"
	}
	c := cluster{Name: o.Name}
	c.Cluster.Server, c.Cluster.CAFile = o.Server, o.CAFile
	u := user{Name: o.Name}
	u.User.Token, u.User.TokenFile = o.Token, o.TokenFile
	if len(o.Exec) > 0 {
		u.User.Exec = &exec{
			APIVersion: "client.authentication.k8s.io/v1", Command: o.Exec[0], Args: o.Exec[1:], InteractiveMode: "Never",
		}
	}
	ctx := context{Name: o.Name}
	ctx.Context.Cluster, ctx.Context.User, ctx.Context.Namespace = o.Name, o.Name, o.Namespace
	text, err := yaml.Marshal(file{
		APIVersion: "v1", Kind: "Config", CurrentContext: o.Name,
		Clusters: []cluster{c}, Users: []user{u}, Contexts: []context{ctx},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return text, nil
}
