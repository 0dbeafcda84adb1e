package tokenapi_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/url"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// TestStandardClient uses golang.org/x/oauth2 with each of its ways to send credentials.
// AutoDetect tries the header first and falls back to the body.
func TestStandardClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := httptest.NewServer(f.handler)
	defer server.Close()
	for name, style := range map[string]oauth2.AuthStyle{
		"auto detect": oauth2.AuthStyleAutoDetect, "header": oauth2.AuthStyleInHeader, "body": oauth2.AuthStyleInParams,
	} {
		config := clientcredentials.Config{
			ClientID: f.credentials.ClientID, ClientSecret: f.credentials.ClientSecret.Reveal(),
			TokenURL: server.URL + "//oauth/token", AuthStyle: style, EndpointParams: url.Values{"audience": {plane}},
		}
		token, err := config.Token(context.Background())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := f.Verifier.Authenticate(context.Background(), token.AccessToken, plane); err != nil ||
			token.Type() != "Bearer" || token.Expiry.IsZero() {
			t.Errorf("%s: got token type %v, error %v, want a valid Bearer token", name, token.Type(), err)
		}
		config.ClientSecret = "wrong"
		_, err = config.Token(context.Background())
		var refused *oauth2.RetrieveError
		if !errors.As(err, &refused) || refused.ErrorCode != "invalid_client" || refused.ErrorDescription == "" {
			t.Errorf("%s: with a wrong secret: got %v, want invalid_client", name, err)
		}
	}
}
