package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"freshet.dev/client"
)

// Connect to a server with an API key. New makes no call: the first call reports a wrong address or token.
func ExampleNew() {
	token, err := os.ReadFile(os.Getenv("FRESHET_TOKEN_FILE"))
	if err != nil {
		panic(err)
	}
	c, err := client.New(client.Config{
		BaseURL:     os.Getenv("FRESHET_SERVER"),
		TokenSource: client.StaticToken(strings.TrimSpace(string(token))),
		UserAgent:   "shop/1.4",
		Timeout:     10 * time.Second, // of each attempt
		MaxAttempts: 3,
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, err = c.Topics(context.Background(), "")
	fmt.Println(err)
	// Output: <nil>
}

// Connect to a cluster of an organization instead of the server's default cluster.
func ExampleNew_cluster() {
	c, err := client.New(client.Config{
		BaseURL:      os.Getenv("FRESHET_SERVER"),
		Organization: "acme",
		Cluster:      "west",
		TokenSource:  client.FileToken(os.Getenv("FRESHET_TOKEN_FILE")),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(c.ClusterPath("/admin/v2/clusters"))
	_, err = c.Topics(context.Background(), "")
	fmt.Println(errors.Is(err, client.ErrNotFound)) // nobody has created the cluster
	// Output:
	// /clusters/acme/west/admin/v2/clusters
	// true
}

// A token that does not work is ErrUnauthenticated.
func ExampleStaticToken() {
	c, err := client.New(client.Config{
		BaseURL: os.Getenv("FRESHET_SERVER"), TokenSource: client.StaticToken("not-a-token"),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, err = c.Topics(context.Background(), "")
	fmt.Println(errors.Is(err, client.ErrUnauthenticated))
	// Output: true
}

// vault is a TokenSource that gets its tokens from elsewhere. It should cache a token while it is valid.
type vault struct{ path string }

// Token implements client.TokenSource.
func (v vault) Token(context.Context) (client.Token, error) {
	secret, err := os.ReadFile(v.path)
	if err != nil {
		return client.Token{}, err
	}
	return client.Token{Value: strings.TrimSpace(string(secret)), Expiry: time.Now().Add(time.Hour)}, nil
}

// Get tokens from a store of secrets with a type of your own.
func ExampleTokenSource() {
	c, err := client.New(client.Config{
		BaseURL: os.Getenv("FRESHET_SERVER"), TokenSource: vault{os.Getenv("FRESHET_TOKEN_FILE")},
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, err = c.Topics(context.Background(), "")
	fmt.Println(err)
	// Output: <nil>
}

// Credentials and tokens do not reveal the secret when a program prints or logs them.
func ExampleReadCredentials() {
	credentials, err := client.ReadCredentials(os.Getenv("FRESHET_CREDENTIALS_FILE"))
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(fmt.Sprintf("%v %+v %#v", credentials, credentials, credentials),
		credentials.ClientSecret))
	// Output: false
}

// Distinguish a server that is not reachable, even after retries, from a call that the server rejects. The
// context limits the total time of all attempts.
func ExampleConfig_retries() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.New(client.Config{
		BaseURL:     "http://127.0.0.1:1", // nothing listens there
		Timeout:     time.Second,          // of each attempt
		MaxAttempts: 2,
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, err = c.Topic("orders").Produce(ctx, client.Message{Value: []byte("v")})
	switch {
	case errors.Is(err, client.ErrUnavailable):
		fmt.Println("try again later")
	case err != nil:
		fmt.Println("do not try again:", err)
	}
	// Output: try again later
}

// Make a call for which the package has no method.
func ExampleClient_Do() {
	c := connect()
	defer c.Close()
	response, err := c.Do(context.Background(), &client.Request{
		Method: http.MethodGet, Path: c.ClusterPath("/admin/v2/tenants"),
	})
	if err != nil {
		panic(err)
	}
	var tenants []string
	if err := response.JSON(&tenants); err != nil {
		panic(err)
	}
	fmt.Println(response.Status, len(tenants) > 0)
	// Output: 200 true
}
