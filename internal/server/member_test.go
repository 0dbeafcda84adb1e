package server

import "testing"

func TestKafkaAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ listen, advertised, want string }{
		{"off", "", ""},
		{"off", "kafka.example.com", ""},
		{"127.0.0.1:9092", "", "127.0.0.1:9092"},
		{"broker-1.example.com:9093", "", "broker-1.example.com:9093"},
		{"0.0.0.0:9093", "", "member-1.example.com:9093"},
		{"[::]:9093", "", "member-1.example.com:9093"},
		{":9093", "", "member-1.example.com:9093"},
		{"0.0.0.0:9093", "kafka.example.com", "kafka.example.com:9093"},
		{"0.0.0.0:9093", "kafka.example.com:19093", "kafka.example.com:19093"},
		{"0.0.0.0:9093", "2001:db8::1", "[2001:db8::1]:9093"},
		{"192.0.2.1:9093", "kafka.example.com", "kafka.example.com:9093"},
	} {
		if got := kafkaAddress(tc.listen, tc.advertised, "member-1.example.com:7443"); got != tc.want {
			t.Errorf("listener %s, advertised %q: got %q, want %q", tc.listen, tc.advertised, got, tc.want)
		}
	}
}
