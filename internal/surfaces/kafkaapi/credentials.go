package kafkaapi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"freshet/internal/base/names"
)

// credentials are what a client brings (docs/spec/stream.md#authentication).
type credentials struct {
	token        string
	namespace    names.Namespace // zero for the default one
	organization string          // "" when the cluster is not named
	cluster      string
}

// Errors of credentials that cannot be read; clients show them.
var (
	errPlain = errors.New("PLAIN credentials are authorization id, name and password with a zero byte between " +
		"them; the authorization id is empty or the name")
	errBearer    = errors.New("OAUTHBEARER credentials must have the form n,,\\x01auth=Bearer TOKEN\\x01\\x01")
	errNoToken   = errors.New("password is empty; give token:TOKEN, where TOKEN is an API key or an access token")
	errMechanism = errors.New("mechanism is not served")
)

func parseCredentials(mechanism string, data []byte) (credentials, error) {
	switch mechanism {
	case mechanismPlain:
		return parsePlain(data)
	case mechanismOAuth:
		return parseBearer(data)
	}
	return credentials{}, errMechanism
}

// parsePlain reads what RFC 4616 says.
func parsePlain(data []byte) (credentials, error) {
	parts := bytes.Split(data, []byte{0})
	if len(parts) != 3 {
		return credentials{}, errPlain
	}
	authorization, name, password := string(parts[0]), string(parts[1]), string(parts[2])
	if authorization != "" && authorization != name {
		return credentials{}, errPlain
	}
	c := parseName(name)
	if c.token = strings.TrimPrefix(password, "token:"); c.token == "" {
		return credentials{}, errNoToken
	}
	return c, nil
}

// parseName reads [tenant/namespace][@organization/cluster]. Text of another form
// is a placeholder, as examples have one.
func parseName(name string) credentials {
	var c credentials
	place, cluster, named := strings.Cut(name, "@")
	if named {
		organization, cluster, ok := strings.Cut(cluster, "/")
		if !ok || organization == "" || cluster == "" || strings.Contains(cluster, "/") {
			return credentials{}
		}
		c.organization, c.cluster = organization, cluster
	}
	if tenant, namespace, ok := strings.Cut(place, "/"); ok {
		if ns, err := names.NewNamespace(tenant, namespace); err == nil {
			c.namespace = ns
		}
	}
	return c
}

// parseBearer reads what RFC 7628 says: a GS2 header, then key=value pairs behind
// a byte 1 each, and another byte 1 at the end.
func parseBearer(data []byte) (credentials, error) {
	head, rest, ok := strings.Cut(string(data), "\x01")
	if !ok || !strings.HasPrefix(head, "n,") || !strings.HasSuffix(rest, "\x01\x01") && rest != "\x01" {
		return credentials{}, errBearer
	}
	var c credentials
	for pair := range strings.SplitSeq(strings.TrimSuffix(rest, "\x01\x01"), "\x01") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return credentials{}, errBearer
		}
		switch key {
		case "auth":
			scheme, token, _ := strings.Cut(value, " ")
			if !strings.EqualFold(scheme, "bearer") {
				return credentials{}, errBearer
			}
			c.token = strings.TrimSpace(token)
		case "logicalCluster":
			organization, cluster, ok := strings.Cut(value, "/")
			if !ok || organization == "" || cluster == "" {
				return credentials{}, fmt.Errorf("extension logicalCluster must be organization/cluster")
			}
			c.organization, c.cluster = organization, cluster
		case "namespace":
			tenant, namespace, _ := strings.Cut(value, "/")
			ns, err := names.NewNamespace(tenant, namespace)
			if err != nil {
				return credentials{}, fmt.Errorf("extension namespace must be tenant/namespace: %w", err)
			}
			c.namespace = ns
		}
	}
	if c.token == "" {
		return credentials{}, errBearer
	}
	return c, nil
}
