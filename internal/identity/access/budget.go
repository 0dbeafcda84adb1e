package access

import (
	"context"
	"sync"
	"time"
)

// Bounds on what conditions may cost, in the units of cel-go: about one per
// comparison. A decision on one's own conditions must not be felt by others.
const (
	// MaxCEL is how many bytes an expression may have.
	MaxCEL = 4 << 10
	// maxExpressionCost is what one evaluation may cost, by estimate when the
	// binding is made and by count when it is evaluated.
	maxExpressionCost = 1000
	// decisionCost is what the conditions of one decision may cost, listCost
	// those of all decisions of a request that asks for many, in each
	// budgetWindow; only watches last longer than one.
	decisionCost = 20_000
	listCost     = 200_000
	budgetWindow = 10 * time.Second
)

// budget is what is left to spend on conditions.
type budget struct {
	units int64 // in each window

	mu    sync.Mutex // guards what follows
	left  int64
	until time.Time // the window's end
}

// open reports whether there is something left.
func (b *budget) open() bool {
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

// WithBudget gives a request one budget for all decisions that it asks for, as
// those need that decide item by item. Without it each decision has its own.
func WithBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, &budget{units: listCost})
}

// budgetOf finds the request's budget.
func budgetOf(ctx context.Context) *budget {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok {
		return b
	}
	return &budget{units: decisionCost}
}
