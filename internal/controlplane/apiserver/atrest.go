package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/store"
)

// Sealer encrypts data and authenticates associated data: Open fails if the associated data differs
// from that of Seal.
type Sealer interface {
	Seal(plaintext, associatedData []byte) ([]byte, error)
	Open(sealed, associatedData []byte) ([]byte, error)
	// Stale reports whether the data should be encrypted again with a newer key.
	Stale(sealed []byte) bool
}

// AtRest encrypts the resources that contain secrets before they are written to etcd.
func AtRest(sealer Sealer, definitions []store.Definition) value.ResourceTransformers {
	return atRest{sealer, kindsOf(definitions)}
}

type atRest struct {
	sealer Sealer
	kinds  kinds
}

// TransformerForResource implements value.ResourceTransformers.
func (a atRest) TransformerForResource(resource schema.GroupResource) value.Transformer {
	if a.kinds.info(resource.Resource).Secret {
		return sealingTransformer{a.sealer}
	}
	return budget.Unchanged{}
}

// sealingTransformer binds each value to its key, so that values cannot be swapped in etcd.
type sealingTransformer struct{ sealer Sealer }

func (s sealingTransformer) TransformFromStorage(_ context.Context, data []byte,
	dataCtx value.Context,
) ([]byte, bool, error) {
	plain, err := s.sealer.Open(data, dataCtx.AuthenticatedData())
	if err != nil {
		return nil, false, fmt.Errorf("decrypting a resource: %w", err)
	}
	return plain, s.sealer.Stale(data), nil
}

func (s sealingTransformer) TransformToStorage(_ context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	return s.sealer.Seal(data, dataCtx.AuthenticatedData())
}
