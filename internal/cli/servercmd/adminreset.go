package servercmd

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
	"freshet/internal/config"
)

// reset has the flags and the connection of one reset-credentials command.
type reset struct {
	dataDir, server, organization, account, out string
	timeout                                     time.Duration

	client *http.Client
	base   *url.URL
	token  string
}

func newResetCredentials() *cobra.Command {
	defaults := config.Default()
	var r reset
	var format output.Format
	cmd := &cobra.Command{
		Use:   "reset-credentials",
		Short: "Create new credentials for the administrator or another service account",
		Long: `Create new credentials for a service account, by default that of the system
administrator. The old client secret and all access tokens that were issued with it become
invalid immediately; API keys of the account still work. If the administrator's account
was deleted, it is created again.

The server must be running. The command uses the token in its data directory, and the
address in the kubeconfig there.`,
		Example: `  # replace lost credentials of the administrator, in freshet-data/admin.json
  freshet admin reset-credentials

  # of another server
  freshet admin reset-credentials --data-dir freshet-data --server $SERVER

  # replace leaked credentials of a service account
  freshet admin reset-credentials --organization acme --service-account ci --out ci.json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.out == "" {
				if r.organization != defaults.Admin.Organization || r.account != defaults.Admin.ServiceAccount {
					return command.Usagef(cmd, "--out is required to write the credentials of %s/%s",
						r.organization, r.account)
				}
				r.out = filepath.Join(r.dataDir, "admin.json")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
			defer cancel()
			if err := r.run(ctx); err != nil {
				return err
			}
			return command.Result{
				Kind: "serviceaccount", Name: r.organization + "/" + r.account, Action: "reset", File: r.out,
			}.Print(cmd.OutOrStdout(), format, "new credentials of %s/%s are in %s", r.organization, r.account, r.out)
		},
	}
	f := cmd.Flags()
	command.AddResultFlag(f, &format)
	f.StringVar(&r.dataDir, "data-dir", dataDirectory(), "data `directory` of the server")
	f.StringVar(&r.server, "server", "", "base `URL` of the server (default: from the data directory's kubeconfig)")
	f.StringVar(&r.organization, "organization", defaults.Admin.Organization, "`organization` of the service account")
	f.StringVar(&r.account, "service-account", defaults.Admin.ServiceAccount, "`name` of the service account")
	f.StringVar(&r.out, "out", "", "`file` to write (default admin.json in the data directory)")
	f.DurationVar(&r.timeout, "timeout", 30*time.Second, "how long to wait for the server")
	return cmd
}

func (r *reset) run(ctx context.Context) error {
	if err := r.connect(); err != nil {
		return err
	}
	before, err := r.get(ctx)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		err = r.create(ctx)
	case err == nil:
		err = r.requestReset(ctx)
	}
	if err != nil {
		return err
	}
	credentials, err := r.awaitCredentials(ctx, before.Status.PrivateKeyData)
	if err != nil {
		return err
	}
	return contexts.WritePrivate(r.out, credentials)
}

// connect reads the token, the address and the certificate authority of the server.
func (r *reset) connect() error {
	token, err := os.ReadFile(filepath.Join(r.dataDir, "admin.token"))
	if err != nil {
		return errs.Newf(errs.NotFound, "directory %s is not the data directory of a server: %w", r.dataDir, err)
	}
	r.token = strings.TrimSpace(string(token))
	if r.server == "" {
		address := "http://" + config.Default().HTTP
		// A server without HTTPS writes no kubeconfig.
		if file, err := contexts.ReadCredentials(filepath.Join(r.dataDir, "admin.json")); err == nil {
			address = file.Server()
		}
		if r.server, err = serverFromKubeconfig(filepath.Join(r.dataDir, "kubeconfig"), address); err != nil {
			return err
		}
	}
	if r.base, err = url.Parse(r.server); err != nil || r.base.Host == "" {
		return errs.Newf(errs.Invalid, "--server takes a URL, not %q", r.server)
	}
	if err := contexts.CheckAddress(r.dataDir, r.server); err != nil {
		return err
	}
	r.client, err = httpClient(generatedAuthority(r.dataDir))
	return err
}

// generatedAuthority returns the file of the certificate authority that the server generated, ""
// if it uses another certificate.
func generatedAuthority(dataDir string) string {
	file := filepath.Join(dataDir, "tls", "ca.crt")
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// serverFromKubeconfig reads the server's address from the kubeconfig that it wrote. It returns missing
// if the file does not exist.
func serverFromKubeconfig(path, missing string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return missing, nil
	}
	if err != nil {
		return "", err
	}
	var file struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Clusters) == 0 ||
		file.Clusters[0].Cluster.Server == "" {
		return "", errs.Newf(errs.Invalid, "kubeconfig %s names no server; set one with --server", path)
	}
	return file.Clusters[0].Cluster.Server, nil
}

func (r *reset) get(ctx context.Context) (v1alpha1.ServiceAccount, error) {
	return r.call(ctx, http.MethodGet, "/"+url.PathEscape(r.account), "", nil)
}

func (r *reset) create(ctx context.Context) error {
	defaults := config.Default().Admin
	if r.organization != defaults.Organization || r.account != defaults.ServiceAccount {
		return errs.Newf(errs.NotFound, "service account %s does not exist in organization %s", r.account,
			r.organization)
	}
	_, err := r.call(ctx, http.MethodPost, "", "application/json", map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ServiceAccount",
		"metadata": map[string]any{
			"name":        r.account,
			"annotations": map[string]string{v1alpha1.AnnotationServiceAccountRole: v1alpha1.ServiceAccountRoleAdmin},
		},
	})
	return err
}

// requestReset requests new credentials, which ends the old ones.
func (r *reset) requestReset(ctx context.Context) error {
	_, err := r.call(ctx, http.MethodPatch, "/"+url.PathEscape(r.account)+"/status", "application/merge-patch+json",
		map[string]any{"status": map[string]any{"privateKeyType": v1alpha1.PrivateKeyTypeReset}})
	return err
}

const resetPoll = 50 * time.Millisecond

func (r *reset) awaitCredentials(ctx context.Context, before string) ([]byte, error) {
	for {
		account, err := r.get(ctx)
		if err != nil {
			return nil, err
		}
		if data := account.Status.PrivateKeyData; data != "" && data != before {
			return base64.StdEncoding.DecodeString(data)
		}
		if retry.Sleep(ctx, resetPoll) != nil {
			return nil, fmt.Errorf("waiting for the new credentials: %w", ctx.Err())
		}
	}
}

func (r *reset) call(ctx context.Context, method, path, contentType string, body any) (v1alpha1.ServiceAccount, error) {
	var account v1alpha1.ServiceAccount
	var payload io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return account, err
		}
		payload = bytes.NewReader(text)
	}
	target := r.base.JoinPath("apis", "cloud.vendor.io", "v1alpha1", "namespaces", url.PathEscape(r.organization),
		"serviceaccounts", path)
	request, err := http.NewRequestWithContext(ctx, method, target.String(), payload)
	if err != nil {
		return account, err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return account, errs.Newf(errs.Unavailable, "server cannot be reached; it must be running for this command: %w",
			err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return account, errs.Newf(errs.Unavailable, "reading the response: %w", err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return account, responseError(response, text)
	}
	return account, json.Unmarshal(text, &account)
}

// responseError returns the error of a response with a Kubernetes Status.
func responseError(response *http.Response, text []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = response.Status
	}
	kind := errs.Unavailable
	switch response.StatusCode {
	case http.StatusNotFound:
		kind = errs.NotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = errs.Denied
	case http.StatusConflict:
		kind = errs.Conflict
	}
	return errs.Newf(kind, "server rejected the request: %s", status.Message)
}
