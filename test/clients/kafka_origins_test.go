package clients_test

import (
	"testing"

	"freshet/test/origins"
)

// testFranzOrigins reads many topics with one consumer, with several fetch limits, and while producers write.
func testFranzOrigins(t *testing.T, s *kafkaServer) {
	t.Helper()
	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		if err := s.origins.Franz(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		live, err := origins.Create(t.Context(), []string{s.Kafka}, s.Token, "origins-live")
		if err != nil {
			t.Fatal(err)
		}
		if err := live.FranzLive(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
