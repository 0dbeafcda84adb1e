package config

import "time"

// Default returns the configuration of `freshet serve` without a file.
func Default() *Config {
	return &Config{
		DataDir:        "freshet-data",
		HTTP:           "127.0.0.1:8080",
		HTTPS:          "127.0.0.1:8443",
		Ops:            "127.0.0.1:8081",
		Domain:         "freshet.localhost",
		DefaultCluster: "default/default",
		Etcd: Etcd{
			Prefix:             "/freshet",
			Quota:              4 << 30,
			CompactionInterval: Duration(5 * time.Minute),
		},
		Pools: defaultPools(),
		Limits: Limits{
			Connections:      20_000,
			HeaderSize:       64 << 10,
			ResourceBody:     3 << 20,
			MessageBody:      5 << 20,
			ReadsInFlight:    400,
			WritesInFlight:   200,
			RequestsInFlight: 20_000,
			BodyMemory:       128 << 20,
			UnpackMemory:     128 << 20,
			WaitingConsumers: 20_000,
			TokenRate:        10,
			TokenBurst:       100,
		},
		Quotas: defaultQuotas(),
		Timeouts: Timeouts{
			ReadHeader: Duration(10 * time.Second),
			ReadBody:   Duration(60 * time.Second),
			WriteBody:  Duration(60 * time.Second),
			Idle:       Duration(120 * time.Second),
			ConsumeMax: Duration(30 * time.Second),
			Drain:      Duration(10 * time.Second),
		},
		Tokens: Tokens{
			Lifetime:    Duration(24 * time.Hour),
			KeyRotation: Duration(30 * 24 * time.Hour),
		},
		Admin:         Admin{Organization: "default", ServiceAccount: "admin"},
		Organizations: Organizations{AutoCreate: true},
		CORS:          CORS{Origins: []string{"*"}},
		Log:           Log{Level: "info", Format: "text", Access: AccessAll, AccessRate: 100},
		Audit:         Audit{Path: "audit.log", MaxSize: 100 << 20, Keep: 5},
		Backup:        Backup{Every: Duration(24 * time.Hour), Keep: 7},
		Kafka:         defaultKafka(),
		SignIn:        defaultSignIn(),
		Members:       Members{Bundle: "members"},
	}
}

func defaultPools() []Pool {
	return []Pool{{
		Name:      "local",
		Namespace: "default",
		Type:      "generic",
		Members:   []PoolMember{{Name: "local", Location: "local", Engine: EnginePebble}},
	}}
}
