package tokenapi

import (
	"net/http"

	"freshet/internal/identity"
	"freshet/internal/web"
)

// discoveryDocument is the OpenID provider metadata. It names an authorization
// and a device endpoint because existing clients stop without them; both answer
// that there is no interactive sign-in, and so no response type is supported.
func discoveryDocument(issuer string) ([]byte, error) {
	return web.MarshalJSON(struct {
		Issuer                string   `json:"issuer"`
		TokenEndpoint         string   `json:"token_endpoint"`
		JWKS                  string   `json:"jwks_uri"`
		AuthorizationEndpoint string   `json:"authorization_endpoint"`
		DeviceEndpoint        string   `json:"device_authorization_endpoint"`
		GrantTypes            []string `json:"grant_types_supported"`
		ResponseTypes         []string `json:"response_types_supported"`
		SubjectTypes          []string `json:"subject_types_supported"`
		SigningAlgorithms     []string `json:"id_token_signing_alg_values_supported"`
		AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
		Scopes                []string `json:"scopes_supported"`
		Claims                []string `json:"claims_supported"`
	}{
		Issuer:                issuer,
		TokenEndpoint:         issuer + "/oauth/token",
		JWKS:                  issuer + "/.well-known/jwks.json",
		AuthorizationEndpoint: issuer + "/oauth/authorize",
		DeviceEndpoint:        issuer + "/oauth/device/code",
		GrantTypes:            []string{"client_credentials"},
		ResponseTypes:         []string{},
		SubjectTypes:          []string{"public"},
		SigningAlgorithms:     []string{"ES256"},
		AuthMethods:           []string{"client_secret_post", "client_secret_basic"},
		Scopes:                []string{"access", "admin"},
		Claims:                []string{"iss", "sub", "aud", "iat", "exp", "jti", "scope", identity.UsernameClaim, identity.ScopeClaim},
	})
}

// cacheable lets clients keep keys for a few minutes; the next signing key is
// published months before it is used.
const cacheable = "public, max-age=300"

func (a *API) serveDiscovery(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", cacheable)
	web.WriteBody(w, http.StatusOK, jsonType, a.discovery)
	return nil
}

func (a *API) serveJWKS(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", cacheable)
	web.WriteBody(w, http.StatusOK, jsonType, a.opts.Issuer.Keys().JWKS())
	return nil
}
