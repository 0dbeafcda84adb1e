package opscmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

const orderSchema = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
  {"name": "id", "type": "string"},
  {"name": "customer", "type": "string"},
  {"name": "country", "type": "string"},
  {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "Item", "fields": [
    {"name": "article", "type": "string"}, {"name": "quantity", "type": "int"}, {"name": "cents", "type": "long"}]}}},
  {"name": "total", "type": "long"},
  {"name": "at", "type": "long"}]}`

const parcelSchema = `{"type": "record", "name": "Shipment", "namespace": "shop", "fields": [
  {"name": "order", "type": "string"},
  {"name": "carrier", "type": "string"},
  {"name": "at", "type": "long"}]}`

// shop produces orders, and its warehouse consumes them and produces shipments.
type shop struct {
	*demo
	conn  *client.Client
	codec *schemas.Codec

	taken, shipped atomic.Int64
}

// createTopics creates the missing topics, subscriptions and schemas.
func (s *shop) createTopics(ctx context.Context) error {
	registry := schemas.New(s.conn)
	s.codec = schemas.NewCodec(registry)
	for topic, schema := range map[string]string{demoOrders: orderSchema, demoParcels: parcelSchema} {
		if err := s.conn.Topic(topic).Create(ctx, client.TopicOptions{Partitions: 3}); err != nil &&
			!errors.Is(err, client.ErrConflict) {
			return fmt.Errorf("creating topic %s: %w", topic, err)
		}
		if _, err := registry.Register(ctx, schemas.SubjectForValue(topic),
			schemas.Schema{Type: schemas.Avro, Text: schema}); err != nil {
			return fmt.Errorf("registering the schema of %s: %w", topic, err)
		}
	}
	for _, name := range []string{"warehouse", "billing"} {
		err := s.conn.Topic(demoOrders).Subscription(name).Create(ctx,
			client.SubscriptionOptions{From: client.Earliest})
		if err != nil && !errors.Is(err, client.ErrConflict) {
			return fmt.Errorf("creating subscription %s: %w", name, err)
		}
	}
	return nil
}

// trade runs the shop and the warehouse for the duration of --for, or until an interrupt.
func (s *shop) trade(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.period)
	defer cancel()
	shipping := make(chan error, 1)
	go func() { shipping <- s.ship(ctx) }()
	err := s.sell(ctx)
	cancel()
	return errors.Join(err, <-shipping,
		s.printf("%d orders were taken, %d were shipped", s.taken.Load(), s.shipped.Load()))
}

// ended reports whether there is no error, or only the end of the run.
func ended(ctx context.Context, err error) bool { return err == nil || ctx.Err() != nil }

func (s *shop) sell(ctx context.Context) error {
	progress := s.env.Progress()
	defer progress.Clear()
	producer := s.conn.Topic(demoOrders).NewProducer(client.ProducerOptions{Name: "storefront"})
	ticker := time.NewTicker(time.Second / time.Duration(s.rate))
	defer ticker.Stop()
	for {
		order := newOrder()
		value, err := s.encode(ctx, demoOrders, order)
		if err == nil {
			err = producer.Send(ctx,
				client.Message{
					Value: value, Key: fmt.Sprint(order["customer"]), EventTime: time.Now(),
					Properties: map[string]string{"source": "storefront"},
				},
				func(_ client.Produced, err error) {
					if err == nil {
						s.taken.Add(1)
					}
				})
		}
		if !ended(ctx, err) {
			return fmt.Errorf("taking an order: %w", err)
		}
		progress.Printf("%d orders, %d shipped", s.taken.Load(), s.shipped.Load())
		select {
		case <-ctx.Done():
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return producer.Close(closing)
		case <-ticker.C:
		}
	}
}

// ship produces a shipment for every order.
func (s *shop) ship(ctx context.Context) error {
	parcels := s.conn.Topic(demoParcels)
	for order, err := range s.conn.Topic(demoOrders).Subscription("warehouse").Messages(ctx) {
		if err != nil {
			if ended(ctx, err) {
				return nil
			}
			return fmt.Errorf("reading orders: %w", err)
		}
		text, _, err := s.codec.DecodeJSON(ctx, order.Value)
		var bought struct {
			ID string `json:"id"`
		}
		if err == nil {
			err = json.Unmarshal(text, &bought)
		}
		var value []byte
		if err == nil {
			value, err = s.encode(ctx, demoParcels,
				map[string]any{
					"order": bought.ID, "carrier": pick("post", "courier", "bicycle"),
					"at": time.Now().UnixMilli(),
				})
		}
		if err == nil {
			_, err = parcels.Produce(ctx, client.Message{Value: value, Key: bought.ID})
		}
		if !ended(ctx, err) {
			return fmt.Errorf("shipping an order: %w", err)
		}
		if err != nil {
			return nil // the run has ended; the order is redelivered
		}
		order.Ack()
		s.shipped.Add(1)
	}
	return nil
}

func (s *shop) encode(ctx context.Context, topic string, value map[string]any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return s.codec.EncodeJSON(ctx, schemas.SubjectForValue(topic), text)
}

func pick(words ...string) string { return words[rand.IntN(len(words))] } //nolint:gosec // demo data

// newOrder returns a random order.
func newOrder() map[string]any {
	var items []map[string]any
	total := 0
	for range 1 + rand.IntN(3) { //nolint:gosec // demo data
		quantity, cents := 1+rand.IntN(3), 299+100*rand.IntN(80) //nolint:gosec // demo data
		items = append(items, map[string]any{
			"article":  pick("teapot", "cup", "saucer", "kettle", "tin", "spoon"),
			"quantity": quantity, "cents": cents,
		})
		total += quantity * cents
	}
	return map[string]any{
		"id":       fmt.Sprintf("%d-%06d", time.Now().Unix(), rand.IntN(1_000_000)), //nolint:gosec // demo data
		"customer": fmt.Sprintf("customer-%d", 1+rand.IntN(50)),                     //nolint:gosec // demo data
		"country":  pick("DE", "FR", "GB", "JP", "NL", "US"),
		"items":    items,
		"total":    total,
		"at":       time.Now().UnixMilli(),
	}
}
