package tokenapi

import (
	"net/http"

	"freshet/internal/base/web"
	"freshet/internal/identity"
)

// discoveryDocument returns the OpenID provider metadata.
func discoveryDocument(issuer string) ([]byte, error) {
	return web.MarshalJSON(struct {
		Issuer                string   `json:"issuer"`
		TokenEndpoint         string   `json:"token_endpoint"`
		JWKS                  string   `json:"jwks_uri"`
		AuthorizationEndpoint string   `json:"authorization_endpoint"`
		DeviceEndpoint        string   `json:"device_authorization_endpoint"`
		RevocationEndpoint    string   `json:"revocation_endpoint"`
		UserInfoEndpoint      string   `json:"userinfo_endpoint"`
		SignOutEndpoint       string   `json:"end_session_endpoint"`
		GrantTypes            []string `json:"grant_types_supported"`
		ResponseTypes         []string `json:"response_types_supported"`
		ResponseModes         []string `json:"response_modes_supported"`
		ChallengeMethods      []string `json:"code_challenge_methods_supported"`
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
		DeviceEndpoint:        issuer + pathDevice,
		RevocationEndpoint:    issuer + pathRevoke,
		UserInfoEndpoint:      issuer + pathUserInfo,
		SignOutEndpoint:       issuer + "/oauth/signout",
		GrantTypes:            grantTypes,
		ResponseTypes:         []string{"code"},
		ResponseModes:         []string{"query"},
		ChallengeMethods:      []string{"S256"},
		SubjectTypes:          []string{"public"},
		SigningAlgorithms:     []string{"ES256"},
		AuthMethods:           []string{"client_secret_post", "client_secret_basic", "none"},
		Scopes:                []string{"openid", "access", "admin"},
		Claims: []string{
			"iss", "sub", "aud", "iat", "exp", "jti", "scope", identity.UsernameClaim,
			identity.ScopeClaim,
		},
	})
}

// cacheable lets clients cache keys for five minutes. That is safe, because the next
// signing key is published months before it is used.
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
