package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"freshet/client"
	"freshet/test/cluster/load"
)

// Probe produces to topics all the time, each call with a second of patience, and
// knows how long each topic took nothing: that is the time without an owner, as
// clients see it. Its lock guards the times.
type Probe struct {
	topics  []string
	running sync.WaitGroup
	stop    context.CancelFunc

	mu      sync.Mutex
	last    map[string]time.Time
	failure map[string]error // the last since last
	longest Gap
}

// Gap is a time in which a topic took nothing.
type Gap struct {
	Topic  string
	Began  time.Time
	Length time.Duration
	Said   error // what the last call in it was told; nil when all were only slow
}

// clientsOf opens a client for each member that makes each call once.
func clientsOf(members []load.Member, token string, timeout time.Duration) ([]*client.Client, error) {
	clients := make([]*client.Client, len(members))
	for i, m := range members {
		var err error
		clients[i], err = client.New(client.Config{
			BaseURL: m.URL, TokenSource: client.StaticToken(token), Timeout: timeout, MaxAttempts: 1,
			Transport: &http.Transport{MaxIdleConnsPerHost: 100},
		})
		if err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// NewProbe makes topics, enough of them that every member owns some.
func NewProbe(ctx context.Context, members []load.Member, token string, topics int) (*Probe, error) {
	clients, err := clientsOf(members, token, 20*time.Second)
	if err != nil {
		return nil, err
	}
	p := &Probe{last: map[string]time.Time{}, failure: map[string]error{}}
	for i := range topics {
		name := fmt.Sprintf("probe-%d", i)
		err := clients[0].Topic(name).Create(ctx, client.TopicOptions{})
		if err != nil && !errors.Is(err, client.ErrConflict) {
			return nil, fmt.Errorf("making topic %s: %w", name, err)
		}
		p.topics = append(p.topics, name)
	}
	return p, nil
}

// Start begins to produce, through these members.
func (p *Probe) Start(ctx context.Context, members []load.Member, token string) error {
	clients, err := clientsOf(members, token, time.Second)
	if err != nil {
		return err
	}
	ctx, p.stop = context.WithCancel(ctx)
	for _, topic := range p.topics {
		p.running.Go(func() {
			for ctx.Err() == nil {
				c := clients[rand.IntN(len(clients))]
				_, err := c.Topic(topic).Produce(ctx, client.Message{Value: []byte("probe")})
				p.note(topic, err)
				pause(ctx, 10*time.Millisecond)
			}
		})
	}
	return nil
}

// note writes down what a call to a topic was told.
func (p *Probe) note(topic string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failure[topic] = err
		return
	}
	now := time.Now()
	if last, ok := p.last[topic]; ok && now.Sub(last) > p.longest.Length {
		p.longest = Gap{Topic: topic, Began: last, Length: now.Sub(last), Said: p.failure[topic]}
	}
	p.last[topic] = now
	delete(p.failure, topic)
}

// Await waits until every topic has taken something after a moment.
func (p *Probe) Await(ctx context.Context, after time.Time) error {
	for {
		p.mu.Lock()
		all := true
		for _, topic := range p.topics {
			all = all && p.last[topic].After(after)
		}
		p.mu.Unlock()
		if all {
			return nil
		}
		if !pause(ctx, 5*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// Longest is the longest time in which a topic took nothing, since it was last asked for.
func (p *Probe) Longest() Gap {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := p.longest
	p.longest = Gap{}
	return longest
}

// Stop ends the probe.
func (p *Probe) Stop() {
	p.stop()
	p.running.Wait()
}
