package java_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) {
	if os.Getenv("FRESHET_TEST_JAVA") == "" {
		os.Exit(m.Run()) // every test skips itself
	}
	testserver.Main(m, &binary)
}

// libraries is the folder to which hack/java-libs.sh downloads.
const libraries = "../../../.cache/java"

// machines bounds the number of concurrent Java virtual machines.
var machines = make(chan struct{}, 2)

// need skips the test if FRESHET_TEST_JAVA is not set or libraries are missing.
func need(t *testing.T, libs ...string) {
	t.Helper()
	if os.Getenv("FRESHET_TEST_JAVA") == "" {
		t.Skip("NOT TESTED: FRESHET_TEST_JAVA is not set; make test-java sets it")
	}
	for _, name := range libs {
		if _, err := os.Stat(filepath.Join(libraries, name, "pom.xml")); err != nil {
			t.Skipf("NOT TESTED: Java libraries %s are missing; download them with hack/java-libs.sh %s", name, name)
		}
	}
}

// server is a server for a test, with the settings of its clients.
type server struct {
	*testing.T
	*testserver.Server
	dir string
}

func start(t *testing.T) *server {
	t.Helper()
	s := &server{T: t, dir: t.TempDir()}
	var err error
	if s.Server, err = testserver.Start(t.Context(), binary, s.dir, testserver.Options{Kafka: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return s
}

// page is the how-to page whose settings the tests use.
const page = "../../../docs/howto/java.md"

// access holds the addresses and credentials of a server or an ensemble. Fields that the
// test's settings do not use may be empty.
type access struct {
	Kafka, KafkaTLS               string // of an ensemble: addresses of all members, separated by commas
	URL                           string
	Token, ClientID, ClientSecret string
	DataDir                       string
	Folder                        string // folder for the test's files
}

// access returns the addresses and credentials of the server.
func (s *server) access() access {
	return access{
		Kafka: s.Kafka, KafkaTLS: s.KafkaTLS, URL: s.URL,
		Token: s.Token, ClientID: s.ClientID, ClientSecret: s.ClientSecret,
		DataDir: s.DataDir, Folder: s.dir,
	}
}

// settings writes a settings file of the how-to page for the server, as access.settings does.
func (s *server) settings(name string, more ...string) string {
	s.Helper()
	return s.access().settings(s.T, name, more...)
}

// settings writes a settings file of the how-to page into the test's folder, with the
// addresses and secrets of the server and additional lines, and returns its path.
func (a access) settings(t *testing.T, name string, more ...string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```properties\n# "+name+"\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatalf("%s has no file %s", page, name)
	}
	block = strings.NewReplacer(
		"127.0.0.1:9092", a.Kafka, "127.0.0.1:9093", a.KafkaTLS,
		"http://127.0.0.1:8080", a.URL, "127.0.0.1:8083", "127.0.0.1:0",
		"THE-API-KEY", a.Token, "CLIENT-ID", a.ClientID, "CLIENT-SECRET", a.ClientSecret,
		"freshet-data", a.DataDir, "connect/", a.Folder+"/",
	).Replace(block)
	return a.file(t, name, block+strings.Join(more, "\n"))
}

// file writes a file into the test's folder and returns its path.
func (s *server) file(name, text string) string {
	s.Helper()
	return s.access().file(s.T, name, text)
}

func (a access) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(a.Folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile compiles the programs of some folders against libraries and returns the class
// path of both.
func compile(t *testing.T, libs string, folders ...string) string {
	t.Helper()
	var sources []string
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, "*.java"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no programs in %s (error %v)", folder, err)
		}
		sources = append(sources, found...)
	}
	libs, err := filepath.Abs(filepath.Join(libraries, libs))
	if err != nil {
		t.Fatal(err)
	}
	classes := t.TempDir()
	args := append([]string{"-nowarn", "-proc:none", "-Xlint:none", "-cp", libs + "/*", "-d", classes}, sources...)
	if out, err := exec.CommandContext(t.Context(), "javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return classes + ":" + libs + "/*"
}

// java returns a command that runs a class, with options for a small heap and a fast
// start.
func java(ctx context.Context, classpath string, flags []string, class string, args ...string) *exec.Cmd {
	all := append([]string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", classpath,
	}, flags...)
	cmd := exec.CommandContext(ctx, "java", append(append(all, class), args...)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// run runs a class and returns its standard output, and both outputs together. It waits
// while the maximum number of virtual machines runs.
func run(t *testing.T, classpath string, flags []string, stdin io.Reader, class string,
	args ...string,
) (out, all string, err error) {
	t.Helper()
	machines <- struct{}{}
	defer func() { <-machines }()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	var stdout, both strings.Builder
	cmd := java(ctx, classpath, flags, class, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, io.MultiWriter(&stdout, &both), &both
	err = cmd.Run()
	return stdout.String(), both.String(), err
}

// request makes an HTTP request to the server.
func (s *server) request(method, path, body string) (status int, text string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	raw, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// call makes an HTTP request that must succeed.
func (s *server) call(method, path, body string) string {
	s.Helper()
	status, text := s.request(method, path, body)
	if status/100 != 2 {
		s.Fatalf("%s %s: got %d %s, want success", method, path, status, text)
	}
	return text
}

// unprivilegedToken returns a token of a service account without roles.
func (s *server) unprivilegedToken() string {
	s.Helper()
	const accounts = "/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts"
	s.call(http.MethodPost, accounts,
		`{"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}`)
	tokenRequest := fmt.Sprintf(
		`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [%q]}}`, audience)
	status, text := s.request(http.MethodPost, accounts+"/nobody/token", tokenRequest)
	for end := time.Now().Add(time.Minute); status == http.StatusNotFound && time.Now().Before(end); {
		// the account has no credentials yet
		status, text = s.request(http.MethodPost, accounts+"/nobody/token", tokenRequest)
	}
	var created struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(text), &created); err != nil || created.Status.Token == "" {
		s.Fatalf("got %d %s (error %v), want a token", status, text, err)
	}
	return created.Status.Token
}

// audience is the token audience of the default instance.
const audience = "urn:vendor:messaging:default:default"
