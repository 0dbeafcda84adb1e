// Package kubeconfig reads and writes kubeconfig files, with which kubectl and client-go
// connect to a Freshet server. It handles the format only: server writes a file at the
// first start, cli on demand. The format is small and stable, so the package defines it
// instead of linking the Kubernetes client. It has no locks.
package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Options are the contents of a kubeconfig entry.
type Options struct {
	// Server is the base URL.
	Server string
	// CA is the PEM text of the authority that signed the server's certificate;
	// empty for a publicly trusted one.
	CA []byte
	// Token is the bearer token. The file contains it, so the file is a secret. A token
	// file is no alternative: the official Python client adds the file's trailing newline
	// to the header, and the JavaScript client does not read token files.
	Token string
	// Exec is a program that returns tokens; it replaces Token.
	Exec *Exec
	// Namespace is the organization of the context.
	Namespace string
	// Name is the name of the cluster, the user and the context; freshet if it is empty.
	Name string
}

// Exec is a program that kubectl and client-go run to get a token.
type Exec struct {
	Command string
	Args    []string
	// Env are environment variables that are added to those of the caller.
	Env map[string]string
	// InstallHint is shown to users who do not have the program.
	InstallHint string
}

// defaultName is the default name of cluster, user and context.
const defaultName = "freshet"

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
		Token string      `json:"token,omitempty"`
		Exec  *execConfig `json:"exec,omitempty"`
	} `json:"user"`
}

type execConfig struct {
	APIVersion         string    `json:"apiVersion"`
	Command            string    `json:"command"`
	Args               []string  `json:"args"`
	Env                []execEnv `json:"env,omitempty"`
	InstallHint        string    `json:"installHint,omitempty"`
	InteractiveMode    string    `json:"interactiveMode"`
	ProvideClusterInfo bool      `json:"provideClusterInfo"`
}

type execEnv struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type context struct {
	Name    string `json:"name"`
	Context struct {
		Cluster   string `json:"cluster"`
		User      string `json:"user"`
		Namespace string `json:"namespace"`
	} `json:"context"`
}

// ExecVersion is the API version of the program's output.
const ExecVersion = "client.authentication.k8s.io/v1"

// entries returns a file that has only the entry of the options.
func (o Options) entries() (file, error) {
	switch {
	case o.Server == "" || o.Namespace == "":
		return file{}, errors.New("kubeconfig needs a server and a namespace")
	case o.Exec == nil && (o.Token == "" || strings.ContainsAny(o.Token, " \t\r\n")):
		return file{}, errors.New("kubeconfig needs a token without white space, or a program that returns tokens")
	}
	name := cmp.Or(o.Name, defaultName)
	c := cluster{Name: name}
	c.Cluster.Server, c.Cluster.CA = o.Server, o.CA
	u := user{Name: name}
	if o.Exec == nil {
		u.User.Token = o.Token
	} else {
		u.User.Exec = &execConfig{
			APIVersion: ExecVersion, Command: o.Exec.Command, Args: o.Exec.Args,
			InstallHint: o.Exec.InstallHint, InteractiveMode: "Never",
		}
		for _, key := range slices.Sorted(maps.Keys(o.Exec.Env)) {
			u.User.Exec.Env = append(u.User.Exec.Env, execEnv{key, o.Exec.Env[key]})
		}
	}
	ctx := context{Name: name}
	ctx.Context.Cluster, ctx.Context.User, ctx.Context.Namespace = name, name, o.Namespace
	return file{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []cluster{c}, Users: []user{u}, Contexts: []context{ctx},
	}, nil
}

// Marshal returns the text of a file that has only this entry.
func Marshal(o Options) ([]byte, error) {
	f, err := o.entries()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return text, nil
}

// Merge adds the entry of the options to an existing file, or replaces the entry with
// the same name. If use is set, the entry becomes the current context. Everything else
// in the file stays, except comments.
func Merge(existing []byte, o Options, use bool) ([]byte, error) {
	added, err := o.entries()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(added)
	if err != nil {
		return nil, err
	}
	var merged, parts map[string]any
	if err := errors.Join(yaml.Unmarshal(existing, &merged), yaml.Unmarshal(text, &parts)); err != nil {
		return nil, fmt.Errorf("decoding the kubeconfig: %w", err)
	}
	if merged == nil {
		merged = map[string]any{"apiVersion": "v1", "kind": "Config"}
	}
	for _, list := range []string{"clusters", "users", "contexts"} {
		old, ok := merged[list].([]any)
		if !ok && merged[list] != nil {
			return nil, fmt.Errorf("decoding the kubeconfig: %s is not a list", list)
		}
		entry := parts[list].([]any)[0]
		merged[list] = replaceNamed(old, entry, cmp.Or(o.Name, defaultName))
	}
	if current, _ := merged["current-context"].(string); use || current == "" {
		merged["current-context"] = parts["current-context"]
	}
	return yaml.Marshal(merged)
}

// replaceNamed replaces the entry with the same name, or appends the entry.
func replaceNamed(list []any, entry any, name string) []any {
	for i, old := range list {
		if fields, ok := old.(map[string]any); ok && fields["name"] == name {
			list[i] = entry
			return list
		}
	}
	return append(list, entry)
}
