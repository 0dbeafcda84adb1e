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

// Bounds of a body in YAML. To read YAML takes about fifty times as long as JSON,
// and aliases let a small body stand for a very large one.
const (
	maxYAML      = 512 << 10
	maxYAMLNodes = 50_000 // with what aliases stand for
	maxYAMLText  = 4 << 20
)

// checkYAML refuses a body in YAML that would take long to read, or become large.
// Clients of Kubernetes send JSON, also where they say YAML; that is bounded by
// the size of every body.
func checkYAML(r *http.Request, body []byte) error {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // what is no type is refused later
	if mediaType != runtime.ContentTypeYAML && mediaType != string(types.ApplyYAMLPatchType) {
		return nil
	}
	if len(body) > maxYAML {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("a body in YAML has %d bytes, and the limit is %d; send JSON instead", len(body), maxYAML))
	}
	if isPlain(body) {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(body, &document); err != nil {
		return apierrors.NewBadRequest("the body is not valid YAML: " + err.Error())
	}
	size := &yamlSize{known: map[*yaml.Node]yamlCost{}}
	if _, err := size.of(&document, 0); err != nil {
		return apierrors.NewBadRequest("the body in YAML " + err.Error())
	}
	return nil
}

// isPlain says that a body holds no alias and is nested little, at a glance: a
// closer look costs as much as reading it.
func isPlain(body []byte) bool {
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

// yamlCost is what a part of a document becomes when aliases are written out.
type yamlCost struct{ nodes, text int64 }

// yamlSize adds costs up, of each part once.
type yamlSize struct {
	known map[*yaml.Node]yamlCost
}

func (s *yamlSize) of(node *yaml.Node, depth int) (yamlCost, error) {
	if depth > maxNesting {
		return yamlCost{}, errNesting
	}
	if cost, ok := s.known[node]; ok {
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
	s.known[node] = cost
	return cost, nil
}

var errAliases = fmt.Errorf("stands for more than %d values or %d bytes of text, with its aliases written out",
	maxYAMLNodes, maxYAMLText)
