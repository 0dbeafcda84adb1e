package chaos

import (
	"context"
	"errors"
	"time"
)

// stepDownEvery is the time between two moves of leaders.
const stepDownEvery = 300 * time.Millisecond

// MoveLeaders has one member after another, by chance, give up what it leads of etcd and
// of the log, as somebody would who runs the group. No member is gone meanwhile.
func (g *Group) MoveLeaders(name string, hold time.Duration) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(ctx context.Context) (func(context.Context) error, error) {
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			moved, last := 0, errors.New("nobody was asked")
			for ctx.Err() == nil {
				at, member := g.two()
				if err := g.commandAt(context.WithoutCancel(ctx), at, "cluster", "step-down", member.Name); err != nil {
					last = err // elections may take longer than the command has patience
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
