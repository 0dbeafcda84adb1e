package kafkaapi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"freshet/internal/base/names"
)

// credentials are the credentials of a client (docs/spec/stream.md#authentication).
type credentials struct {
	token        string
	namespace    names.Namespace // zero for the default namespace
	organization string          // "" when the credentials name no cluster
	cluster      string
}

// Errors of malformed credentials. Clients see them.
var (
	errPlain = errors.New("PLAIN credentials must be authorization id, name and password, separated by a zero " +
		"byte; the authorization id is empty or equal to the name")
	errBearer    = errors.New("OAUTHBEARER credentials must have the form n,,\\x01auth=Bearer TOKEN\\x01\\x01")
	errNoToken   = errors.New("password is empty; use token:TOKEN, where TOKEN is an API key or an access token")
	errMechanism = errors.New("SASL mechanism is not supported")
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

// parsePlain parses a PLAIN message (RFC 4616).
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

// parseName parses [tenant/namespace][@organization/cluster]. A name of another form is a
// placeholder and is ignored.
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

// parseBearer parses an OAUTHBEARER message (RFC 7628): a GS2 header, then key=value pairs, each
// after a byte 1, and two bytes 1 at the end.
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
