package messaging

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/errs"
)

// Names of the configurations of a share group of the Kafka protocol (docs/spec/stream.md#share-groups).
const (
	configShareReset     = "share.auto.offset.reset"
	configShareLock      = "share.record.lock.duration.ms"
	configShareLimit     = "share.delivery.count.limit"
	configShareIsolation = "share.isolation.level"
)

// Bounds of the configurations of a share group; those of Kafka.
const (
	minShareLock  = time.Second
	maxShareLock  = time.Hour
	maxShareLimit = 100
)

// resetDuration is the prefix of a start position that is a duration before now.
const resetDuration = "by_duration:"

var groupConfigs = map[string]kafkaConfig{
	configShareReset: {"latest", ConfigString, checkReset, false},
	configShareLock: {
		"30000", ConfigInt, between(minShareLock.Milliseconds(), maxShareLock.Milliseconds()), false,
	},
	configShareLimit:     {"-1", ConfigInt, checkShareLimit, false},
	configShareIsolation: {"read_uncommitted", ConfigString, oneOf("read_uncommitted", "read_committed"), false},
}

var groupConfigDocs = map[string]string{
	configShareReset: "Where a subscription starts that the group creates: latest, earliest or by_duration: and " +
		"an ISO 8601 duration.",
	configShareLock: "How long records stay leased to a member. Unless it is set, the subscription's acknowledgement " +
		"timeout applies.",
	configShareLimit: "Deliveries before a record moves to the dead-letter topic; -1 means that the subscription's " +
		"own limit applies.",
	configShareIsolation: "Records of open transactions are never delivered, whatever the value.",
}

func checkShareLimit(value string, limits *Limits) error {
	if value == "-1" {
		return nil
	}
	if between(2, maxShareLimit)(value, limits) != nil {
		return errs.Newf(errs.Invalid, "%q is not a whole number from 2 to %d, nor -1", value, maxShareLimit)
	}
	return nil
}

func checkReset(value string, _ *Limits) error {
	_, err := parseReset(value, time.Now())
	return err
}

// parseReset returns the position of a value of configShareReset.
func parseReset(value string, now time.Time) (Position, error) {
	switch value {
	case "latest":
		return Position{Kind: Latest}, nil
	case "earliest":
		return Position{Kind: Earliest}, nil
	}
	if text, ok := strings.CutPrefix(value, resetDuration); ok {
		if ago, ok := parseISODuration(text); ok {
			return Position{Kind: AtTime, Time: now.Add(-ago)}, nil
		}
	}
	return Position{}, errs.Newf(errs.Invalid, "%q is not latest, earliest or by_duration:PnDTnHnMnS", value)
}

var isoDuration = regexp.MustCompile(
	`^P(?:(\d{1,6})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,9})M)?(?:(\d{1,10}(?:\.\d{1,9})?)S)?)?$`)

// parseISODuration parses an ISO 8601 duration of days, hours, minutes and seconds.
func parseISODuration(text string) (time.Duration, bool) {
	parts := isoDuration.FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "T") || text == "P" {
		return 0, false
	}
	total := 0.0
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if parts[i+1] != "" {
			n, _ := strconv.ParseFloat(parts[i+1], 64)
			total += n * float64(unit)
		}
	}
	if total > math.MaxInt64/2 {
		return 0, false
	}
	return time.Duration(total), true
}

// GroupConfig is the configuration of a share group.
type GroupConfig struct {
	Lease         time.Duration // 0 means that of the subscription
	MaxDeliveries int           // 0 means the limit of the subscription
	reset         string        // value of configShareReset
}

func groupConfigOf(values map[string]string) GroupConfig {
	g := GroupConfig{reset: groupConfigs[configShareReset].defaultValue}
	if value, ok := values[configShareReset]; ok {
		g.reset = value
	}
	if ms, err := strconv.ParseInt(values[configShareLock], 10, 64); err == nil {
		g.Lease = time.Duration(ms) * time.Millisecond
	}
	if n, err := strconv.Atoi(values[configShareLimit]); err == nil && n > 0 {
		g.MaxDeliveries = n
	}
	return g
}

// start returns where a subscription starts that the group creates.
func (g *GroupConfig) start() Position {
	at, err := parseReset(g.reset, time.Now())
	if err != nil {
		return Position{Kind: Latest} // written by a later version
	}
	return at
}
