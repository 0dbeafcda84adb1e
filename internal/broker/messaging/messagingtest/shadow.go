package messagingtest

import (
	"context"
	"fmt"

	"freshet/internal/storage/engine"
)

// ShadowTopics creates the namespace tenant/namespace as earlier versions did, which did not check whether the names of
// existing topics begin with its name.
func ShadowTopics(ctx context.Context, eng engine.Engine, namespace string) error {
	journal, err := eng.Journal(ctx, "messaging")
	if err != nil {
		return err
	}
	last, err := journal.Last(ctx)
	if err != nil {
		return err
	}
	_, err = journal.Append(ctx, last, fmt.Appendf(nil, `{"f":1,"op":"namespace","name":%q,"policies":{}}`, namespace))
	return err
}
