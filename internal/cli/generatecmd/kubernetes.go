package generatecmd

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/generatecmd/chart"
	"freshet/internal/cli/output"
)

// maxValues bounds the size of the file of --values.
const maxValues = 1 << 20

// dnsLabel is the syntax of names that become parts of host names.
var dnsLabel = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

// manifests has the flags of `freshet generate kubernetes`.
type manifests struct {
	name, namespace, baseURL, image, file string
	ensemble                              bool
}

func newKubernetes(env *command.Env) *cobra.Command {
	var m manifests
	var format output.Format
	cmd := &cobra.Command{
		Use:   "kubernetes",
		Short: "Generate Kubernetes manifests for one server or an ensemble",
		Long: `Generate Kubernetes manifests for one server, or for an ensemble of three members:
StatefulSet, services, network policy, disruption budget, and a job that creates the
certificates and secrets of the ensemble once.

They are rendered from the templates of the Helm chart, deploy/helm/freshet in the source.
--values takes a file with the chart's values (docs/reference/helm-values.md); flags take
precedence over it. The namespace must exist.`,
		Example: `  # one server; then kubectl apply -f freshet.yaml
  freshet generate kubernetes > freshet.yaml

  # an ensemble of three members
  freshet generate kubernetes --ensemble --namespace prod > freshet.yaml

  # with the address for clients, and an image of your own registry
  freshet generate kubernetes --ensemble --base-url https://stream.example.com \
    --image registry.example.com/freshet:0.2.0 > freshet.yaml

  # with other values of the chart
  echo '{persistence: {size: 100Gi}}' > values.yaml
  freshet generate kubernetes --values values.yaml > freshet.yaml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := m.check(cmd); err != nil {
				return err
			}
			values, err := m.values()
			if err != nil {
				return err
			}
			text, err := chart.Render(chart.Release{Name: m.name, Namespace: m.namespace, Service: "freshet"}, values)
			if err != nil {
				return err
			}
			if format != output.FormatYAML {
				return printList(env, format, text)
			}
			return env.Printf("# Kubernetes manifests of Freshet, from the Helm chart. Create the namespace %s "+
				"first, then:\n"+
				"# kubectl apply -f FILE\n%s", m.namespace, text)
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.name, "name", "freshet", "`name` of the installation, and of its objects")
	f.StringVar(&m.namespace, "namespace", "freshet", "`name` of the Kubernetes namespace")
	f.BoolVar(&m.ensemble, "ensemble", false, "three members instead of one server")
	f.StringVar(&m.baseURL, "base-url", "", "`URL` at which clients reach it (default: the service in Kubernetes)")
	f.StringVar(&m.image, "image", "", "`image` with the program at /freshet (default "+chart.Image()+")")
	f.StringVar(&m.file, "values", "", "`file` with values of the Helm chart (YAML)")
	output.AddFlag(f, &format, output.FormatYAML, output.FormatJSON)
	return cmd
}

// printList prints manifests as one object of the kind List, which kubectl reads.
func printList(env *command.Env, format output.Format, manifests string) error {
	items := []any{}
	for _, text := range strings.Split(manifests, "\n---\n") {
		var item any
		if err := yaml.Unmarshal([]byte(text), &item); err != nil {
			return fmt.Errorf("reading the rendered manifests: %w", err)
		}
		if item != nil {
			items = append(items, item)
		}
	}
	return output.Value(env.Out, format, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

// check rejects flags that would make invalid names or lines.
func (m *manifests) check(cmd *cobra.Command) error {
	for _, flag := range []struct{ name, value string }{{"name", m.name}, {"namespace", m.namespace}} {
		if !dnsLabel.MatchString(flag.value) {
			return command.Usagef(cmd, "--%s takes up to 40 lowercase letters, digits and '-', and begins with a "+
				"letter, not %q", flag.name, flag.value)
		}
	}
	if m.image != "" {
		return check(cmd, "image", m.image)
	}
	return nil
}

// values returns the values of the file, changed by the flags.
func (m *manifests) values() (map[string]any, error) {
	values := map[string]any{}
	if m.file != "" {
		text, err := readValues(m.file)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(text, &values); err != nil {
			return nil, errs.Newf(errs.Invalid, "%s: %w", m.file, err)
		}
		if values == nil { // a file with comments only
			values = map[string]any{}
		}
	}
	if m.ensemble {
		values["members"] = 3
	}
	if m.baseURL != "" {
		values["baseURL"] = m.baseURL
	}
	if m.image != "" {
		image, ok := values["image"].(map[string]any)
		if !ok {
			image = map[string]any{}
			values["image"] = image
		}
		// The colon of a port is followed by a slash.
		repository, tag, found := cutLast(m.image, ":")
		if !found || strings.Contains(tag, "/") {
			return nil, errs.Newf(errs.Invalid, "image %s has no tag; write %s:TAG", m.image, m.image)
		}
		image["repository"], image["tag"] = repository, tag
	}
	return values, nil
}

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

func readValues(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, errs.Newf(errs.NotFound, "reading the values: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxValues+1))
	if err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}
	if len(text) > maxValues {
		return nil, errs.Newf(errs.TooLarge, "%s has more than %d bytes; it is no file of values", file, maxValues)
	}
	return text, nil
}
