package access

import (
	"context"
	"sync"
	"time"
)

// Limits on the cost of conditions, in the units of cel-go: about one per comparison. The
// conditions of one principal must not slow down the requests of others.
const (
	// MaxCEL is the maximum size of an expression in bytes.
	MaxCEL = 4 << 10
	// maxExpressionCost is the maximum cost of one evaluation. It is estimated when the
	// binding is created and measured when the condition is evaluated.
	maxExpressionCost = 1000
	// decisionCost limits the conditions of one decision. listCost limits those of all
	// decisions of a request with many decisions, in each budgetWindow; only watches last
	// longer than one window.
	decisionCost = 20_000
	listCost     = 200_000
	budgetWindow = 10 * time.Second
)

// budget limits the cost of conditions in each window of time.
type budget struct {
	units int64 // per window

	mu    sync.Mutex // protects the fields below
	left  int64
	until time.Time // end of the window
}

// available reports whether the budget of the current window is not used up.
func (b *budget) available() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.After(b.until) {
		b.left, b.until = b.units, now.Add(budgetWindow)
	}
	return b.left > 0
}

func (b *budget) spend(cost int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= cost
}

type budgetKey struct{}

// WithBudget adds one budget for all decisions of a request to the context, for requests
// that check each item. Without it each decision has its own budget. A budget that the
// context already has stays.
func WithBudget(ctx context.Context) context.Context {
	if _, ok := ctx.Value(budgetKey{}).(*budget); ok {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, &budget{units: listCost})
}

// budgetOf returns the request's budget, or a new one for one decision.
func budgetOf(ctx context.Context) *budget {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok {
		return b
	}
	return &budget{units: decisionCost}
}
