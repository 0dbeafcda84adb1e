package tokenapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"freshet/internal/base/web"
	"freshet/internal/identity"
)

const (
	maxBody      = 16 << 10
	maxParameter = 2 << 10
	maxClientID  = 256 // real ids are much shorter; limiters store ids
)

// request is a token request, from a JSON body or a form.
type request struct {
	grantType    string
	clientID     string
	clientSecret identity.Secret
	audience     string
	basic        bool // the credentials came in the Authorization header

	// parameters of user grants
	code, redirect, verifier, refresh, device, token string
}

// parameterNames are the supported fields; all others are ignored (RFC 6749 §3.2).
var parameterNames = []string{
	"grant_type", "client_id", "client_secret", "audience", "scope",
	"code", "redirect_uri", "code_verifier", "refresh_token", "device_code", "token",
}

// parameters are the parameters of a request.
type parameters map[string]string

// audience returns the requested audience of the token. Kafka clients cannot send the
// audience parameter, so they name the instance in the scope
// (docs/spec/resources.md#token-endpoint).
func (p parameters) audience() (string, error) {
	if p["audience"] != "" {
		return p["audience"], nil
	}
	instance := ""
	for word := range strings.FieldsSeq(p["scope"]) {
		if _, _, ok := identity.ParseInstanceAudience(word); !ok || word == instance {
			continue
		}
		if instance != "" {
			return "", invalidRequest("parameter scope names several instances; request one token for each")
		}
		instance = word
	}
	return instance, nil
}

func parseRequest(r *http.Request) (*request, error) {
	body, err := web.ReadBody(r, maxBody)
	if err != nil {
		return nil, err
	}
	params, err := parseBody(body)
	if err != nil {
		return nil, err
	}
	for _, value := range params {
		if len(value) > maxParameter {
			return nil, invalidRequest(fmt.Sprintf("parameter is longer than %d bytes", maxParameter))
		}
	}
	audience, err := params.audience()
	if err != nil {
		return nil, err
	}
	req := &request{
		grantType:    params["grant_type"],
		clientID:     params["client_id"],
		clientSecret: identity.NewSecret(params["client_secret"]),
		audience:     audience,
		code:         params["code"], redirect: params["redirect_uri"], verifier: params["code_verifier"],
		refresh: params["refresh_token"], device: params["device_code"], token: params["token"],
	}
	return req, req.useHeader(r)
}

// parseBody parses JSON or a form. The first byte decides, not the Content-Type: clients
// label bodies wrongly (curl -d always sends the type of a form), and a form cannot begin
// with a brace.
func parseBody(body []byte) (parameters, error) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		return parseJSON(text)
	}
	return parseForm(string(body))
}

// parseJSON parses an object with string values. A repeated parameter is an error, as in
// a form.
func parseJSON(body []byte) (parameters, error) {
	bodyErr := invalidRequest("body is not a JSON object with string values")
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil { // the brace
		return nil, bodyErr
	}
	params, seen := parameters{}, make(map[string]bool)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, bodyErr
		}
		name, _ := key.(string) // keys of an object are strings
		if !slices.Contains(parameterNames, name) {
			var ignored json.RawMessage
			if dec.Decode(&ignored) != nil {
				return nil, bodyErr
			}
			continue
		}
		if seen[name] {
			return nil, invalidRequest("parameter " + name + " occurs twice")
		}
		seen[name] = true
		var value *string
		if dec.Decode(&value) != nil {
			return nil, invalidRequest("parameter " + name + " must be a string")
		}
		if value != nil {
			params[name] = *value
		}
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, bodyErr
	}
	if dec.More() || dec.InputOffset() != int64(len(bytes.TrimRight(body, " \t\r\n"))) {
		return nil, bodyErr
	}
	return params, nil
}

func parseForm(body string) (parameters, error) {
	values, err := url.ParseQuery(body)
	if err != nil {
		return nil, invalidRequest("body is neither a JSON object nor a well-formed form")
	}
	params := parameters{}
	for _, name := range parameterNames {
		switch list := values[name]; len(list) {
		case 0:
		case 1:
			params[name] = list[0]
		default:
			return nil, invalidRequest("parameter " + name + " occurs twice")
		}
	}
	return params, nil
}

// useHeader reads the credentials of the Basic scheme, which are form-encoded
// (RFC 6749 §2.3.1). Sending credentials in the header and in the body is an error.
func (req *request) useHeader(r *http.Request) error {
	scheme, credentials, ok := web.Authorization(r)
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return nil
	}
	req.basic = true
	raw, err := base64.StdEncoding.DecodeString(credentials)
	if err != nil {
		return invalidClient(true)
	}
	id, secret, ok := strings.Cut(string(raw), ":")
	if !ok {
		return invalidClient(true)
	}
	id, idErr := url.QueryUnescape(id)
	secret, secretErr := url.QueryUnescape(secret)
	if idErr != nil || secretErr != nil || len(id) > maxParameter || len(secret) > maxParameter {
		return invalidClient(true)
	}
	if !req.clientSecret.IsZero() || (req.clientID != "" && req.clientID != id) {
		return invalidRequest("client credentials are in the Authorization header and in the body; send them once")
	}
	req.clientID, req.clientSecret = id, identity.NewSecret(secret)
	return nil
}
