package chaos

import (
	"context"
	"errors"
	"time"
)

// stepDownEvery is the interval between two leader changes.
const stepDownEvery = 300 * time.Millisecond

// MoveLeaders makes random members give up their leadership of etcd and of the log, with
// the command that operators use. All members keep running.
func (g *Ensemble) MoveLeaders(name string, hold time.Duration) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(ctx context.Context) (func(context.Context) error, error) {
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			moved, last := 0, errors.New("no step-down was attempted")
			for ctx.Err() == nil {
				at, member := g.randomPair()
				err := g.commandAt(context.WithoutCancel(ctx), at, "ensemble", "step-down", member.Name)
				if err != nil {
					last = err // an election may take longer than the command's timeout
				} else {
					moved++
				}
				pause(ctx, stepDownEvery)
			}
			if moved == 0 {
				ended <- last
			}
			close(ended)
		}()
		return func(context.Context) error {
			stop()
			return <-ended
		}, nil
	}}
}
