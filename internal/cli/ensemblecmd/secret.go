package ensemblecmd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/ensemble/bundle"
)

const (
	// serviceAccountDir is where Kubernetes mounts the credentials of a pod's service account.
	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// secretTimeout bounds the call to the API server. The job of the chart repeats a failed one.
	secretTimeout = 30 * time.Second
	// maxAccountFile and maxReply bound what the command reads of the pod's files and of a response.
	maxAccountFile = 1 << 20
	maxReply       = 64 << 10
)

// secretName is the syntax of names of objects in Kubernetes.
var secretName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// kubernetesSecret creates the bundles of an ensemble as a secret of the namespace in which the command runs.
// It only creates, so a service account that may do nothing else is enough, and nobody can lose the secrets
// of an ensemble by running the command again: the API server rejects a second secret of the same name.
type kubernetesSecret struct {
	name    string // "" to write files
	account string // directory with the token, the namespace and the authority of the service account
}

func (s *kubernetesSecret) add(f *pflag.FlagSet) {
	f.StringVar(&s.name, "kubernetes-secret", "",
		"`name` of the Kubernetes secret to create in the namespace of this pod, instead of files")
	f.StringVar(&s.account, "service-account-dir", serviceAccountDir,
		"`directory` with the credentials of the pod's service account, for --kubernetes-secret")
}

func (s *kubernetesSecret) check(cmd *cobra.Command) error {
	switch {
	case s.name == "" && cmd.Flags().Changed("service-account-dir"):
		return command.Usagef(cmd, "--service-account-dir is for --kubernetes-secret, which is missing")
	case s.name == "":
		return nil
	case cmd.Flags().Changed("out"):
		return command.Usagef(cmd, "--out and --kubernetes-secret cannot be combined: a secret replaces the files")
	case !secretName.MatchString(s.name):
		return command.Usagef(cmd, "--kubernetes-secret takes lowercase letters, digits, '-' and '.', not %q", s.name)
	}
	return nil
}

// create creates the secret, and reports one that exists as success.
func (s *kubernetesSecret) create(ctx context.Context, env *command.Env, ensemble *bundle.Ensemble) error {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	host, port := env.Getenv("KUBERNETES_SERVICE_HOST"), env.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return errs.New(errs.Precondition, "--kubernetes-secret works in a pod only, where KUBERNETES_SERVICE_HOST "+
			"and KUBERNETES_SERVICE_PORT are set; elsewhere, leave it out and create the secret from the files with "+
			"kubectl create secret generic NAME --from-file freshet-group")
	}
	namespace, err := s.read("namespace")
	if err != nil {
		return err
	}
	body, err := s.object(strings.TrimSpace(string(namespace)), ensemble)
	if err != nil {
		return err
	}
	url := "https://" + net.JoinHostPort(host, port) + "/api/v1/namespaces/" + strings.TrimSpace(string(namespace)) +
		"/secrets"
	status, reply, err := s.post(ctx, url, body)
	if err != nil {
		return err
	}
	result := command.Result{Kind: "secret", Name: s.name, Action: "created"}
	switch {
	case status == http.StatusCreated:
		return env.Done(result, `secret %s has a bundle for each of the %d members, and %s.

Store %s in a safe place: lost members are replaced with it.`, s.name, len(ensemble.Members), bundle.EnsembleFile,
			bundle.EnsembleFile)
	case status == http.StatusConflict && reply.Reason == "AlreadyExists": // other conflicts are temporary
		result.Action = "exists"
		return env.Done(result, "secret %s exists and was not changed", s.name)
	case status == http.StatusForbidden:
		return errs.Newf(errs.Denied, "creating secret %s: %s; the service account needs the verb create on secrets",
			s.name, reply.Message)
	}
	return errs.Newf(errs.Unavailable, "creating secret %s: the Kubernetes API server returned %d: %s", s.name, status,
		reply.Message)
}

// object returns the secret as JSON: the files that init writes otherwise, with their names.
func (s *kubernetesSecret) object(namespace string, ensemble *bundle.Ensemble) ([]byte, error) {
	data := map[string][]byte{}
	var err error
	if data[bundle.EnsembleFile], err = bundle.Encode(ensemble); err != nil {
		return nil, err
	}
	for _, m := range ensemble.Members {
		part, err := ensemble.Bundle(m.Name, false)
		if err != nil {
			return nil, err
		}
		if data[m.Name+".bundle"], err = bundle.Encode(part); err != nil {
			return nil, err
		}
	}
	return json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
		"metadata": map[string]any{
			"name": s.name, "namespace": namespace,
			"labels": map[string]string{"app.kubernetes.io/managed-by": "freshet"},
		},
	})
}

// failure has the fields of the Status with which the API server rejects a request.
type failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// post sends an object to the API server. It returns the status, and the reason of a failure.
func (s *kubernetesSecret) post(ctx context.Context, url string, body []byte) (status int, why failure, err error) {
	token, err := s.read("token")
	if err != nil {
		return 0, why, err
	}
	authority, err := s.read("ca.crt")
	if err != nil {
		return 0, why, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return 0, why, errs.Newf(errs.Invalid, "%s has no certificate", filepath.Join(s.account, "ca.crt"))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, why, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
	response, err := client.Do(request)
	if err != nil {
		return 0, why, errs.Newf(errs.Unavailable, "calling the Kubernetes API server: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	reply, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return 0, why, errs.Newf(errs.Unavailable, "reading the response of the Kubernetes API server: %w", err)
	}
	if json.Unmarshal(reply, &why) != nil {
		why.Message = "the response is no Kubernetes object"
	}
	return response.StatusCode, why, nil
}

// read reads a file of the service account.
func (s *kubernetesSecret) read(name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(s.account, name))
	if err != nil {
		return nil, errs.Newf(errs.Precondition, "reading the pod's service account: %w; the pod needs a service "+
			"account whose token is mounted", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxAccountFile))
	if err != nil {
		return nil, fmt.Errorf("reading the pod's service account: %w", err)
	}
	return text, nil
}
