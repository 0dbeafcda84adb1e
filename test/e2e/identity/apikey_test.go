package identity_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// pair returns the key pair to which the tests' API keys are encrypted.
var pair = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func publicPEM(key any) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func publicJWK(key any) string {
	text, err := json.Marshal(jose.JSONWebKey{Key: key})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// open decrypts the token of a key, as a client would.
func open(t testing.TB, r reply) string {
	t.Helper()
	jwe, err := jose.ParseEncryptedCompact(r.text("status.encryptedToken.jwe"),
		[]jose.KeyAlgorithm{jose.RSA_OAEP}, []jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	token, err := jwe.Decrypt(pair())
	if err != nil {
		t.Fatal(err)
	}
	registerSecret("an API key", string(token))
	return string(token)
}

// key creates an API key with an encryption key and returns the response.
func (w *world) key(name, account, instance string, more ...any) reply {
	w.Helper()
	spec := map[string]any{
		"serviceAccountName": account,
		"encryptionKey":      map[string]any{"pem": publicPEM(&pair().PublicKey)},
	}
	if instance != "" {
		spec["instanceName"] = instance
	}
	for i := 0; i < len(more); i += 2 {
		spec[more[i].(string)] = more[i+1]
	}
	return w.post("apikeys", object(name, spec))
}

// plainKey creates an API key whose token is in the response, and returns the token.
func (w *world) plainKey(name, account, instance string) string {
	w.Helper()
	spec := map[string]any{"serviceAccountName": account}
	if instance != "" {
		spec["instanceName"] = instance
	}
	r := w.do(call{method: http.MethodPost, path: "apikeys", body: object(name, spec), secret: true}).want(201)
	registerSecret("the plain API key "+name, r.text("status.token"))
	return r.text("status.token")
}

const (
	issued  = "Issued=True(Issued) Expired=False(NotExpired) Revoked=False(NotRevoked)"
	revoked = "Issued=True(Issued) Expired=False(NotExpired) Revoked=True(Revoked)"
)

func TestKeyFromBirthToRevocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	w.instance("prod")
	w.instance("other")
	host, elsewhere := w.cluster("east", "prod"), w.cluster("west", "other")
	r := w.key("k", "robot", "prod", "expirationTime", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)).want(201)
	if r.conditions() != issued {
		t.Fatalf("conditions in the create response: got %s, want %v", r.conditions(), issued)
	}
	if r.text("status.keyId") == "" || r.text("status.issuedAt") == "" ||
		r.text("status.expiresAt") != r.text("spec.expirationTime") || r.at("status.revokedAt") != nil ||
		r.at("status.token") != nil {
		t.Errorf("status: %s", r.body)
	}
	if r.text("metadata.ownerReferences.0.kind") != "ServiceAccount" ||
		r.text("metadata.ownerReferences.0.name") != "robot" ||
		r.at("metadata.ownerReferences.0.controller") != true {
		t.Errorf("owner: %s", r.body)
	}
	token := open(t, r)
	// A key with the condition Issued works immediately, with the clusters of its instance only.
	if got := w.onMessages(token, host); got != 201 {
		t.Errorf("on messages: %d, want 201", got)
	}
	if got := w.onRegistry(token, host); got != 200 {
		t.Errorf("on the registry: %d, want 200", got)
	}
	if got := w.onMessages(token, elsewhere); got != 401 {
		t.Errorf("on another instance: %d, want 401", got)
	}
	if got := w.onResources(token); got != 401 {
		t.Errorf("on the resource API, as a key of one instance: %d; want 401", got)
	}
	jwe := r.text("status.encryptedToken.jwe")
	done := w.patch("apikeys/k", map[string]any{"spec": map[string]any{"revoke": true}}).want(200)
	// After the call has returned, the key is rejected on every surface.
	if a, b := w.onMessages(token, host), w.onRegistry(token, host); a != 401 || b != 401 {
		t.Errorf("revoked key: on messages %d, on the registry %d; want 401 each", a, b)
	}
	if done.conditions() != revoked || done.text("status.revokedAt") == "" ||
		done.text("status.conditions.2.lastTransitionTime") == "" ||
		done.text("status.conditions.2.message") == "" || done.text("status.encryptedToken.jwe") != jwe {
		t.Errorf("revoked: %s", done.body)
	}
	refused := w.patch("apikeys/k", map[string]any{"spec": map[string]any{"revoke": false}}).want(422)
	if refused.text("details.causes.0.field") != "spec.revoke" {
		t.Errorf("undoing a revocation: got %s, want an error for spec.revoke", refused.body)
	}
	w.delete("apikeys/k").want(200, 202)
	w.eventuallyGone("apikeys/k")
}

func TestKeyOfAWholeOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	w.instance("prod")
	host := w.cluster("east", "prod")
	token := open(t, w.key("k", "robot", "").want(201))
	if a, b, c := w.onResources(token), w.onMessages(token, host), w.onRegistry(token, host); a != 200 ||
		b != 201 || c != 200 {
		t.Errorf("on resources %d, messages %d, registry %d; want 200, 201, 200", a, b, c)
	}
	other := newWorld(t)
	if got := other.onResources(token); got != 403 {
		t.Errorf("in another organization: %d, want 403", got)
	}
	w.do(call{
		method: http.MethodPatch, path: "apikeys/k", as: token, kind: "application/merge-patch+json",
		body: `{"spec":{"revoke":true}}`,
	}).want(200)
	if a, b, c := w.onResources(token), w.onMessages(token, host), w.onRegistry(token, host); a != 401 ||
		b != 401 || c != 401 {
		t.Errorf("key that revoked itself: on resources %d, messages %d, registry %d; want 401 each", a, b, c)
	}
}

func TestTokensKeepToTheirPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.account("robot", true)
	w.instance("prod")
	host := w.cluster("east", "prod")
	control, data := w.token(c, w.server.URL), w.token(c, w.audience("prod"))
	for _, tc := range []struct {
		name string
		got  int
		want int
	}{
		{"control token on resources", w.onResources(control), 200},
		{"control token on messages", w.onMessages(control, host), 401},
		{"control token on the registry", w.onRegistry(control, host), 401},
		{"data token on resources", w.onResources(data), 401},
		{"data token on messages", w.onMessages(data, host), 201},
		{"data token on the registry", w.onRegistry(data, host), 200},
		{"no token on resources", w.onResources("-"), 401},
		{"no token on messages", w.onMessages("-", host), 401},
		{"no token on the registry", w.onRegistry("-", host), 401},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, tc.got, tc.want)
		}
	}
}

func TestKeyByJWK(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	r := w.post("apikeys", object("k", map[string]any{
		"serviceAccountName": "robot", "encryptionKey": map[string]any{"jwk": publicJWK(&pair().PublicKey)},
	})).want(201)
	if got := w.onResources(open(t, r)); got != 200 {
		t.Errorf("key: got %d, want 200", got)
	}
}

// TestKeyOpensWithWebCrypto decrypts a token with decrypt.mjs of docs/howto, which uses only WebCrypto.
func TestKeyOpensWithWebCrypto(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	w := newWorld(t)
	w.account("robot", true)
	r := w.key("k", "robot", "").want(201)
	want := open(t, r)
	der, err := x509.MarshalPKCS8PrivateKey(pair())
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	cmd := exec.CommandContext(t.Context(), node, "../../../docs/howto/decrypt.mjs", file)
	cmd.Stdin = strings.NewReader(r.text("status.encryptedToken.jwe"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("decrypt.mjs: got error %v and output %s, want %v", err, &stderr, want)
	}
}

func TestInvalidEncryptionKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // must be rejected
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{
		Type:  "RSA PRIVATE KEY",
		Bytes: x509.MarshalPKCS1PrivateKey(pair()),
	}))
	registerSecret("the client's private key", strings.Split(private, "\n")[12])
	for _, tc := range []struct {
		name  string
		key   map[string]any
		field string
	}{
		{"small RSA", map[string]any{"pem": publicPEM(&small.PublicKey)}, "spec.encryptionKey.pem"},
		{"elliptic curve", map[string]any{"pem": publicPEM(&curve.PublicKey)}, "spec.encryptionKey.pem"},
		{"private key", map[string]any{"pem": private}, "spec.encryptionKey.pem"},
		{"no PEM", map[string]any{"pem": "hello"}, "spec.encryptionKey.pem"},
		{"small JWK", map[string]any{"jwk": publicJWK(&small.PublicKey)}, "spec.encryptionKey.jwk"},
		{"curve JWK", map[string]any{"jwk": publicJWK(&curve.PublicKey)}, "spec.encryptionKey.jwk"},
		{"no JWK", map[string]any{"jwk": "{}"}, "spec.encryptionKey.jwk"},
		{
			"both",
			map[string]any{"pem": publicPEM(&pair().PublicKey), "jwk": publicJWK(&pair().PublicKey)},
			"spec.encryptionKey",
		},
		{"neither", map[string]any{}, "spec.encryptionKey"},
	} {
		r := w.post("apikeys",
			object("bad", map[string]any{"serviceAccountName": "robot", "encryptionKey": tc.key})).want(422)
		if r.text("reason") != "Invalid" || r.text("details.causes.0.field") != tc.field {
			t.Errorf("%s: %s, want Invalid and %v", tc.name, r.body, tc.field)
		}
	}
	w.get("apikeys/bad").want(404)
}

func TestCreateOnlyFieldsOfAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	w.key("k", "robot", "", "customizedMetadata", map[string]any{"team": "a"}).want(201)
	for field, value := range map[string]any{
		"instanceName": "x", "serviceAccountName": "x", "expirationTime": "2099-01-01T00:00:00Z", "encryptionKey": nil,
		"customizedMetadata": map[string]any{"team": "b"},
	} {
		r := w.patch("apikeys/k", map[string]any{"spec": map[string]any{field: value}}).want(422)
		if !strings.HasPrefix(r.text("details.causes.0.field"), "spec."+field) {
			t.Errorf("%s: %s, want %s", field, r.body, "spec."+field)
		}
	}
	w.patch("apikeys/k", map[string]any{"spec": map[string]any{"description": "mine"}}).want(200)
}

func TestPlainTokenIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	watch := w.watch("apikeys", "")
	token := w.plainKey("k", "robot", "")
	if got := w.onResources(token); got != 200 {
		t.Errorf("key: got %d, want 200", got)
	}
	// Reads, lists and watches do not show the token: do and next check every response.
	if r := w.get("apikeys/k").want(200); r.at("status.token") != nil || r.conditions() != issued {
		t.Errorf("read again: %s, want no token and %v", r.body, issued)
	}
	w.get("apikeys").want(200)
	event := watch.next()
	if event.Type != "ADDED" || event.Object.Metadata.Name != "k" {
		t.Errorf("event: %+v, want ADDED, k", event)
	}
	w.patch("apikeys/k", map[string]any{"spec": map[string]any{"description": "x"}}).want(200)
	watch.next()
	// A dry run returns no usable token.
	r := w.do(call{
		method: http.MethodPost, path: "apikeys?dryRun=All",
		body: object("dry", map[string]any{"serviceAccountName": "robot"}),
	}).want(201)
	if r.at("status.token") != nil {
		t.Errorf("dry run returned a token: %s, want none", r.body)
	}
	w.get("apikeys/dry").want(404)
}

func TestKeyBeforeItsAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.key("early", "robot", "").want(201)
	want := "Issued=False(ServiceAccountNotFound) Expired=False(NotExpired) Revoked=False(NotRevoked)"
	if r.conditions() != want {
		t.Fatalf("conditions: %s, want %v", r.conditions(), want)
	}
	if r.at("status.keyId") != nil || r.at("status.encryptedToken") != nil {
		t.Errorf("issued without an account: %s, want neither token nor key id", r.body)
	}
	// A key that is revoked or expires before its account exists is never issued.
	w.key("dead", "robot", "").want(201)
	r = w.patch("apikeys/dead", map[string]any{"spec": map[string]any{"revoke": true}}).want(200)
	if want := "Issued=False(Revoked) Expired=False(NotExpired) Revoked=True(Revoked)"; r.conditions() != want {
		t.Errorf("revoked early: %s, want %v", r.conditions(), want)
	}
	// Without an encryption key the token could not be returned later.
	refused := w.post("apikeys", object("plain", map[string]any{"serviceAccountName": "robot"})).want(422)
	if refused.text("details.causes.0.field") != "spec.serviceAccountName" {
		t.Errorf("plain key of an unknown account: %s, want spec.serviceAccountName", refused.body)
	}
	w.account("robot", true)
	r = w.eventually("apikeys/early", "issued", func(r reply) bool { return r.conditions() == issued })
	if r.text("metadata.ownerReferences.0.name") != "robot" {
		t.Errorf("owner: %s, want robot", r.body)
	}
	if got := w.onResources(open(t, r)); got != 200 {
		t.Errorf("key: got %d, want 200", got)
	}
	if r := w.get("apikeys/dead"); r.at("status.encryptedToken") != nil {
		t.Errorf("revoked key was issued: %s, want no token", r.body)
	}
}

func TestKeyExpiresOnTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	end := time.Now().Add(3 * time.Second).Truncate(time.Second)
	r := w.key("k", "robot", "", "expirationTime", end.UTC().Format(time.RFC3339)).want(201)
	w.key("never", "nobody", "", "expirationTime", end.UTC().Format(time.RFC3339)).want(201)
	token := open(t, r)
	if got := w.onResources(token); got != 200 && time.Now().Before(end) {
		t.Errorf("key before its expiry: got %d, want 200", got)
	}
	w.eventually("apikeys/k", "expired", func(r reply) bool {
		return r.conditions() == "Issued=True(Issued) Expired=True(Expired) Revoked=False(NotRevoked)"
	})
	if early := time.Until(end); early > 0 {
		t.Errorf("condition Expired was set %s too early", early)
	}
	if got := w.onResources(token); got != 401 {
		t.Errorf("expired key: got %d, want 401", got)
	}
	w.eventually("apikeys/never", "expired", func(r reply) bool {
		return r.conditions() == "Issued=False(Expired) Expired=True(Expired) Revoked=False(NotRevoked)"
	})
	r = w.key("late", "robot", "", "expirationTime", "2020-01-01T00:00:00Z").want(422)
	if r.text("details.causes.0.field") != "spec.expirationTime" {
		t.Errorf("expired from the start: %s, want spec.expirationTime", r.body)
	}
}

func TestKeysGrantNoPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("boss", true)
	w.account("worker", false)
	w.account("reader", false)
	w.bind("reader", "org-readonly", "reader", nil)
	hr := w.user("hr", false)
	w.bind("hr", "account-admin", "hr", nil)
	make := func(account string) reply {
		t.Helper()
		return w.do(call{
			method: http.MethodPost, path: "apikeys", as: hr, secret: true,
			body: object("of-"+account, map[string]any{
				"serviceAccountName": account, "encryptionKey": map[string]any{"pem": publicPEM(&pair().PublicKey)},
			}),
		})
	}
	make("worker").want(201)
	make("hr").want(201)
	for _, account := range []string{"boss", "reader", "yet-to-come"} {
		if r := make(account).want(403); r.text("reason") != "Forbidden" ||
			!strings.Contains(r.text("message"), "permission") {
			t.Errorf("key of %s: got %s, want Forbidden and permission", account, r.body)
		}
	}
}

func TestRevocationEndsWaitingCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	host := func() string { w.instance("prod"); return w.cluster("east", "prod") }()
	token := open(t, w.key("k", "robot", "prod").want(201))
	topic := "/admin/rest/topics/v1/public/default/slow/"
	w.do(call{
		method: http.MethodPut, path: "/admin/v2/persistent/public/default/slow/subscription/s",
		host: host,
	}).want(204)
	waiting := make(chan reply, 1)
	go func() {
		waiting <- w.do(call{
			method: http.MethodPost, path: topic + "s/message", as: token, host: host,
			body: map[string]any{"timeoutMillis": 15000},
		})
	}()
	// While the call waits, the test revokes its key and then sends the message that it waits for.
	w.eventually("/admin/v2/persistent/public/default/slow/stats", "waited on", func(reply) bool { return true })
	w.patch("apikeys/k", map[string]any{"spec": map[string]any{"revoke": true}}).want(200)
	w.do(call{
		method: http.MethodPost, path: topic + "message", host: host, body: "for the living",
		kind: "application/octet-stream",
	}).want(201)
	if r := <-waiting; r.status == 200 {
		t.Errorf("waiting call with a revoked key got a message: %s", r.body)
	}
	// The message is not lost.
	r := w.do(call{
		method: http.MethodPost, path: topic + "s/message", host: host,
		body: map[string]any{"timeoutMillis": 10000},
	}).want(200)
	if string(r.body) != "for the living" {
		t.Errorf("got message %q, want for the living", r.body)
	}
}
