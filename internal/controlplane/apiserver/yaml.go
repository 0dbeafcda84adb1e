package apiserver

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of a YAML body. Decoding YAML takes about fifty times as long as JSON, and aliases let a
// small body expand to a very large one.
const (
	maxYAML      = 512 << 10
	maxYAMLNodes = 50_000 // with aliases expanded
	maxYAMLText  = 4 << 20
)

// checkYAML rejects a YAML body that would take long to decode or expand too much. Kubernetes
// clients send JSON, even with a YAML content type; the size limit of every body is enough for
// that.
func checkYAML(r *http.Request, body []byte) error {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // invalid media types are rejected later
	if mediaType != runtime.ContentTypeYAML && mediaType != string(types.ApplyYAMLPatchType) {
		return nil
	}
	if len(body) > maxYAML {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("YAML body has %d bytes; the limit is %d; send JSON instead", len(body), maxYAML))
	}
	if isSimpleYAML(body) {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(body, &document); err != nil {
		return apierrors.NewBadRequest("body is not valid YAML: " + err.Error())
	}
	size := &yamlSize{costs: map[*yaml.Node]yamlCost{}}
	if _, err := size.of(&document, 0); err != nil {
		return apierrors.NewBadRequest("YAML body is too complex: " + err.Error())
	}
	return nil
}

// isSimpleYAML reports whether a body has no aliases and little nesting. It is a quick scan; the exact
// check costs as much as decoding.
func isSimpleYAML(body []byte) bool {
	depth := 0
	for _, c := range body {
		switch c {
		case '*', '&':
			return false
		case '[', '{':
			if depth++; depth > maxNesting {
				return false
			}
		case ']', '}':
			depth--
		}
	}
	return !bytes.Contains(body, []byte("- - - ")) && !bytes.Contains(body, []byte("? ? ? "))
}

// yamlCost is the size of a part of a document with aliases expanded.
type yamlCost struct{ nodes, text int64 }

// yamlSize computes the cost of each node once.
type yamlSize struct {
	costs map[*yaml.Node]yamlCost
}

func (s *yamlSize) of(node *yaml.Node, depth int) (yamlCost, error) {
	if depth > maxNesting {
		return yamlCost{}, errNesting
	}
	if cost, ok := s.costs[node]; ok {
		return cost, nil
	}
	cost := yamlCost{1, int64(len(node.Value))}
	parts := node.Content
	if node.Kind == yaml.AliasNode {
		parts = []*yaml.Node{node.Alias}
	}
	for _, part := range parts {
		inner, err := s.of(part, depth+1)
		if err != nil {
			return yamlCost{}, err
		}
		cost.nodes += inner.nodes
		cost.text += inner.text
		if cost.nodes > maxYAMLNodes || cost.text > maxYAMLText {
			return yamlCost{}, errAliases
		}
	}
	s.costs[node] = cost
	return cost, nil
}

var errAliases = fmt.Errorf("more than %d values or %d bytes of text with aliases expanded",
	maxYAMLNodes, maxYAMLText)
