package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Current returns the entry of the file's current context.
func Current(text []byte) (Options, error) {
	var f file
	if err := yaml.Unmarshal(text, &f); err != nil {
		return Options{}, fmt.Errorf("decoding the kubeconfig: %w", err)
	}
	var o Options
	name := cmp.Or(f.CurrentContext, defaultName)
	clusterName, userName := name, name
	for _, c := range f.Contexts {
		if c.Name == name {
			clusterName, userName, o.Namespace = c.Context.Cluster, c.Context.User, c.Context.Namespace
		}
	}
	for _, c := range f.Clusters {
		if c.Name == clusterName || len(f.Clusters) == 1 {
			o.Server, o.CA = c.Cluster.Server, c.Cluster.CA
		}
	}
	for _, u := range f.Users {
		if u.Name == userName {
			o.Token = u.User.Token
		}
	}
	if o.Server == "" {
		return Options{}, errors.New("kubeconfig names no server")
	}
	return o, nil
}
