package messaging

import (
	"testing"

	"freshet/internal/base/lru"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
)

// TestContractAllocations checks that admitting a message allocates nothing if its topic has no contract.
func TestContractAllocations(t *testing.T) {
	limits := Limits{}.withDefaults()
	pool := workpool.New()
	a := &admission{
		limits: &limits, pool: pool, checkers: newSchemaCache(1), contracts: newContracts(pool),
		decoders: lru.New[decoderKey, *filter.Schema](1),
	}
	m := &Message{Payload: []byte(`{"total":1}`), Key: "k", SchemaVersion: NoSchema}
	ctx, to := t.Context(), &topic{}
	allocations := func(contract string) float64 {
		r := limits.rules(nil, &Policies{Kafka: map[string]string{configRequire: contract}})
		return testing.AllocsPerRun(100, func() {
			if _, err := a.admitOne(ctx, to, &r, m); err != nil {
				t.Fatal(err)
			}
		})
	}
	if n := allocations(""); n > 0 {
		t.Errorf("without a contract: %.0f allocations", n)
	}
	if n := allocations("payload.total > 0"); n == 0 || n > 50 {
		t.Errorf("with a contract: %.0f allocations, want few", n)
	}
}
